//! The machine loses power. Each page that was written since the last sync is found as it was at the sync, at some
//! time since, or at the end. The volume still opens. It serves the surviving entries, no wrong byte, and nothing
//! that was removed or purged before the last sync. Then it is used, loses power again, and is sound at the end.
//!
//! A round composes such a file from the content of the volume's file at several moments, and opens it under another
//! name. Before that, the processes that write may be killed between any two stores. Rounds run in a child process.
//! If a seed fails, the test names it, and `EYEWALL_SEED` repeats it.
#![cfg(test)]

mod anatomy;
mod common;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use anatomy::{Anatomy, word};
use common::{Child, Random, fast_folder, fork, soak, value, version_of};
use eyewall::{Cache, Change, Error, Options, Purge, PutOptions, seams};

const PAGE_BYTES: usize = 4096;
const KEYS: u64 = 400;
const TAGS: [&str; 3] = ["one", "two", "three"];

fn key(number: u64) -> String {
    format!("key {number}")
}

/// The tag of every key, if it has one.
fn tag(number: u64) -> Option<&'static str> {
    TAGS.get((number % 5) as usize).copied()
}

fn size(random: &mut Random) -> usize {
    let bytes = match random.below(40) {
        0 => 9000 + random.below(14_000),
        1..10 => 10 + random.below(100),
        _ => 10 + random.below(2000),
    };
    bytes as usize
}

/// The versions that a look-up of a key may find. A miss is always right.
#[derive(Debug, Clone, Default)]
struct Versions {
    now: BTreeSet<u32>,
    /// After power loss.
    lost: BTreeSet<u32>,
}

/// What storage holds: pages as of the last sync, and as of some moments since.
struct Storage {
    synced: Vec<u8>,
    since: Vec<Vec<u8>>,
}

/// A volume, what it must answer, and what storage holds of it.
struct World {
    folder: PathBuf,
    files: u32,
    cache: Cache,
    versions: HashMap<u64, Versions>,
    last_version: u32,
    storage: Storage,
    random: Random,
}

