//! A volume's file is damaged in many ways while nobody has it open. Bits flip, spans are overwritten or copied
//! elsewhere, the end is cut off, single words of the tables become impossible. An opener gets an error that says so,
//! or a cache that may miss. It never gets a crash, a hang, another key's bytes or wrong ones.
//!
//! The damage is done in place: the volume stays the same file of the same boot, so it isn't emptied as a copy would
//! be. Rounds run in a child process. If a seed ends it, the test names the seed.
#![cfg(test)]

mod anatomy;
mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use anatomy::{Anatomy, set_word, word};
use common::{Random, fast_folder, soak, value, version_of};
use eyewall::{Cache, Change, Error, Hit, Options, PutOptions};

const KEYS: u64 = 400;

fn key(number: u64) -> String {
    format!("key {number}")
}

fn put(cache: &Cache, number: u64, version: u32, bytes: u64) -> eyewall::Result<u64> {
    let key = key(number);
    let options = match number % 5 {
        0 => PutOptions::new().metadata(b"text/html").ttl(Duration::from_hours(1)).tags(&["one", "another"]),
        1 => PutOptions::new().tags(&["one"]),
        _ => PutOptions::new(),
    };
    cache.put_with(&key, value(key.as_bytes(), version, bytes as usize), &options)
}

/// A value whose bytes are random, short or long.
fn size(random: &mut Random) -> u64 {
    match random.below(20) {
        0 => 5000 + random.below(24_000),
        1..10 => 10 + random.below(200),
        _ => 10 + random.below(2000),
    }
}

/// A volume after some use: both rings have turned, and it holds filler, ghosts, dead and hot entries of several
/// attachments.
fn make_volume(path: &Path) -> Vec<u8> {
    let mut random = Random(1);
    let options = Options::new().size(512 << 10).entry_size_hint(500);
    drop(options.open(path).unwrap());
    anatomy::fix_secret(path);
    for attachment in 0..4 {
        let cache = options.open(path).unwrap();
        let mut held = Vec::new();
        for _ in 0..600 {
            let number = random.below(KEYS);
            // In the second attachment only small ones, so that the index grows, and shrinks again.
            let bytes = if attachment == 1 { 10 + random.below(60) } else { size(&mut random) };
            put(&cache, number, attachment, bytes).unwrap();
            let read = cache.get(key(random.below(KEYS))).unwrap();
            if random.below(30) == 0 {
                held.extend(read);
            }
            held.truncate(6);
            if random.below(20) == 0 {
                cache.remove(key(random.below(KEYS))).unwrap();
            }
        }
        assert!(cache.verify().unwrap().is_sound());
    }
    std::fs::read(path).unwrap()
}

/// Words that are wrong in most places.
fn odd_word(random: &mut Random, anatomy: &Anatomy) -> u64 {
    let near = [0, 1, 8, anatomy.small, anatomy.main, anatomy.size, 1 << 32, 1 << 40, 1 << 48, 1 << 62, u64::MAX];
    match random.below(4) {
        0 => random.next(),
        1 => random.next() >> random.below(64),
        _ => near[random.below(near.len() as u64) as usize].wrapping_add(8 * random.below(5)).wrapping_sub(16),
    }
}

fn change_word(bytes: &mut [u8], at: u64, random: &mut Random, anatomy: &Anatomy) {
    let at = (at & !7).min(bytes.len() as u64 - 8);
    let now = word(bytes, at);
    let changed = match random.below(4) {
        0 => odd_word(random, anatomy),
        1 => now.wrapping_add(8 * (1 + random.below(64))),
        _ => now ^ (1 << random.below(64)),
    };
    set_word(bytes, at, changed);
}

/// The offsets of all records of a ring, as far as its log can be read.
fn records(bytes: &[u8], anatomy: &Anatomy, main: bool) -> Vec<u64> {
    let (head, tail) =
        if main { (anatomy::MAIN_HEAD, anatomy::MAIN_TAIL) } else { (anatomy::SMALL_HEAD, anatomy::SMALL_TAIL) };
    let (head, mut at) = (word(bytes, anatomy.stripe_word(0, head)), word(bytes, anatomy.stripe_word(0, tail)));
    let mut records = Vec::new();
    while at < head && records.len() < 10_000 {
        let offset = if main { anatomy.main_byte(0, at) } else { anatomy.small_byte(0, at) };
        records.push(offset);
        let record = word(bytes, offset);
        at += if record >> 56 < 3 {
            8 * (record & ((1 << 34) - 1))
        } else {
            let lengths = word(bytes, offset + 24);
            let key = word(bytes, offset + 16) >> 48;
            (44 + key + ((lengths >> 32) & 0xffff) + (lengths & 0xffff_ffff)).next_multiple_of(8)
        };
    }
    records
}

