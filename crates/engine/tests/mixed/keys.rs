//! The keys of a storm, and the ledger, which says what may be found under them.
//!
//! *Own* keys have one writer each. *Fill* keys are filled by a thread that misses them. The ledger knows the versions of
//! both. *Shared* keys have many writers, and any complete value may be found there. All workers increment
//! *counters*.
//!
//! The ledger rests on what surely happened before a look-up began. Its words only grow, so a value read before the
//! look-up still holds when the answer is judged. A version that was overwritten, removed or purged by a call that
//! has returned must not be found any more. Neither must one whose work began before the start of a purge that has
//! returned.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use eyewall::{Cache, Hit, Purge, PutOptions};

use super::Site;
use super::ground::Ground;
use crate::common::version_of;

pub const GROUPS: u64 = 8;
pub const FILLS: u64 = 48;
pub const SHARED: u64 = 60;
pub const COUNTERS: u64 = 12;

/// By how much the clocks of two processes may differ ([`super::worker`] steps them).
pub const CLOCKS_DIFFER_MS: u64 = 500;
/// How far the kernel's coarse clock may lag behind.
const TICKS_MS: u64 = 20;

/// Versions begun; for counters, the sum that was added.
const BEGUN: usize = 0;
/// The last version whose work has surely begun.
const AT_WORK: usize = 1;
/// The oldest version that may be found.
const FLOOR: usize = 2;
/// The oldest version that may be found fresh.
const FRESH_FLOOR: usize = 3;
/// A version, and the latest ends of its fresh and usable times. The version is 0 while the others change.
const TIMED: usize = 4;
const FRESH_UNTIL: usize = 5;
const USABLE_UNTIL: usize = 6;
/// For a fill key: who is filling it.
pub const FILLER: usize = 7;

/// Milliseconds of a clock that nobody steps.
pub fn now_ms() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec * 1000 + time.tv_nsec / 1_000_000) as u64
}

/// A key that the ledger knows.
#[derive(Debug, Clone)]
pub struct Key {
    pub number: u64,
    pub name: Vec<u8>,
    tag: Option<String>,
    is_own: bool,
}

impl Key {
    /// How long its entries are fresh and usable, if that ends.
    pub fn times(&self) -> Option<(Duration, Duration)> {
        let ms = |short: u64| Duration::from_millis(20 + self.number * 37 % short);
        (self.number % 3 == 1).then(|| (ms(700), ms(300)))
    }

    /// Whether it is touched now and then. Soft purges then say nothing about it, and its metadata is unknown.
    pub fn is_touched(&self) -> bool {
        self.is_own && self.number.is_multiple_of(5)
    }

    pub fn is_tagged(&self) -> bool {
        self.tag.is_some()
    }

    /// Runs `work` with the options for an entry of this key.
    pub fn with_options<T>(&self, metadata: &[u8], work: impl FnOnce(&PutOptions<'_>) -> T) -> T {
        let tags: Vec<&str> = self.tag.iter().map(String::as_str).collect();
        let mut options = PutOptions::new().metadata(metadata).tags(&tags);
        if let Some((fresh, stale)) = self.times() {
            options = options.ttl(fresh).stale(stale);
        }
        work(&options)
    }
}

/// Metadata for a value of this length, so that followers know it.
pub fn metadata(bytes: usize) -> [u8; 8] {
    (bytes as u64).to_le_bytes()
}

/// Keys that are purged together.
#[derive(Debug, Clone, Copy)]
pub enum Scope {
    Tag(u64),
    Prefix(u64),
    Everything,
}

/// The knowledge about a key before it was looked up.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    floor: u64,
    fresh_floor: u64,
    timed: Option<(u64, u64, u64)>,
    at_ms: u64,
}

/// What a look-up found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Fresh,
    /// Stale, or anything in an iteration.
    Usable,
}

#[derive(Clone, Copy)]
pub struct Ledger<'a> {
    ground: &'a Ground,
    own: u64,
}

