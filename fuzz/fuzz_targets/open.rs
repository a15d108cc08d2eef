//! Arbitrary bytes over a small valid volume: opening and using it never crashes, and what is found under a key has
//! that key.
#![no_main]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::LazyLock;

use eyewall::{Cache, Change, Options, PutOptions};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

const KEYS: u32 = 60;
/// The superblock's checksum, and what it covers.
const CHECKSUM_AT: usize = 144;

struct Volume {
    path: PathBuf,
    file: File,
    template: Vec<u8>,
    /// Removed at the end.
    _folder: TempDir,
}

static VOLUME: LazyLock<Volume> = LazyLock::new(|| make_volume().expect("a volume in a folder of our own"));

fn make_volume() -> Result<Volume, Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let path = folder.path().join("volume");
    for attachment in 0..2_u32 {
        let cache = Options::new().size(512 << 10).entry_size_hint(4096).open(&path)?;
        for number in 0..4 * KEYS {
            let value = vec![number as u8; (number * 37 % 5000) as usize];
            cache.put(key(number % KEYS + attachment), value)?;
            cache.get(key(number % 7))?;
        }
        cache.put("large", vec![7; 20_000])?;
        cache.remove(key(3))?;
    }
    let template = std::fs::read(&path)?;
    let file = File::options().write(true).open(&path)?;
    Ok(Volume { path, file, template, _folder: folder })
}

fn key(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

/// The first byte says what to do; then come patches: offset (3 bytes), length (1 byte), bytes.
fn patch(bytes: &mut [u8], mut data: &[u8], from: usize) {
    while let [low, middle, high, count, rest @ ..] = data {
        let at = from + (u32::from_le_bytes([*low, *middle, *high, 0]) as usize) % (bytes.len() - from);
        let count = (*count as usize % 64).min(rest.len()).min(bytes.len() - at);
        bytes[at..at + count].copy_from_slice(&rest[..count]);
        data = &rest[count..];
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((mode, data)) = data.split_first() else { return };
    let volume = &*VOLUME;
    let mut bytes = volume.template.clone();
    // Most inputs leave the superblock alone, some make its checksum right.
    patch(&mut bytes, data, if mode & 3 == 0 { 0 } else { CHECKSUM_AT + 8 });
    if mode & 4 == 0 {
        let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&sum.to_le_bytes());
    }
    volume.file.write_all_at(&bytes, 0).expect("a file of our own");
    if mode & 8 != 0
        && let Ok(cache) = Options::new().read_only(true).open(&volume.path)
    {
        read(&cache);
    }
    if let Ok(cache) = Options::new().open(&volume.path) {
        read(&cache);
        write(&cache);
        read(&cache);
    }
});

fn read(cache: &Cache) {
    let mut sum = 0_u8;
    for number in 0..KEYS {
        if let Ok(Some(hit)) = cache.get(key(number)) {
            assert_eq!(hit.key(), key(number));
            sum = hit.iter().fold(sum, |sum, byte| sum.wrapping_add(*byte));
        }
    }
    for hit in cache.iter().take(1000) {
        sum = hit.key().iter().chain(hit.metadata()).fold(sum, |sum, byte| sum.wrapping_add(*byte));
    }
    std::hint::black_box(sum);
    let _ = std::hint::black_box(cache.stats());
    let _ = std::hint::black_box(cache.verify());
}

fn write(cache: &Cache) {
    let held = cache.get(key(5));
    for number in 0..2 * KEYS {
        let value = vec![1; (number * 101 % 4000) as usize];
        let _ = cache.put(key(number), value);
        if number % 16 == 0 {
            let _ = cache.remove(key(number / 2));
            let _ = cache.update(key(number), &PutOptions::new(), |_| Change::Put(vec![2; 9000]));
        }
    }
    drop(held);
    let _ = cache.clear();
}
