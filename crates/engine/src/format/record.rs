//! A record: what a ring is made of. An entry, a promise of one, or filler.
//!
//! ```text
//!        0        8        16       24       32       40
//! +-------+--------+--------+--------+--------+-------- - - -+-------- - -+------- - - -+--+
//! | head  |mac|sum | created| lengths| expires| key          | metadata   | value       |  |
//! +-------+--------+--------+--------+--------+-------- - - -+-------- - -+------- - - -+--+
//! head:    kind 8 | 0, 8 | serial, or owner and check, or filler length and check 48
//! created: milliseconds since 1970, 48 | key length 16
//! lengths: value length 32 | metadata length 16 | generation that verified it 16
//! ```

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use eyewall_region::Region;

use super::UNIT_BYTES;
use super::owner::Owner;

/// Bytes before an entry's key.
pub(crate) const HEADER_BYTES: u64 = 40;
const HEADER_WORDS: usize = 5;
const _: () = assert!(HEADER_WORDS as u64 * 8 == HEADER_BYTES);
/// Numbers of the header's words.
const HEAD: usize = 0;
const SUMS: usize = 1;
const CREATED: usize = 2;
const LENGTHS: usize = 3;
const EXPIRES: usize = 4;
/// The key length field has 16 bits.
pub(crate) const KEY_BYTES_MAX: usize = 0xffff;
/// The metadata length field has 16 bits.
pub(crate) const METADATA_BYTES_MAX: usize = 0xffff;

const PAYLOAD_BITS: u32 = 48;
const PAYLOAD_MASK: u64 = (1 << PAYLOAD_BITS) - 1;
const KIND_SHIFT: u32 = 56;

const FILLER_UNITS: u64 = (1 << 34) - 1;
/// 2^64 divided by the golden ratio: its products mix bits well.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

const FILLER: u64 = 1;
const PENDING: u64 = 2;
const ENTRY: u64 = 3;

/// What a record's first word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// Nothing, for so many bytes.
    Filler(u64),
    /// Space that its owner is filling; and a check of its lengths, for which no MAC vouches yet.
    Pending(Owner, u16),
    /// An entry, of this serial; live if, and only if, a slot points at it.
    Entry(u64),
}

impl Head {
    pub(crate) fn word(self) -> u64 {
        let (kind, payload) = match self {
            Self::Filler(bytes) => (FILLER, checked_filler(bytes / UNIT_BYTES)),
            Self::Pending(owner, check) => (PENDING, u64::from(owner.word()) | (u64::from(check) << 32)),
            Self::Entry(serial) => (ENTRY, serial),
        };
        (kind << KIND_SHIFT) | (payload & PAYLOAD_MASK)
    }

    pub(crate) fn from_word(word: u64) -> Option<Self> {
        let payload = word & PAYLOAD_MASK;
        match word >> PAYLOAD_BITS {
            kind if kind == FILLER << 8 => {
                let units = payload & FILLER_UNITS;
                (checked_filler(units) == payload).then_some(Self::Filler(units * UNIT_BYTES))
            }
            kind if kind == PENDING << 8 => {
                Some(Self::Pending(Owner::from_word(payload as u32)?, (payload >> 32) as u16))
            }
            kind if kind == ENTRY << 8 => Some(Self::Entry(payload)),
            _ => None,
        }
    }
}

/// A filler's length in units, with 14 bits of a check above: nothing else vouches for it.
fn checked_filler(units: u64) -> u64 {
    (units & FILLER_UNITS) | ((units ^ FILLER_UNITS).wrapping_mul(GOLDEN) >> 50 << 34)
}

/// How long the parts of an entry are, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub(crate) key: u64,
    pub(crate) metadata: u64,
    pub(crate) value: u64,
}

impl Lengths {
    /// All bytes of the record: header, parts, and up to 7 bytes of padding.
    #[inline]
    pub(crate) fn record_bytes(self) -> u64 {
        (HEADER_BYTES + self.key + self.metadata + self.value).next_multiple_of(UNIT_BYTES)
    }

    /// Tells these lengths from damaged ones.
    pub(crate) fn check(self) -> u16 {
        (((self.key << 48) | (self.metadata << 32) | self.value).wrapping_add(1).wrapping_mul(GOLDEN) >> 48) as u16
    }
}

/// The words of a header, before or after they stand in the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) lengths: Lengths,
    pub(crate) mac: u32,
    pub(crate) checksum: u32,
    pub(crate) created_ms: u64,
    /// 0: never.
    pub(crate) expires_ms: u64,
    pub(crate) generation: u16,
}

/// The record at a byte offset of the region.
///
/// Its header lies inside the region (checked once, here); how far its body reaches is for the caller to
/// check before it follows the lengths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    region: &'a Region,
    words: &'a [AtomicU64; HEADER_WORDS],
    pub(crate) offset: usize,
}

impl<'a> Record<'a> {
    /// # Panics
    /// If no header fits at `offset`: a bug of the caller.
    #[inline]
    pub(crate) fn at(region: &'a Region, offset: usize) -> Self {
        Self { region, words: region.words(offset), offset }
    }

    /// As [`Record::at`], for an offset that was checked already.
    ///
    /// # Safety
    /// A header fits between `offset`, which is a multiple of 8, and the region's end.
    #[inline]
    pub(crate) unsafe fn at_checked(region: &'a Region, offset: usize) -> Self {
        debug_assert!(offset.is_multiple_of(8) && offset + HEADER_BYTES as usize <= region.len());
        // SAFETY: in bounds and aligned, as the caller says; all access to words is atomic.
        let words = unsafe { &*region.address(offset).cast::<[AtomicU64; HEADER_WORDS]>() };
        Self { region, words, offset }
    }