impl<'a> Ledger<'a> {
    /// How many keys have words on the ground.
    pub fn keys(site: &Site) -> u64 {
        site.own + FILLS + COUNTERS
    }

    pub fn new(ground: &'a Ground, site: &Site) -> Self {
        Self { ground, own: site.own }
    }

    pub fn own_key(number: u64) -> Key {
        Self::key(number, "own", true)
    }

    pub fn fill_key(&self, number: u64) -> Key {
        Self::key(self.own + number, "fill", false)
    }

    fn key(number: u64, kind: &str, is_own: bool) -> Key {
        let group = number % GROUPS;
        let tag = (number / GROUPS).is_multiple_of(2).then(|| format!("t{group}"));
        Key { number, name: format!("g{group}/{kind} {number}").into_bytes(), tag, is_own }
    }

    /// Any key with versions.
    pub fn any_key(&self, number: u64) -> Key {
        if number < self.own { Self::own_key(number) } else { self.fill_key(number - self.own) }
    }

    pub fn versioned(&self) -> u64 {
        self.own + FILLS
    }

    /// The key with this name, unless it is a shared one or a counter.
    pub fn key_of(&self, name: &[u8]) -> Option<Key> {
        let name = std::str::from_utf8(name).unwrap();
        let (kind, number) = name.split_once(' ')?;
        let is_versioned = kind.ends_with("/own") || kind.ends_with("/fill");
        is_versioned.then(|| self.any_key(number.parse().unwrap()))
    }

    pub fn shared_key(number: u64) -> Vec<u8> {
        format!("g{}/shared {number}", number % GROUPS).into_bytes()
    }

    pub fn counter_key(number: u64) -> Vec<u8> {
        format!("counter {number}").into_bytes()
    }

    fn load(&self, key: &Key, word: usize) -> u64 {
        self.ground.of_key(key.number, word).load(SeqCst)
    }

    fn raise(&self, key: &Key, word: usize, to: u64) {
        self.ground.of_key(key.number, word).fetch_max(to, SeqCst);
    }

    /// Notes that a put, a removal or a fill begins.
    pub fn begin(&self, key: &Key) -> u32 {
        (self.ground.of_key(key.number, BEGUN).fetch_add(1, SeqCst) + 1) as u32
    }

    /// Notes that the work on a version has surely begun, so that a purge from now on covers it.
    pub fn is_at_work(&self, key: &Key, version: u32) {
        self.raise(key, AT_WORK, u64::from(version));
    }

    /// Notes that the only writer of the key has stored or removed this version.
    pub fn finish(&self, key: &Key, version: u32) {
        self.is_at_work(key, version);
        self.raise(key, FLOOR, u64::from(version));
    }

    /// Called before the writer of a timed key gives an entry other times: its end is unknown then.
    pub fn forget_times(&self, key: &Key) {
        self.ground.of_key(key.number, TIMED).store(0, SeqCst);
    }

    /// Called after that: its time has begun now at the latest.
    pub fn note_times(&self, key: &Key, version: u32, (fresh, stale): (Duration, Duration)) {
        let now = now_ms();
        self.forget_times(key);
        let (fresh, usable) = (fresh.as_millis() as u64, (fresh + stale).as_millis() as u64);
        self.ground.of_key(key.number, FRESH_UNTIL).store(now + fresh, SeqCst);
        self.ground.of_key(key.number, USABLE_UNTIL).store(now + usable, SeqCst);
        self.ground.of_key(key.number, TIMED).store(u64::from(version), SeqCst);
    }

    /// A version, and the ends of its fresh and usable times, if they are known.
    fn times(&self, key: &Key) -> Option<(u64, u64, u64)> {
        let version = self.load(key, TIMED);
        let (fresh, usable) = (self.load(key, FRESH_UNTIL), self.load(key, USABLE_UNTIL));
        (version > 0 && self.load(key, TIMED) == version).then_some((version, fresh, usable))
    }

