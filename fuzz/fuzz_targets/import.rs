//! Arbitrary bytes as the stream of an export: nothing panics, nothing takes memory for bytes that don't come, and the volume
//! stays sound.
#![no_main]

use eyewall::{Cache, Import, Options};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

const HEADER_BYTES: usize = 32;
const ENTRY_HEAD_BYTES: usize = 40;

/// Puts right sums into what looks like a stream, so that what lies behind them is met.
fn with_sums(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() < HEADER_BYTES {
        return bytes;
    }
    bytes[..8].copy_from_slice(b"EYEXPORT");
    bytes[8..16].copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
    let sum = xxh3_64(&bytes[..24]);
    bytes[24..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
    let mut at = HEADER_BYTES;
    while let Some(head) = bytes.get(at..at + ENTRY_HEAD_BYTES).filter(|head| head[0] == 1) {
        let half = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
        // Values are short here: a long one would swallow the rest.
        let (value, parts) = (usize::from(head[8]), half(2) % 64 + half(4) % 64 + half(6) % 64);
        for (at, length) in [(at + 2, half(2) % 64), (at + 4, half(4) % 64), (at + 6, half(6) % 64)] {
            bytes[at..at + 2].copy_from_slice(&(length as u16).to_le_bytes());
        }
        bytes[at + 9..at + 16].fill(0);
        let end = at + ENTRY_HEAD_BYTES + parts + value;
        if end + 8 > bytes.len() {
            break;
        }
        let sum = xxh3_64(&bytes[at..end]);
        bytes[end..end + 8].copy_from_slice(&sum.to_le_bytes());
        at = end + 8;
    }
    bytes
}

fn import(cache: &Cache, bytes: &[u8], keep: bool) {
    let _ = cache.import(bytes, &Import::new().keep(keep));
    assert!(cache.verify().is_ok_and(|report| report.is_sound()));
    for hit in cache.iter_all() {
        std::hint::black_box((hit.tags().count(), hit.age(), hit.usable_left(), hit.reason()));
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((mode, data)) = data.split_first() else { return };
    let Ok(cache) = Options::new().size(512 << 10).heap() else { return };
    let bytes = if mode & 1 == 0 { with_sums(data.to_vec()) } else { data.to_vec() };
    import(&cache, &bytes, mode & 2 != 0);
    // The stored entries can be moved again.
    let mut again = Vec::new();
    if cache.export(&mut again).is_ok() {
        import(&cache, &again, false);
    }
});