    #[inline]
    pub(crate) fn head(&self) -> Option<Head> {
        Head::from_word(self.words[HEAD].load(Acquire))
    }

    pub(crate) fn set_head(&self, head: Head) {
        self.words[HEAD].store(head.word(), Release);
    }

    #[inline]
    pub(crate) fn lengths(&self) -> Lengths {
        let lengths = self.words[LENGTHS].load(Relaxed);
        Lengths {
            key: self.words[CREATED].load(Relaxed) >> PAYLOAD_BITS,
            metadata: (lengths >> 32) & 0xffff,
            value: lengths & 0xffff_ffff,
        }
    }

    pub(crate) fn header(&self) -> Header {
        let sums = self.words[SUMS].load(Relaxed);
        Header {
            lengths: self.lengths(),
            mac: sums as u32,
            checksum: (sums >> 32) as u32,
            created_ms: self.created_ms(),
            expires_ms: self.expires_ms(),
            generation: self.generation(),
        }
    }

    /// Stores all of the header but its first word, which makes it a record.
    pub(crate) fn set_header(&self, header: &Header) {
        let lengths = header.lengths;
        let stores = [
            (SUMS, u64::from(header.mac) | (u64::from(header.checksum) << 32)),
            (CREATED, (header.created_ms & PAYLOAD_MASK) | (lengths.key << PAYLOAD_BITS)),
            (LENGTHS, lengths.value | (lengths.metadata << 32) | (u64::from(header.generation) << 48)),
            (EXPIRES, header.expires_ms),
        ];
        for (word, value) in stores {
            self.words[word].store(value, Relaxed);
        }
    }

    pub(crate) fn created_ms(&self) -> u64 {
        self.words[CREATED].load(Relaxed) & PAYLOAD_MASK
    }

    #[inline]
    pub(crate) fn expires_ms(&self) -> u64 {
        self.words[EXPIRES].load(Relaxed)
    }

    /// The generation in which this record was written or last verified.
    #[inline]
    pub(crate) fn generation(&self) -> u16 {
        (self.words[LENGTHS].load(Relaxed) >> 48) as u16
    }

    /// Of several that verify at once, each stores the same word: the lengths beside it don't change.
    pub(crate) fn set_generation(&self, generation: u16) {
        let lengths = self.words[LENGTHS].load(Relaxed) & PAYLOAD_MASK;
        self.words[LENGTHS].store(lengths | (u64::from(generation) << 48), Relaxed);
    }

    /// Offset of the key; metadata and value follow it without gaps.
    #[inline]
    pub(crate) fn body(&self) -> usize {
        self.offset + HEADER_BYTES as usize
    }

    /// The key's bytes.
    ///
    /// # Safety
    /// The record can't be reclaimed meanwhile: it is pinned, or its stripe is locked and it is live.
    pub(crate) unsafe fn key(&self) -> &'a [u8] {
        // SAFETY: the caller keeps the bytes as they are.
        unsafe { self.region.bytes(self.body(), self.lengths().key as usize) }
    }
}

/// Whether an entry has lived its time at `now_ms`.
///
/// An entry that expires and was created in the future counts as expired: the clock went back to before its put.
#[inline]
pub(crate) fn is_expired(created_ms: u64, expires_ms: u64, now_ms: impl FnOnce() -> u64) -> bool {
    if expires_ms == 0 {
        return false;
    }
    let now = now_ms();
    now >= expires_ms || created_ms > now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_words_survive_packing() {
        let owner = Owner { process: 3, incarnation: 9 };
        for head in [Head::Filler(1 << 36), Head::Pending(owner, 0xfedc), Head::Entry((1 << 48) - 1)] {
            assert_eq!(Head::from_word(head.word()), Some(head));
        }
        for word in [0, u64::MAX, 4 << KIND_SHIFT, (ENTRY << KIND_SHIFT) | (1 << PAYLOAD_BITS)] {
            assert_eq!(Head::from_word(word), None);
        }
    }

    #[test]
    fn a_flip_in_a_fillers_length_is_noticed() {
        let noticed = (1..2000_u64)
            .flat_map(|units| (0..48).map(move |bit| Head::Filler(units * UNIT_BYTES).word() ^ (1 << bit)))
            .filter(|word| Head::from_word(*word).is_none())
            .count();
        assert!(noticed > 1999 * 48 - 20, "{noticed} of {}", 1999 * 48);
    }

    #[test]
    fn headers_survive_packing() {
        let region = Region::heap(4096);
        let record = Record::at(&region, 64);
        let header = Header {
            lengths: Lengths { key: 0xffff, metadata: 0xfffe, value: 0xffff_fffd },
            mac: 1,
            checksum: 2,
            created_ms: 1 << 47,
            expires_ms: 77,
            generation: 0xfffc,
        };
        record.set_header(&header);
        assert_eq!(record.header(), header);
    }

    #[test]
    fn an_entry_from_the_future_is_expired_if_it_expires_at_all() {
        assert!(!is_expired(1000, 0, || 10));
        assert!(!is_expired(1000, 2000, || 1999));
        assert!(is_expired(1000, 2000, || 2000));
        assert!(is_expired(1000, 2000, || 999));
    }
}
