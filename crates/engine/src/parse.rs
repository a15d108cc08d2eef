//! Runs every parser of the format over arbitrary bytes, for the fuzz targets.

use std::sync::atomic::Ordering::Relaxed;

use eyewall_region::Region;

use crate::format::origin::Origin;
use crate::format::owner::Owner;
use crate::format::record::{HEADER_BYTES, Head, RECORD_BYTES_MIN, Record};
use crate::format::slot::Slot;
use crate::format::superblock::Superblock;
use crate::format::tags::Tags;
use crate::volume::Volume;

/// Parses `bytes` as everything that a volume holds.
///
/// # Panics
/// If something that was parsed changes when it is written and parsed again.
pub fn parse(bytes: &[u8]) {
    parse_superblock(bytes);
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|chunk| chunk.iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte)))
        .collect();
    for word in &words {
        parse_word(*word);
    }
    let _ = Tags::read(bytes).map(|tags| tags.hashes().count() + tags.names().count());
    if let Some((origin, rest)) = Origin::read(bytes) {
        assert_eq!([rest, &origin.bytes()].concat(), bytes);
    }
    for header in words.chunks_exact(RECORD_BYTES_MIN as usize / 8) {
        let region = Region::heap(RECORD_BYTES_MIN as usize);
        for (number, word) in header.iter().enumerate() {
            region.word(number * 8).store(*word, Relaxed);
        }
        let record = Record::at(&region, 0);
        let header = record.header();
        assert!(record.lengths().record_bytes() >= HEADER_BYTES);
        record.set_header(&header);
        assert_eq!(record.header(), header);
        let times = header.times;
        assert!(times.outlasts(times) && times.later(1).outlasts(times));
        let _ = (times.phase(header.created_ms, || word_sum(&words)), times.staled());
    }
}

fn word_sum(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

fn parse_superblock(bytes: &[u8]) {
    let _ = Superblock::decode(bytes);
    // Random bytes rarely have the right checksum.
    let mut signed = bytes.to_vec();
    Superblock::sign(&mut signed);
    if let Ok(superblock) = Superblock::decode(&signed) {
        assert!(superblock.layout.is_sound());
        assert_eq!(Superblock::decode(&superblock.encode()), Ok(superblock));
    }
}

fn parse_word(word: u64) {
    if let Some(head) = Head::from_word(word) {
        assert_eq!(Head::from_word(head.word()), Some(head));
    }
    if let Some(owner) = Owner::from_word(word as u32) {
        assert_eq!(Owner::from_word(owner.word()), Some(owner));
    }
    let slot = Slot(word);
    assert!(slot.same_record(slot.with_frequency(7)) && !(slot.is_live() && slot.is_ghost()));
    let _ = slot.is_void(word, word >> 8);
    if let Some((stripe, position)) = Volume::pinned(word) {
        assert_eq!(Volume::pinned(Volume::pin_word(stripe, position)), Some((stripe, position)));
    }
}
