//! Random operations of one thread, compared with a plain map. A cache may lose an entry at any time. But what it has
//! was put last, what it has lost stays lost, and whatever depends on an entry's presence is exact.

use std::collections::{BTreeMap, BTreeSet};

use eyewall::{Cache, Change, Options, PutOptions, Updated};
use proptest::prelude::*;

use crate::common::soak;

#[derive(Debug, Clone)]
enum Operation {
    Get,
    Into,
    Put,
    Add,
    Replace { right: bool },
    Update(u8),
    Remove,
    Clear,
    Iterate,
}

#[derive(Debug, Clone)]
struct Step {
    operation: Operation,
    key: u8,
    bytes: usize,
    metadata: usize,
    fill: u8,
}

fn step() -> impl Strategy<Value = Step> {
    let operation = prop_oneof![
        12 => Just(Operation::Get),
        2 => Just(Operation::Into),
        12 => Just(Operation::Put),
        4 => Just(Operation::Add),
        4 => any::<bool>().prop_map(|right| Operation::Replace { right }),
        4 => (0..3_u8).prop_map(Operation::Update),
        4 => Just(Operation::Remove),
        1 => Just(Operation::Iterate),
    ];
    // Sizes on both sides of the bounds: filled under the lock or outside, in small or main, nearly an eighth of
    // main.
    let bytes = prop_oneof![4 => 0..200_usize, 4 => 3000..9000_usize, 2 => 20_000..50_000_usize];
    let rarely_clear = prop_oneof![99 => operation, 1 => Just(Operation::Clear)];
    let metadata = prop_oneof![Just(0), 1..300_usize];
    (rarely_clear, 0..24_u8, bytes, metadata, any::<u8>()).prop_map(|(operation, key, bytes, metadata, fill)| Step {
        operation,
        key,
        bytes,
        metadata,
        fill,
    })
}

#[derive(Debug, Clone, PartialEq)]
struct Stored {
    value: Vec<u8>,
    metadata: Vec<u8>,
    serial: u64,
}

/// The cache, and what it should hold unless it has lost it.
struct Twin {
    cache: Cache,
    map: BTreeMap<u8, Stored>,
}

impl Twin {
    /// Gets what is there, which must be what was put last.
    fn look(&mut self, key: u8) -> Option<Stored> {
        let hit = self.cache.peek([key]).unwrap();
        let found = hit.map(|hit| {
            assert_eq!(hit.key(), [key]);
            Stored { value: hit.to_vec(), metadata: hit.metadata().to_vec(), serial: hit.serial() }
        });
        match (&found, self.map.get(&key)) {
            (Some(found), Some(wanted)) => assert!(found == wanted, "key {key} has another value than was put"),
            (Some(_), None) => panic!("key {key} is there, and it was removed or lost before"),
            (None, _) => drop(self.map.remove(&key)),
        }
        found
    }

    fn take(&mut self, step: Step) {
        let Step { operation, key, bytes, metadata, fill } = step;
        let value: Vec<u8> = (0..bytes).map(|at| (at as u8).wrapping_mul(31) ^ fill ^ key).collect();
        let metadata = vec![fill; metadata];
        let options = PutOptions::new().metadata(&metadata);
        let before = self.look(key);
        let cache = self.cache.clone();
        let stored = |serial| Stored { value: value.clone(), metadata: metadata.clone(), serial };
        match operation {
            Operation::Get => {
                let hit = cache.get([key]).unwrap();
                assert_eq!(hit.map(|hit| hit.to_vec()), before.map(|stored| stored.value));
            }
            Operation::Into => {
                let mut buffer = b"before".to_vec();
                let info = cache.get_into([key], &mut buffer).unwrap();
                assert_eq!(info.map(|info| info.serial), before.as_ref().map(|stored| stored.serial));
                assert!(buffer == before.map_or(b"before".to_vec(), |stored| stored.value));
            }
            Operation::Put => {
                let serial = cache.put_with([key], &value, &options).unwrap();
                assert!(before.is_none_or(|before| serial > before.serial));
                self.map.insert(key, stored(serial));
            }
            Operation::Add => match cache.add([key], &value, &options).unwrap() {
                Some(serial) => {
                    assert_eq!(before, None, "the entry existed");
                    self.map.insert(key, stored(serial));
                }
                None => assert!(before.is_some(), "the entry didn't exist"),
            },
            Operation::Replace { right } => {
                let serial = before.as_ref().map_or(7, |before| before.serial) + u64::from(!right);
                let replaced = cache.replace_if([key], serial, &value, &options).unwrap();
                assert_eq!(replaced.is_some(), right && before.is_some());
                self.map.extend(replaced.map(|serial| (key, stored(serial))));
            }
            Operation::Update(kind) => self.update(key, kind, before.as_ref(), &value, &options),
            Operation::Remove => {
                assert_eq!(cache.remove([key]).unwrap(), before.is_some());
                self.map.remove(&key);
            }
            Operation::Clear => {
                let there = cache.iter().count() as u64;
                assert_eq!(cache.clear().unwrap(), there);
                self.map.clear();
                assert_eq!(cache.stats().unwrap().entries, 0);
            }
            Operation::Iterate => self.iterate(),
        }
    }