    pub fn known(&self, key: &Key) -> Known {
        let timed = self.times(key);
        let (floor, fresh_floor) = (self.load(key, FLOOR), self.load(key, FRESH_FLOOR));
        Known { floor, fresh_floor, timed, at_ms: now_ms() }
    }

    /// Judges a value that was found, and returns its version.
    pub fn check(&self, key: &Key, known: &Known, value: &[u8], found: Found) -> u32 {
        let version = version_of(&key.name, value);
        self.check_version(key, known, u64::from(version), found);
        version
    }

    /// Judges an entry, including its metadata and tags.
    pub fn check_hit(&self, key: &Key, known: &Known, hit: &Hit<'_>, found: Found) -> u32 {
        assert_eq!(hit.key(), key.name);
        if let Some(reason) = hit.reason() {
            self.check_reason(key, known, reason);
            return 0;
        }
        if !key.is_touched() {
            assert_eq!(hit.metadata(), metadata(hit.len()), "metadata of {key:?}");
        }
        assert_eq!(hit.tags().collect::<Vec<_>>(), key.tag.as_slice(), "tags of {key:?}");
        self.check(key, known, hit, found)
    }

    fn check_version(&self, key: &Key, known: &Known, version: u64, found: Found) {
        let newest = self.load(key, BEGUN);
        let range = known.floor..=newest;
        assert!(range.contains(&version), "{key:?}: version {version} is found, and may be {range:?}: {known:?}");
        if found == Found::Fresh && !key.is_touched() {
            assert!(version >= known.fresh_floor, "{key:?}: version {version} is fresh, and was purged: {known:?}");
        }
        let Some((timed, fresh, usable)) = known.timed.filter(|(timed, ..)| *timed == version) else { return };
        let until = if found == Found::Fresh { fresh } else { usable };
        // Its writer may have prolonged it since.
        let is_over = known.at_ms > until + CLOCKS_DIFFER_MS + TICKS_MS && self.times(key) == known.timed;
        assert!(!is_over, "{key:?}: version {timed} ended at {until}: {found:?} {known:?}");
    }

    /// For a negative entry of an own key: its reason is the lower half of its version.
    fn check_reason(&self, key: &Key, known: &Known, reason: u16) {
        if key.is_own {
            let distance = u64::from(reason.wrapping_sub(known.floor as u16));
            self.check_version(key, known, known.floor + distance, Found::Usable);
        }
    }

    /// Adds to a counter's account. Afterwards the counter may have grown by as much.
    pub fn add(&self, counter: u64, by: u64) {
        self.ground.of_key(self.versioned() + counter, BEGUN).fetch_add(by, SeqCst);
    }

    pub fn check_counter(&self, counter: u64, value: i64) {
        let added = self.ground.of_key(self.versioned() + counter, BEGUN).load(SeqCst);
        assert!(value > 0 && value as u64 <= added, "counter {counter} is {value}, and {added} was added");
    }

    /// Purges, and notes what can't be found any more once that has returned.
    pub fn purge(&self, cache: &Cache, scope: Scope, kind: Purge) -> eyewall::Result<()> {
        let keys = (0..self.versioned()).map(|number| self.any_key(number)).filter(|key| match scope {
            Scope::Everything => true,
            Scope::Prefix(group) => key.number % GROUPS == group,
            Scope::Tag(group) => key.number % GROUPS == group && key.tag.is_some(),
        });
        let at_work: Vec<(Key, u64)> = keys.map(|key| (key.clone(), self.load(&key, AT_WORK))).collect();
        match scope {
            Scope::Everything => cache.purge_all(kind)?,
            Scope::Prefix(group) => cache.purge_prefix(format!("g{group}/"), kind)?,
            Scope::Tag(group) => cache.purge_tag(&format!("t{group}"), kind)?,
        }
        let floor = if kind == Purge::Hard { FLOOR } else { FRESH_FLOOR };
        for (key, version) in at_work {
            self.raise(&key, floor, version + 1);
        }
        Ok(())
    }
}