impl World {
    fn new(folder: &Path, seed: u64) -> Self {
        let mut random = Random(seed);
        let path = folder.join("0");
        let options = Options::new()
            .size((512 << 10) << random.below(3))
            .entry_size_hint([200, 500, 1000][random.below(3) as usize])
            .secure_erase(random.below(5) == 0);
        drop(options.open(&path).unwrap());
        anatomy::fix_secret(&path);
        let cache = options.open(&path).unwrap();
        let storage = Storage { synced: std::fs::read(&path).unwrap(), since: Vec::new() };
        Self { folder: folder.to_owned(), files: 0, cache, versions: HashMap::new(), last_version: 0, storage, random }
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.cache.path().unwrap()).unwrap()
    }

    fn versions(&mut self, number: u64) -> &mut Versions {
        self.versions.entry(number).or_default()
    }

    /// A put that may be under way or done.
    fn begin_put(&mut self, number: u64) -> Vec<u8> {
        self.last_version += 1;
        let version = self.last_version;
        self.versions(number).lost.insert(version);
        // In turn only small ones, so that the index grows, and shrinks again.
        let is_small = version / 200 % 2 == 1;
        let bytes = if is_small { 10 + self.random.below(60) as usize } else { size(&mut self.random) };
        value(key(number).as_bytes(), version, bytes)
    }

    fn put(&mut self, number: u64) {
        let value = self.begin_put(number);
        put(&self.cache, number, &value);
        let version = self.last_version;
        self.versions(number).now = BTreeSet::from([version]);
    }

    /// Notes that none of these entries exists any more.
    fn drop_all(&mut self, gone: impl Fn(u64) -> bool) {
        for (number, versions) in &mut self.versions {
            if gone(*number) {
                versions.now.clear();
            }
        }
    }

    fn purge(&mut self) {
        let number = self.random.below(1000);
        match number % 10 {
            0..5 => {
                let name = TAGS[number as usize % 3];
                self.cache.purge_tag(name, Purge::Hard).unwrap();
                self.drop_all(|number| tag(number) == Some(name));
            }
            5..9 => {
                let prefix = key(number / 10);
                self.cache.purge_prefix(&prefix, Purge::Hard).unwrap();
                self.drop_all(|number| key(number).starts_with(&prefix));
            }
            _ => {
                self.cache.purge_all(Purge::Hard).unwrap();
                self.drop_all(|_| true);
            }
        }
    }

    fn check(&self, number: u64) -> bool {
        let key = key(number);
        let Some(hit) = self.cache.get(&key).unwrap() else { return false };
        let version = version_of(key.as_bytes(), &hit);
        let now = self.versions.get(&number).map(|versions| &versions.now);
        assert!(now.is_some_and(|now| now.contains(&version)), "{key}: version {version}, not of {now:?}");
        true
    }

    fn check_all(&self) {
        for number in 0..KEYS {
            self.check(number);
        }
        for hit in &self.cache {
            version_of(hit.key(), &hit);
        }
    }

    fn remove(&mut self, number: u64) {
        self.cache.remove(key(number)).unwrap();
        self.versions(number).now.clear();
        assert!(!self.check(number));
    }

    fn sync(&mut self) {
        self.cache.sync().unwrap();
        self.storage = Storage { synced: self.bytes(), since: Vec::new() };
        self.versions.values_mut().for_each(|versions| versions.lost = versions.now.clone());
    }

    fn step(&mut self) {
        let number = self.random.below(KEYS);
        match self.random.below(400) {
            0..200 => self.put(number),
            200..370 => {
                self.check(number);
            }
            370..390 => self.remove(number),
            390..392 => self.purge(),
            392 => {
                // It also syncs if there was anything to sweep for.
                self.cache.sweep().unwrap();
                self.sync();
            }
            393 => self.sync(),
            394 => {
                let value = self.begin_put(number);
                let change = |_: Option<&eyewall::Hit<'_>>| Change::Put(value);
                let tags: Vec<&str> = tag(number).into_iter().collect();
                self.cache.update(key(number), &PutOptions::new().tags(&tags), change).unwrap();
                let version = self.last_version;
                self.versions(number).now = BTreeSet::from([version]);
            }
            _ if self.storage.since.len() < 8 => {
                let bytes = self.bytes();
                self.storage.since.push(bytes);
            }
            _ => {}
        }
    }

    /// The first write is preceded by a sync of the first page.
    fn begin(&mut self) {
        self.put(0);
        let first = &self.bytes()[..PAGE_BYTES];
        self.storage.synced[..PAGE_BYTES].copy_from_slice(first);
        self.storage.since.clear();
    }

    fn work(&mut self) {
        let steps = match self.random.below(4) {
            0 => self.random.below(40),
            _ => self.random.below(1200),
        };
        (0..steps).for_each(|_| self.step());
        if self.random.below(4) == 0 {
            self.sync();
            (0..self.random.below(60)).for_each(|_| self.step());
        }
    }

    /// A process puts, and is killed before one of its stores. This process may continue beside it.
    fn lose_a_process(&mut self) {
        let stores = self.random.below(800) as i64;
        let puts: Vec<(u64, Vec<u8>)> = (0..20)
            .map(|_| {
                let number = self.random.below(KEYS);
                (number, self.begin_put(number))
            })
            .collect();
        let cache = &self.cache;
        fork(|| {
            seams::die_after(stores);
            for (number, value) in &puts {
                put(cache, *number, value);
            }
            seams::die_after(i64::MAX);
        })
        .wait();
        for (number, value) in &puts {
            let version = version_of(key(*number).as_bytes(), value);
            self.versions(*number).now.insert(version);
        }
    }

    /// The volume's file as it is found after power loss.
    fn compose(&mut self, now: &[u8]) -> Vec<u8> {
        let Storage { synced, since } = &self.storage;
        let mut found = now.to_vec();
        let lost_in_ten = [1, 3, 5, 9][self.random.below(4) as usize];
        for (page, bytes) in found.chunks_mut(PAGE_BYTES).enumerate() {
            if self.random.below(10) >= lost_in_ten {
                continue;
            }
            let span = page * PAGE_BYTES..page * PAGE_BYTES + bytes.len();
            let image = match self.random.below(since.len() as u64 + 2) as usize {
                image if image < since.len() => &since[image],
                _ => synced,
            };
            bytes.copy_from_slice(&image[span]);
        }
        found
    }

    fn lose_power(&mut self) {
        let now = self.bytes();
        let found = self.compose(&now);
        let spared = spared(&now, &found);
        let valid: Vec<(u64, u32)> = (0..KEYS)
            .filter_map(|number| {
                let hit = self.cache.peek(key(number)).unwrap()?;
                Some((number, version_of(hit.key(), &hit)))
            })
            .filter(|(number, _)| spared.contains_key(key(*number).as_bytes()))
            .collect();
        self.files += 1;
        let path = self.folder.join(self.files.to_string());
        std::fs::write(&path, &found).unwrap();
        let old = std::mem::replace(&mut self.cache, Cache::open(&path).unwrap());
        let old_path = old.path().unwrap().to_owned();
        drop(old);
        std::fs::remove_file(old_path).unwrap();
        self.storage = Storage { synced: found, since: Vec::new() };
        self.versions.values_mut().for_each(|versions| versions.now = versions.lost.clone());
        let served = valid
            .iter()
            .filter(|(number, version)| {
                let key = key(*number);
                self.cache.peek(&key).unwrap().is_some_and(|hit| version_of(hit.key(), &hit) == *version)
            })
            .count();
        assert!(served * 10 >= valid.len() * 9, "{served} of {} entries that were spared are served", valid.len());
        SPARED.fetch_add(valid.len() as u64, Relaxed);
        SERVED.fetch_add(served as u64, Relaxed);
    }
}

