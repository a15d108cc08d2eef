//! Figures need sound conditions: a store that forgets a value, or returns the value of another key, ends the run.

#![cfg(test)]

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use eyewall_bench::contender::Contender;
use eyewall_bench::error::{Error, Result};
use eyewall_bench::load::{Gets, Population, Puts, Sequences};
use eyewall_bench::store::{Handle, Store};
use eyewall_bench::touch::Touch;

const POPULATION: Population = Population { objects: 50, value_bytes: 5_000 };

/// The map refuses larger values.
const VALUE_BYTES_MAX: usize = 10_000;

/// A map that can be made to forget.
#[derive(Default)]
struct Toy {
    map: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    evicts: bool,
}

impl Store for Toy {
    type Handle<'a> = &'a Self;

    fn name(&self) -> &'static str {
        "toy"
    }

    fn handle(&self) -> &Self {
        self
    }

    fn evicts(&self) -> bool {
        self.evicts
    }
}

impl Handle for &Toy {
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        Ok(self.map.lock().expect("no panic").get(key).map(|value| consumer(value)).is_some())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(Error::Refused { store: "toy", value_bytes: value.len() });
        }
        self.map.lock().expect("no panic").insert(key.into(), value.into());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.map.lock().expect("no panic").remove(key).is_some())
    }
}

fn gets(touch: Touch) -> Gets {
    let sequences = Sequences::random(POPULATION, 3, 300, 1);
    Gets { sequences, touch, duration: Duration::from_millis(1) }
}

#[test]
fn a_full_store_is_measured() -> Result<()> {
    let toy = Toy::default();
    toy.fill(POPULATION)?;
    toy.check(POPULATION)?;
    for touch in [Touch::Page, Touch::Every] {
        let lap = toy.gets(&gets(touch))?;
        assert!(lap.operations > 0 && lap.end_ns > lap.begin_ns);
    }
    Ok(())
}

#[test]
fn what_is_missing_is_found_out_and_can_be_completed() -> Result<()> {
    let toy = Toy::default();
    toy.fill(POPULATION)?;
    toy.map.lock().expect("no panic").retain(|key, _| key[0] % 2 == 0);
    assert!(toy.check(POPULATION).is_err());
    assert!(toy.gets(&gets(Touch::Page)).is_err());
    toy.complete(POPULATION)?;
    toy.check(POPULATION)
}

#[test]
fn another_objects_value_is_found_out() -> Result<()> {
    let toy = Toy::default();
    toy.fill(POPULATION)?;
    let mut map = toy.map.lock().expect("no panic");
    let values: Vec<Vec<u8>> = map.values().cloned().collect();
    for (value, other) in map.values_mut().zip(values.into_iter().cycle().skip(1)) {
        *value = other;
    }
    drop(map);
    assert!(toy.check(POPULATION).is_err());
    Ok(())
}

#[test]
fn puts_are_new_objects_where_the_store_evicts_and_old_ones_where_not() -> Result<()> {
    for evicts in [true, false] {
        let toy = Toy { evicts, ..Toy::default() };
        toy.fill(POPULATION)?;
        let puts = Puts { population: POPULATION, first: 50, duration: Duration::from_millis(1) };
        let done = toy.puts(&puts)?;
        assert_eq!(done.next - puts.first, done.lap.operations);
        assert_eq!(done.latency_ns.len(), done.lap.operations);
        let held = toy.map.lock().expect("no panic").len() as u64;
        assert_eq!(held, if evicts { done.next } else { 50 });
        toy.check(POPULATION)?;
    }
    Ok(())
}

#[test]
fn a_sweep_times_each_batch() -> Result<()> {
    let toy = Toy { evicts: true, ..Toy::default() };
    let swept = toy.sweep(&[8, 100, VALUE_BYTES_MAX + 1, 70, 8], 2)?;
    assert_eq!(swept.seconds.len(), 3);
    // A refused put doesn't end the run.
    assert_eq!((swept.refused, swept.refused_bytes), (1, VALUE_BYTES_MAX + 1));
    let mut sizes: Vec<usize> = toy.map.lock().expect("no panic").values().map(Vec::len).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [8, 8, 70, 100]);
    Ok(())
}
