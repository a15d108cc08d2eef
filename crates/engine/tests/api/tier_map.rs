//! Random operations on a volume with a tier, by a cache that uses the tier and one that doesn't, compared with a
//! plain map. Both are tiny, so everything is evicted all the time. A found value was put last, a lost one stays
//! lost, and both caches agree.

use std::collections::BTreeMap;
use std::time::Duration;

use eyewall::{Cache, Lookup, Options, Purge, PutOptions, Touch};
use proptest::prelude::*;

use crate::common::soak;
use crate::common::tiered::Tiered;

#[derive(Debug, Clone)]
enum Operation {
    /// How often.
    Get(u8),
    Put(usize),
    Remove,
    Clear,
    PurgeTag(bool),
    PurgePrefix(bool),
    PurgeAll(bool),
    Sweep,
    Touch(Option<u8>),
    TouchMetadata(u8),
}

#[derive(Debug, Clone)]
struct Step {
    operation: Operation,
    key: u8,
    plain: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let operation = prop_oneof![
        40 => (1..6_u8).prop_map(Operation::Get),
        25 => prop_oneof![3 => 0..300_usize, 1 => 3000..8000_usize].prop_map(Operation::Put),
        4 => Just(Operation::Remove),
        1 => Just(Operation::Clear),
        3 => any::<bool>().prop_map(Operation::PurgeTag),
        2 => any::<bool>().prop_map(Operation::PurgePrefix),
        1 => any::<bool>().prop_map(Operation::PurgeAll),
        2 => Just(Operation::Sweep),
        3 => any::<Option<u8>>().prop_map(Operation::Touch),
        2 => any::<u8>().prop_map(Operation::TouchMetadata),
    ];
    (operation, 0..120_u8, any::<bool>()).prop_map(|(operation, key, plain)| Step { operation, key, plain })
}

#[derive(Debug, Clone, PartialEq)]
struct Stored {
    value: Vec<u8>,
    metadata: Vec<u8>,
    stale: bool,
}

struct Twin {
    tiered: Cache,
    plain: Cache,
    map: BTreeMap<u8, Stored>,
    written: u32,
}

fn key(number: u8) -> String {
    format!("{}/{number}", number % 4)
}

fn tag(number: u8) -> String {
    format!("tag {}", number % 7)
}

fn look(cache: &Cache, number: u8) -> Option<Stored> {
    let stored =
        |hit: &eyewall::Hit<'_>, stale| Stored { value: hit.to_vec(), metadata: hit.metadata().to_vec(), stale };
    match cache.lookup(key(number)).unwrap() {
        Lookup::Fresh(hit) => Some(stored(&hit, false)),
        Lookup::Stale(hit) => Some(stored(&hit, true)),
        Lookup::Negative(_) => panic!("nobody put such an entry"),
        Lookup::Miss => None,
    }
}

impl Twin {
    fn check(&mut self, number: u8) {
        let found = look(&self.tiered, number);
        assert_eq!(found, look(&self.plain, number), "the tier says something else about {number}");
        let wanted = self.map.get(&number);
        assert!(found.is_none() || found.as_ref() == wanted, "{number} is not as it was put last");
        if found.is_none() {
            self.map.remove(&number);
        }
    }

    fn purge(&mut self, soft: bool, means: impl Fn(u8) -> bool) {
        if soft {
            self.map.iter_mut().filter(|(number, _)| means(**number)).for_each(|(_, stored)| stored.stale = true);
        } else {
            self.map.retain(|number, _| !means(*number));
        }
    }

    fn take(&mut self, step: &Step) {
        let cache = if step.plain { self.plain.clone() } else { self.tiered.clone() };
        let number = step.key;
        let kind = |soft| if soft { Purge::Soft } else { Purge::Hard };
        match step.operation {
            Operation::Get(times) => (0..times).for_each(|_| self.check(number)),
            Operation::Put(bytes) => {
                self.written += 1;
                let mut value = vec![number; bytes];
                value.extend_from_slice(&self.written.to_le_bytes());
                let metadata = vec![7; bytes % 30];
                let (tag, hour) = (tag(number), Duration::from_hours(1));
                let tags = [tag.as_str()];
                let options = PutOptions::new().metadata(&metadata).tags(&tags).ttl(hour).stale(hour);
                cache.put_with(key(number), &value, &options).unwrap();
                self.map.insert(number, Stored { value, metadata, stale: false });
            }
            Operation::Remove => {
                cache.remove(key(number)).unwrap();
                self.map.remove(&number);
            }
            Operation::Clear => {
                cache.clear().unwrap();
                self.map.clear();
            }
            Operation::PurgeTag(soft) => {
                cache.purge_tag(&tag(number), kind(soft)).unwrap();
                self.purge(soft, |other| tag(other) == tag(number));
            }
            Operation::PurgePrefix(soft) => {
                let prefix = format!("{}/", number % 4);
                cache.purge_prefix(&prefix, kind(soft)).unwrap();
                self.purge(soft, |other| key(other).starts_with(&prefix));
            }
            Operation::PurgeAll(soft) => {
                cache.purge_all(kind(soft)).unwrap();
                self.purge(soft, |_| true);
            }
            Operation::Sweep => drop(cache.sweep().unwrap()),
            Operation::Touch(hours) => {
                let ttl = hours.map(|hours| Duration::from_secs(3600 * (u64::from(hours) + 1)));
                let touched = cache.touch(key(number), &Touch::new().ttl(ttl, Duration::from_hours(1))).unwrap();
                if let Some(stored) = self.map.get_mut(&number).filter(|_| touched) {
                    stored.stale = false;
                }
            }
            Operation::TouchMetadata(byte) => {
                let metadata = vec![byte; 20];
                let touched = cache.touch(key(number), &Touch::new().metadata(&metadata)).unwrap();
                if let Some(stored) = self.map.get_mut(&number).filter(|_| touched) {
                    // Times that a sweep has ended stay ended; a soft purge that is still noted is lifted.
                    stored.stale = look(&self.plain, number).is_some_and(|found| found.stale);
                    stored.metadata = metadata;
                }
            }
        }
        self.check(number);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: soak(80, 4000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_volume_with_a_tier_is_a_map_that_forgets(steps in prop::collection::vec(step(), 100..900)) {
        let place = Tiered::new();
        let tiered = place.options(512 << 10, 512 << 10).open(place.path()).unwrap();
        let plain = Options::new().open(place.path()).unwrap();
        let mut twin = Twin { tiered, plain, map: BTreeMap::new(), written: 0 };
        for step in &steps {
            twin.take(step);
        }
        (0..120).for_each(|number| twin.check(number));
        let stats = twin.tiered.stats().unwrap();
        prop_assert_eq!(stats.tier.unwrap().pins, 0);
        drop(twin);
        prop_assert!(place.left().is_empty());
    }
}