static SPARED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
static SERVED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

fn put(cache: &Cache, number: u64, value: &[u8]) {
    let tags: Vec<&str> = tag(number).into_iter().collect();
    cache.put_with(key(number), value, &PutOptions::new().tags(&tags)).unwrap();
}

/// The keys whose slot and record lie in pages that are found as they were at the end.
fn spared(now: &[u8], found: &[u8]) -> BTreeMap<Vec<u8>, u64> {
    let anatomy = Anatomy::of(now);
    let mut spared = BTreeMap::new();
    let is_spared = |from: u64, to: u64| {
        let first = from as usize / PAGE_BYTES * PAGE_BYTES;
        let end = (to as usize).next_multiple_of(PAGE_BYTES).min(now.len());
        now[first..end] == found[first..end]
    };
    for stripe in 0..anatomy.stripes {
        // With another count of buckets it is another index.
        let buckets = anatomy.stripe_word(stripe, anatomy::BUCKETS);
        if word(now, buckets) != word(found, buckets) {
            continue;
        }
        let sure = word(found, anatomy.stripe_word(stripe, anatomy::SURE)).saturating_mul(8);
        for slot_at in anatomy.slots(now, stripe).into_iter().take(usize::try_from(sure).unwrap_or(usize::MAX)) {
            let word_now = word(now, slot_at);
            if (word_now >> 40) & 3 != 1 {
                continue;
            }
            let at = anatomy.data_byte(stripe) + (word_now & ((1 << 34) - 1)) * 8;
            let lengths = word(now, at + 24);
            let key_bytes = word(now, at + 16) >> 48;
            let end = at + 44 + key_bytes + ((lengths >> 32) & 0xffff) + (lengths & 0xffff_ffff);
            if is_spared(slot_at, slot_at + 8) && is_spared(at, end) {
                spared.insert(now[at as usize + 44..(at + 44 + key_bytes) as usize].to_vec(), at);
            }
        }
    }
    spared
}

fn round(folder: &Path, seed: u64) {
    let mut world = World::new(folder, seed);
    world.begin();
    for _ in 0..=world.random.below(3) {
        world.work();
        if world.random.below(3) == 0 {
            world.lose_a_process();
        }
        world.lose_power();
        if world.random.below(2) == 0 {
            world.check_all();
        }
        world.begin();
        if world.random.below(3) == 0 {
            world.lose_a_process();
            world.check_all();
        }
        if world.random.below(4) == 0 {
            assert_eq!(world.cache.verify().unwrap().problems, Vec::<String>::new());
        }
    }
    world.work();
    world.check_all();
    assert_eq!(world.cache.verify().unwrap().problems, Vec::<String>::new());
    assert_eq!(world.cache.stats().unwrap().untiled_bytes, 0);
    world.check_all();
    (0..KEYS * 2).for_each(|number| world.put(number % KEYS));
    assert_eq!(world.cache.verify().unwrap().problems, Vec::<String>::new());
    reopen(&mut world);
}

/// Closes the volume in order, and opens it again.
fn reopen(world: &mut World) {
    let keys = |cache: &Cache| cache.iter().map(|hit| hit.key().to_vec()).collect::<BTreeSet<_>>();
    let kept = keys(&world.cache);
    let path = world.cache.path().unwrap().to_owned();
    world.cache = Options::new().heap().unwrap();
    world.cache = Cache::open(path).unwrap();
    assert!(keys(&world.cache) == kept && !kept.is_empty(), "a clean close keeps everything");
    world.check_all();
}

fn rounds(arguments: &[&str]) {
    common::each_round(arguments, |folder, seed| {
        let files = tempfile::tempdir_in(folder).unwrap();
        round(files.path(), seed);
    });
    eprintln!("{} of {} entries that were spared were served", SERVED.load(Relaxed), SPARED.load(Relaxed));
}

/// The work of the process that dies, on a volume that lost power: enough puts to tile it.
fn put_all(cache: &Cache) {
    for number in 0..KEYS {
        put(cache, number, &value(key(number).as_bytes(), 1_000_000, 300));
    }
}

