//! A process with a tier lives in a control group whose limit is lowered. The tier gives its memory back, nothing
//! wrong is served, and the process isn't killed. When memory is free again, the tier takes some again.
//!
//! The test needs the right to create a control group of version 1 or 2. Without it, the test says so and passes.

#![cfg(test)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::tiered::{Tiered, tier_stats};
use common::{Child, Random, listen, play, say, soak, turn, value, version_of};
use eyewall::{Cache, Options};

const MIB: u64 = 1 << 20;
const TIER: u64 = 64 * MIB;
const KEYS: u64 = 2500;
const VALUE_BYTES: usize = 5000;
const PATIENCE: Duration = Duration::from_mins(2);

#[test]
fn child() {
    play(&[("cramped", cramped)]);
}

/// A control group of our own, below the one that we are in.
struct Group {
    folder: PathBuf,
    is_first: bool,
}

impl Group {
    /// Its folders by version, in which we may create groups.
    fn make() -> Result<Self, String> {
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let mut why = "no memory controller is mounted".to_owned();
        for (root, prefix, is_first) in [("/sys/fs/cgroup/memory", "memory:", true), ("/sys/fs/cgroup", "0::", false)] {
            let Some(path) = own.lines().find_map(|line| line.split_once(prefix)).map(|(_, path)| path) else {
                continue;
            };
            let above = Path::new(root).join(path.trim_start_matches('/'));
            let folder = above.join(format!("eyewall-test-{}", std::process::id()));
            if let Err(error) = fs::create_dir(&folder) {
                why = format!("{}: {error}", folder.display());
                continue;
            }
            let group = Self { folder, is_first };
            match group.limit_to(512 * MIB) {
                Ok(()) => return Ok(group),
                Err(error) => why = format!("{}: {error}", group.folder.display()),
            }
        }
        Err(why)
    }

    fn limit_to(&self, bytes: u64) -> std::io::Result<()> {
        let name = if self.is_first { "memory.limit_in_bytes" } else { "memory.max" };
        fs::write(self.folder.join(name), bytes.to_string())
    }

    fn add(&self, process: i32) -> std::io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), process.to_string())
    }

    /// Bytes charged, except the page cache of files.
    fn used(&self) -> u64 {
        let (name, prefix) = if self.is_first { ("memory.usage_in_bytes", "total_") } else { ("memory.current", "") };
        let charged: u64 = fs::read_to_string(self.folder.join(name)).unwrap().trim().parse().unwrap();
        let stat = fs::read_to_string(self.folder.join("memory.stat")).unwrap();
        let cached = ["inactive_file", "active_file"].map(|list| {
            let name = format!("{prefix}{list} ");
            stat.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse::<u64>().unwrap()
        });
        charged - cached.iter().sum::<u64>()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// Reads until it is told something else, and reports how much memory the tier has.
fn cramped(arguments: &[&str]) {
    say("ready");
    listen();
    let options = Options::new().size(128 * MIB).tier(TIER).tier_folder(arguments[1]);
    let cache = options.open(arguments[0]).unwrap();
    for number in 0..KEYS {
        cache.put(key(number), value(&key(number), 1, VALUE_BYTES)).unwrap();
    }
    // Pages that the kernel may drop at once.
    cache.sync().unwrap();
    let mut random = Random(3);
    loop {
        read_some(&cache, &mut random);
        say(&tier_stats(&cache).present_bytes.to_string());
        match listen().as_str() {
            "more" => {}
            _ => return,
        }
    }
}

fn read_some(cache: &Cache, random: &mut Random) {
    for _ in 0..10_000 {
        let key = key(random.below(KEYS));
        if let Some(hit) = cache.get(&key).unwrap() {
            assert_eq!(version_of(&key, &hit), 1);
        }
    }
}

/// Lets the child read until the tier has as much as is wanted. The tier checks its memory every 100 ms.
fn read_until(child: &mut Child, wanted: impl Fn(u64) -> bool) -> u64 {
    let start = Instant::now();
    loop {
        let present: u64 = child.hear().parse().unwrap();
        if wanted(present) {
            return present;
        }
        if start.elapsed() > PATIENCE {
            let stalled = fs::read_to_string("/proc/pressure/memory");
            panic!(
                "the tier never had what was wanted, but {present} bytes; the machine waits for memory: {stalled:?}"
            );
        }
        child.tell("more");
    }
}

#[test]
fn under_a_lowered_limit_the_tier_shrinks_and_the_process_lives() {
    let _turn = turn();
    let group = match Group::make() {
        Ok(group) => group,
        Err(why) => return println!("skipped: no control group can be made: {why}"),
    };
    let place = Tiered { volume: common::disk_folder(), tier: common::fast_folder() };
    let arguments = [place.path(), place.tier.path().to_owned()];
    let [volume, tier] = [0, 1].map(|path| arguments[path].to_str().unwrap());
    let mut child = Child::start("cramped", &[volume, tier]);
    child.expect("ready");
    if let Err(error) = group.add(child.id()) {
        return println!("skipped: no process can be moved into {}: {error}", group.folder.display());
    }
    child.tell("go");
    let file = || fs::metadata(place.tier.path().join(&place.left()[0])).unwrap();
    let blocks = || std::os::unix::fs::MetadataExt::blocks(&file()) * 512;
    let full = read_until(&mut child, |present| present > TIER * 9 / 10);
    let (used, taken) = (group.used(), blocks());
    println!("full: {full} bytes of the tier, {taken} in blocks, {used} used by the group");
    assert!(taken > TIER * 9 / 10);
    // The memory in use is more than 90 % of it.
    group.limit_to(used * 100 / 92).unwrap();
    child.tell("more");
    let less = read_until(&mut child, |present| present < full);
    println!("pressed: {less} bytes of the tier, {} in blocks, {} used", blocks(), group.used());
    assert!(blocks() <= taken - (full - less) + MIB);
    if soak(false, true) {
        // If the group tells who waited, the kernel's average needs half a minute to forget.
        group.limit_to(512 * MIB).unwrap();
        child.tell("more");
        let again = read_until(&mut child, |present| present > less);
        println!("relieved: {again} bytes of the tier, {} in blocks", blocks());
    }
    assert!(file().len() == TIER, "the file has kept its length");
    child.tell("end");
    child.finish();
    assert!(place.left().is_empty());
}