/// Slots that name what other slots name, or anything else.
fn damage_slots(bytes: &mut [u8], random: &mut Random, anatomy: &Anatomy) {
    for _ in 0..=random.below(10) {
        let slots = anatomy.slots(bytes, 0);
        let [slot, other] = [(); 2].map(|()| slots[random.below(slots.len() as u64) as usize]);
        if random.below(2) == 0 {
            let copied = word(bytes, other);
            set_word(bytes, slot, copied);
        } else {
            change_word(bytes, slot, random, anatomy);
        }
    }
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let anatomy = Anatomy::of(bytes);
    let len = bytes.len() as u64;
    let first = if random.below(20) == 0 { 0 } else { 160 };
    let anywhere = |random: &mut Random| first + random.below(len - first);
    for _ in 0..=random.below(6) {
        match random.below(18) {
            // Epochs, floors and rules; the table of tags.
            16 => change_word(bytes, 320 + random.below(1216), random, &anatomy),
            17 => {
                change_word(bytes, anatomy.tags_at + random.below(anatomy.data_at - anatomy.tags_at), random, &anatomy);
            }
            0 | 1 => {
                for _ in 0..=random.below(40) {
                    bytes[anywhere(random) as usize] ^= 1 << random.below(8);
                }
            }
            2 => {
                let (from, count) = (anywhere(random), random.below(4000));
                let end = (from + count).min(len) as usize;
                let fill = [0, 0xff, random.next() as u8][random.below(3) as usize];
                bytes[from as usize..end].fill(fill);
            }
            3 | 4 => {
                // Spliced, mostly at word boundaries, as by storage that mixes up its blocks.
                let mask = if random.below(4) == 0 { 0 } else { 7 };
                let (from, to) = (anywhere(random) & !mask, anywhere(random) & !mask);
                let count = random.below(8192).min(len - from.max(to));
                let span = bytes[from as usize..(from + count) as usize].to_vec();
                if to >= first {
                    bytes[to as usize..(to + count) as usize].copy_from_slice(&span);
                }
            }
            5 if random.below(4) == 0 => {
                bytes.truncate(random.below(len) as usize);
                return;
            }
            5 | 6 => change_word(bytes, 192 + random.below(88), random, &anatomy),
            7 => {
                let at = anatomy.stripe_word(0, anatomy::SMALL_HEAD + 8 * random.below(4));
                change_word(bytes, at, random, &anatomy);
            }
            8 => change_word(bytes, anatomy.stripe_word(0, random.below(512)), random, &anatomy),
            9 => change_word(
                bytes,
                anatomy.threads_at + random.below(anatomy.stripes_at - anatomy.threads_at),
                random,
                &anatomy,
            ),
            10 => change_word(bytes, anatomy.processes_at + random.below(192), random, &anatomy),
            11 => change_word(bytes, anatomy.claims_at + random.below(256), random, &anatomy),
            12 | 13 => {
                damage_slots(bytes, random, &anatomy);
            }
            _ => damage_record(bytes, random, &anatomy),
        }
    }
}

/// Damages a word of a record's header, with filler and room more often than at random.
fn damage_record(bytes: &mut [u8], random: &mut Random, anatomy: &Anatomy) {
    let records = records(bytes, anatomy, random.below(3) > 0);
    if records.is_empty() {
        return;
    }
    let fillers: Vec<_> = records.iter().filter(|at| word(bytes, **at) >> 56 < 3).collect();
    let record = match fillers.len() as u64 {
        fillers_count @ 1.. if random.below(2) == 0 => *fillers[random.below(fillers_count) as usize],
        _ => records[random.below(records.len() as u64) as usize],
    };
    change_word(bytes, record + 8 * random.below(6), random, anatomy);
}