/// A process dies before store number `stores`, on a volume found in this state. Returns true if it survived.
fn one_death(found: &[u8], path: &Path, stores: i64, alone: bool) -> bool {
    let _ = std::fs::remove_file(path);
    std::fs::write(path, found).unwrap();
    let mut cache = (!alone).then(|| Cache::open(path).unwrap());
    let status = fork(|| {
        seams::die_after(stores);
        match &cache {
            Some(cache) => put_all(cache),
            None => put_all(&Cache::open(path).unwrap()),
        }
        seams::die_after(i64::MAX);
    });
    let survived = status.wait().success();
    let cache = cache.take().unwrap_or_else(|| Cache::open(path).unwrap());
    common::read_all(&cache);
    put_all(&cache);
    assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new());
    let stats = cache.stats().unwrap();
    let sum = stats.live_bytes + stats.dead_bytes + stats.filler_bytes + stats.free_bytes + stats.untiled_bytes;
    assert_eq!((sum, stats.entries), (stats.data_bytes, common::read_all(&cache)), "{stats:?}");
    survived
}

/// In the child: a death before every store while a volume is tiled after power loss.
fn deaths(arguments: &[&str]) {
    let files = tempfile::tempdir_in(arguments[0]).unwrap();
    let mut world = World::new(files.path(), 2);
    world.begin();
    (0..2500).for_each(|_| world.step());
    let now = world.bytes();
    let found = world.compose(&now);
    let path = files.path().join("volume");
    for alone in [false, true] {
        let mut stores = 0;
        while !one_death(&found, &path, stores, alone) {
            // The short form tries each of the first stores, then some of the others in turn.
            stores += if stores < 100 { 1 } else { soak(stores / 16, 1) };
            assert!(stores < 1 << 20, "it never survives");
        }
        eprintln!("{stores} stores, {}", if alone { "alone" } else { "beside us" });
    }
}

#[test]
fn child() {
    common::play(&[("rounds", rounds), ("deaths", deaths)]);
}

#[test]
fn a_death_while_tiling_after_power_loss_leaves_the_rest_to_others() {
    let folder = fast_folder();
    Child::start("deaths", &[folder.path().to_str().unwrap()]).finish();
}

#[test]
fn after_power_loss_a_volume_serves_surviving_entries_and_nothing_wrong() {
    common::play_rounds(fast_folder().path(), 0, soak(60, 1000));
}

#[test]
fn a_volume_that_is_copied_under_its_writers_opens_and_is_sound() {
    let _turn = common::turn();
    let folder = fast_folder();
    let (path, copy) = (folder.path().join("volume"), folder.path().join("copy"));
    let cache = Options::new().size(2 << 20).open(&path).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (cache, stop) = (&cache, &stop);
            scope.spawn(move || {
                let mut random = Random(seed);
                while !stop.load(Relaxed) {
                    let (number, bytes) = (random.below(1000), size(&mut random));
                    match cache.put(key(number), value(key(number).as_bytes(), 1, bytes)) {
                        Ok(_) | Err(Error::Pinned { .. }) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
            });
        }
        let mut kept = 0;
        for turn in 0..soak(20, 500) {
            let _ = std::fs::remove_file(&copy);
            std::fs::copy(&path, &copy).unwrap();
            let other = Cache::open(&copy).unwrap();
            kept += common::read_all(&other);
            for number in 0..turn % 5 * 200 {
                other.put(key(number), value(key(number).as_bytes(), 2, 900)).unwrap();
                assert_eq!(version_of(key(number).as_bytes(), &other.get(key(number)).unwrap().unwrap()), 2);
            }
            assert_eq!(other.verify().unwrap().problems, Vec::<String>::new());
            common::read_all(&other);
        }
        stop.store(true, Relaxed);
        assert!(kept > 0);
    });
}

#[test]
fn a_large_volume_opens_without_being_read() {
    let folder = common::disk_folder();
    let (path, copy) = (folder.path().join("volume"), folder.path().join("copy"));
    let cache = Options::new().size(1 << 30).open(&path).unwrap();
    (0..1000).for_each(|number| put(&cache, number, &value(key(number).as_bytes(), 1, 2000)));
    cache.sync().unwrap();
    std::fs::copy(&path, &copy).unwrap();
    let start = std::time::Instant::now();
    let other = Cache::open(&copy).unwrap();
    eprintln!("1 GiB opened in {:?}", start.elapsed());
    assert_eq!(common::read_all(&other), 1000);
    let start = std::time::Instant::now();
    other.put("new", "value").unwrap();
    eprintln!("the first put took {:?}", start.elapsed());
}
