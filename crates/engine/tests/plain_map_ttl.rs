//! Entries that expire, compared with a plain map, while the wall clock moves forwards and backwards. An entry exists
//! from its creation to its expiry, and at no other time. No step of the clock prolongs its life.
//!
//! A file of its own, since the clock is moved for the whole process. Lives end at half minutes, and the clock moves
//! by whole ones. So the few milliseconds that a test takes decide nothing.
#![cfg(test)]

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use eyewall::{Cache, Change, Options, PutOptions, Updated, seams};
use proptest::prelude::*;

use common::soak;

const MINUTE_MS: i64 = 60_000;
/// More than all steps back of one case together.
const MINUTES_BACK_MAX: i64 = 24 * 60;

#[derive(Debug, Clone)]
enum Step {
    Put { key: u8, minutes: Option<u8>, bytes: usize },
    Add { key: u8, minutes: Option<u8>, bytes: usize },
    Update { key: u8 },
    Remove { key: u8 },
    Wait { minutes: i8 },
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![3 => 1..100_usize, 1 => 9000..20_000_usize];
    let ttl = prop::option::weighted(0.8, 0..6_u8);
    let put = (0..12_u8, ttl, bytes);
    prop_oneof![
        4 => put.clone().prop_map(|(key, minutes, bytes)| Step::Put { key, minutes, bytes }),
        3 => put.prop_map(|(key, minutes, bytes)| Step::Add { key, minutes, bytes }),
        1 => (0..12_u8).prop_map(|key| Step::Update { key }),
        1 => (0..12_u8).prop_map(|key| Step::Remove { key }),
        3 => (-3..4_i8).prop_map(|minutes| Step::Wait { minutes }),
    ]
}

#[derive(Debug, Clone)]
struct Stored {
    value: Vec<u8>,
    /// Minutes of the test's own clock.
    created: i64,
    /// How many and a half minutes it lives.
    life: Option<u8>,
}

impl Stored {
    fn is_valid(&self, now: i64) -> bool {
        self.life.is_none_or(|life| self.created <= now && now - self.created <= i64::from(life))
    }
}

struct Twin {
    cache: Cache,
    map: BTreeMap<u8, Stored>,
    now: i64,
    puts: u32,
}

impl Drop for Twin {
    /// The next case begins at the same time.
    fn drop(&mut self) {
        seams::shift_clock(-self.now * MINUTE_MS);
    }
}

impl Twin {
    /// Checks every key: an existing entry is valid, and was put last.
    fn look(&mut self) {
        for key in 0..12_u8 {
            let hit = self.cache.get([key]).unwrap();
            assert_eq!(self.cache.contains([key]).unwrap(), hit.is_some());
            let wanted = self.map.get(&key);
            match (&hit, wanted) {
                (Some(hit), Some(wanted)) => {
                    assert!(wanted.is_valid(self.now), "key {key} has expired: {wanted:?} at {}", self.now);
                    assert!(**hit == wanted.value[..], "key {key}");
                    assert_eq!(hit.ttl_left().is_some(), wanted.life.is_some());
                    let left = hit.ttl_left().unwrap_or_default();
                    assert!(left <= Duration::from_secs(60 * 5 + 30), "{left:?}");
                }
                (Some(_), None) => panic!("key {key} was removed or lost"),
                // An entry that isn't valid may or may not be dropped.
                (None, Some(wanted)) if !wanted.is_valid(self.now) => {}
                (None, _) => drop(self.map.remove(&key)),
            }
        }
        let valid = self.map.values().filter(|stored| stored.is_valid(self.now)).count();
        assert_eq!(self.cache.iter().count(), valid);
    }

    fn is_there(&self, key: u8) -> bool {
        self.map.get(&key).is_some_and(|stored| stored.is_valid(self.now))
    }

    fn take(&mut self, step: &Step) {
        self.puts += 1;
        match *step {
            Step::Put { key, minutes, bytes } => {
                let stored = self.stored(minutes, bytes);
                self.cache.put_with([key], &stored.value, &options(minutes)).unwrap();
                self.map.insert(key, stored);
            }
            Step::Add { key, minutes, bytes } => {
                let stored = self.stored(minutes, bytes);
                let added = self.cache.add([key], &stored.value, &options(minutes)).unwrap();
                assert_eq!(added.is_some(), !self.is_there(key), "key {key}");
                if added.is_some() {
                    self.map.insert(key, stored);
                }
            }
            Step::Update { key } => {
                let there = self.is_there(key);
                let updated = self.cache.update([key], &PutOptions::new(), |hit| {
                    assert_eq!(hit.is_some(), there);
                    Change::Put(vec![1])
                });
                assert!(matches!(updated.unwrap(), Updated::Stored(_)));
                self.map.insert(key, Stored { value: vec![1], created: self.now, life: None });
            }
            Step::Remove { key } => {
                assert_eq!(self.cache.remove([key]).unwrap(), self.is_there(key));
                self.map.remove(&key);
            }
            Step::Wait { minutes } => {
                seams::shift_clock(i64::from(minutes) * MINUTE_MS);
                self.now += i64::from(minutes);
            }
        }
    }

    fn stored(&self, minutes: Option<u8>, bytes: usize) -> Stored {
        let value = self.puts.to_le_bytes().into_iter().cycle().take(bytes).collect();
        Stored { value, created: self.now, life: minutes }
    }
}

fn options(minutes: Option<u8>) -> PutOptions<'static> {
    match minutes {
        Some(minutes) => PutOptions::new().ttl(Duration::from_secs(u64::from(minutes) * 60 + 30)),
        None => PutOptions::new(),
    }
}

#[test]
fn no_entry_outlives_its_time_whatever_the_clock_does() {
    // The volume's clock begins with the machine, which may have been started a minute ago.
    seams::shift_clock(MINUTES_BACK_MAX * MINUTE_MS);
    let config = ProptestConfig { cases: soak(100, 3000), failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(steps in prop::collection::vec(step(), 1..100))| {
        let cache = Options::new().size(512 << 10).heap().unwrap();
        let mut twin = Twin { cache, map: BTreeMap::new(), now: 0, puts: 0 };
        for step in &steps {
            twin.take(step);
            twin.look();
        }
        assert_eq!(twin.cache.verify().unwrap().problems, Vec::<String>::new());
    });
}