fn check(hit: &Hit<'_>) {
    version_of(hit.key(), hit);
}

fn read_all(cache: &Cache) -> u64 {
    let mut found = 0;
    for number in 0..KEYS + 100 {
        if let Some(hit) = cache.get(key(number)).unwrap() {
            assert_eq!(hit.key(), key(number).as_bytes());
            check(&hit);
            found += 1;
        }
    }
    cache.iter().for_each(|hit| check(&hit));
    found
}

/// A call that is refused while hits are held may also be refused on a damaged volume.
fn allow_pinned<T>(result: eyewall::Result<T>, held: usize) {
    match result {
        Err(Error::Pinned { .. }) if held > 0 => {}
        other => drop(other.unwrap()),
    }
}

fn work(cache: &Cache, random: &mut Random) {
    let hold = random.below(2) == 0;
    let mut held = Vec::new();
    for step in 0..250 {
        let number = random.below(KEYS + 100);
        match random.below(12) {
            0..6 => allow_pinned(put(cache, number, step, size(random)), held.len()),
            6..9 => {
                if let Some(hit) = cache.get(key(number)).unwrap() {
                    check(&hit);
                    held.extend(hold.then_some(hit));
                }
                held.truncate(30);
            }
            9 => drop(cache.remove(key(number)).unwrap()),
            10 => {
                let bytes = size(random) as usize;
                let name = key(number);
                let updated = cache.update(&name, &PutOptions::new(), |hit| {
                    hit.inspect(|hit| check(hit));
                    Change::Put(value(name.as_bytes(), step, bytes))
                });
                allow_pinned(updated, held.len());
            }
            _ => {
                let bytes = size(random) as usize;
                let name = key(number);
                let added = cache.add(&name, value(name.as_bytes(), step, bytes), &PutOptions::new());
                allow_pinned(added, held.len());
            }
        }
        if step % 25 == 0 {
            held.iter().for_each(check);
        }
    }
    held.iter().for_each(check);
    drop(held);
    for number in 0..20 {
        put(cache, number, 7, 300).unwrap();
        check(&cache.get(key(number)).unwrap().unwrap());
    }
}

fn use_volume(path: &Path, random: &mut Random) {
    if random.below(4) == 0
        && let Ok(cache) = Options::new().read_only(true).open(path)
    {
        read_all(&cache);
        cache.stats().unwrap();
    }
    let cache = match Options::new().open(path) {
        Ok(cache) => cache,
        Err(Error::Corrupt { .. } | Error::Foreign { .. } | Error::Version { .. } | Error::ByteOrder { .. }) => return,
        // Nothing protects the word that says so.
        Err(Error::Moved { path: moved }) if moved == path => return,
        Err(error) => panic!("{error:?}"),
    };
    // Some look before they write, some after.
    if random.below(4) > 0 {
        read_all(&cache);
        cache.stats().unwrap();
        cache.verify().unwrap();
    }
    work(&cache, random);
    cache.stats().unwrap();
    cache.verify().unwrap();
    read_all(&cache);
    drop(cache);
    let cache = Options::new().open(path).unwrap();
    read_all(&cache);
    cache.clear().unwrap();
    assert_eq!(read_all(&cache), 0);
    work(&cache, random);
}

fn rounds(arguments: &[&str]) {
    let whole = std::fs::read(Path::new(arguments[0]).join("template")).unwrap();
    common::each_round(arguments, |folder, seed| {
        let path = folder.join("volume");
        let mut random = Random(seed);
        let mut bytes = whole.clone();
        damage(&mut bytes, &mut random);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        use_volume(&path, &mut random);
    });
}

fn run(first: u64, count: u64) {
    let folder = fast_folder();
    let template = make_volume(&folder.path().join("volume"));
    std::fs::write(folder.path().join("template"), template).unwrap();
    common::play_rounds(folder.path(), first, count);
}

#[test]
fn child() {
    common::play(&[("rounds", rounds)]);
}

#[test]
fn a_damaged_volume_gives_only_errors_and_misses() {
    run(0, soak(750, 5000));
}

#[test]
fn another_damaged_volume_gives_only_errors_and_misses() {
    run(1_000_000, soak(750, 5000));
}