    fn update(&mut self, key: u8, kind: u8, before: Option<&Stored>, value: &[u8], options: &PutOptions<'_>) {
        let mut runs = 0;
        let outcome = self.cache.update([key], options, |hit| {
            runs += 1;
            assert!(hit.map(|hit| hit.to_vec()).as_ref() == before.map(|before| &before.value));
            match kind {
                0 => Change::Keep,
                1 => Change::Put(value.to_vec()),
                _ => Change::Remove,
            }
        });
        assert_eq!(runs, 1);
        match (kind, outcome.unwrap()) {
            (0, Updated::Kept) => {}
            (1, Updated::Stored(serial)) => {
                let metadata = self.cache.peek([key]).unwrap().map_or(Vec::new(), |hit| hit.metadata().to_vec());
                self.map.insert(key, Stored { value: value.to_vec(), metadata, serial });
            }
            (2, Updated::Removed) => drop(self.map.remove(&key)),
            (_, other) => panic!("{other:?}"),
        }
    }

    fn iterate(&mut self) {
        let mut seen = BTreeSet::new();
        for hit in &self.cache {
            let key = hit.key()[0];
            assert!(seen.insert(key), "key {key} came twice");
            assert!(self.map[&key].value == *hit, "key {key}");
        }
        self.map.retain(|key, _| seen.contains(key));
        assert_eq!(self.cache.stats().unwrap().entries, seen.len() as u64);
    }
}

fn run(cache: Cache, steps: Vec<Step>) {
    let mut twin = Twin { cache, map: BTreeMap::new() };
    for step in steps {
        twin.take(step);
    }
    twin.iterate();
    let report = twin.cache.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");
    let stats = twin.cache.stats().unwrap();
    assert_eq!(stats.live_bytes + stats.dead_bytes + stats.filler_bytes + stats.free_bytes, stats.data_bytes);
    assert_eq!(stats.pins, 0);
}

/// The hand may meet the old version while it makes room for the new one.
#[test]
fn a_caller_that_knows_the_serial_replaces_the_entry_wherever_room_is_made() {
    let cache = Options::new().size(512 << 10).entry_bytes_max(64 << 10).heap().unwrap();
    let mut replaced = 0;
    for round in 0..3000_u32 {
        let key = (round * 7 % 40).to_le_bytes();
        let value = vec![round as u8; if round % 3 == 0 { 40_000 } else { 6000 }];
        let Some(serial) = cache.peek(key).unwrap().map(|hit| hit.serial()) else {
            cache.put(key, &value).unwrap();
            continue;
        };
        assert!(cache.replace_if(key, serial, &value, &PutOptions::new()).unwrap().is_some(), "round {round}");
        assert!(*cache.peek(key).unwrap().unwrap() == value[..]);
        replaced += 1;
    }
    assert!((500..2900).contains(&replaced), "{replaced}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: soak(60, 3000), failure_persistence: None, ..ProptestConfig::default() })]

    /// 24 keys of up to 50 KB: far more than fits.
    #[test]
    fn a_small_volume_is_a_map_that_forgets(steps in prop::collection::vec(step(), 1..400)) {
        run(Options::new().size(512 << 10).entry_bytes_max(64 << 10).heap().unwrap(), steps);
    }

    /// With 16 stripes, in shared memory, where hardly anything is lost.
    #[test]
    fn a_volume_of_many_stripes_is_a_map(steps in prop::collection::vec(step(), 1..200)) {
        run(Options::new().size(16 << 20).entry_bytes_max(64 << 10).anonymous().unwrap(), steps);
    }
}
