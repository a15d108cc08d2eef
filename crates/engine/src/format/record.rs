//! Records, of which rings consist: an entry, room for one, or filler.
//!
//! ```text
//!        0        8        16       24       32       40   44
//! +-------+--------+--------+--------+--------+------+-------- - - -+-------- - -+------- - - -+--+
//! | head  |mac|sum | created| lengths| times  |epoch | key          | metadata   | value       |  |
//! +-------+--------+--------+--------+--------+------+-------- - - -+-------- - -+------- - - -+--+
//! head:    kind 8 | lap 6 | flags 2 | serial 48; or kind 8 | 0, 8 | length and its check 48
//! created: milliseconds of the volume's time, 48 | key length 16
//! lengths: value length 32 | metadata length 16 | generation that verified it 16
//! ```

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use eyewall_region::Region;

use super::UNIT_BYTES;
use super::times::Times;

/// Bytes before an entry's key.
pub(crate) const HEADER_BYTES: u64 = 44;
/// The shortest record with a header: an entry whose key has up to four bytes.
pub(crate) const RECORD_BYTES_MIN: u64 = HEADER_BYTES.next_multiple_of(UNIT_BYTES);
/// The words that the header lies in. The epoch takes the first half of the last word, and the key begins in the
/// other half.
const HEADER_WORDS: usize = 6;
const _: () = assert!(HEADER_WORDS as u64 * 8 == RECORD_BYTES_MIN);
/// Numbers of the header's words.
const HEAD: usize = 0;
const SUMS: usize = 1;
const CREATED: usize = 2;
const LENGTHS: usize = 3;
const TIMES: usize = 4;
const EPOCH: usize = 5;
const _: () = assert!(EPOCH as u64 * 8 + 4 == HEADER_BYTES);
/// The key length field has 16 bits.
pub(crate) const KEY_BYTES_MAX: usize = 0xffff;
/// The metadata length field has 16 bits.
pub(crate) const METADATA_BYTES_MAX: usize = 0xffff;

const PAYLOAD_BITS: u32 = 48;
const PAYLOAD_MASK: u64 = (1 << PAYLOAD_BITS) - 1;
const KIND_SHIFT: u32 = 56;

const ROOM_UNITS: u64 = (1 << 34) - 1;
/// 2^64 divided by the golden ratio: its products mix bits well.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

const FILLER: u64 = 1;
const ROOM: u64 = 2;
const ENTRY: u64 = 3;

/// Properties of an entry, and the lap in which it was written: bits of its first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flags(pub(crate) u8);

impl Flags {
    /// A negative entry: its value is a reason code.
    pub(crate) const NEGATIVE: Self = Self(1);
    /// Its metadata ends in tags.
    pub(crate) const TAGGED: Self = Self(2);
    const ALL: u8 = 3;
    const LAP_SHIFT: u32 = 2;

    #[inline]
    pub(crate) fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) fn with(self, flag: Self) -> Self {
        Self(self.0 | flag.0)
    }

    /// The low bits of the ring's lap in which the record was written. Its slot has the same bits. After power loss,
    /// a slot may be newer or older than the bytes that it names.
    #[inline]
    pub(crate) fn lap(self) -> u64 {
        u64::from(self.0 >> Self::LAP_SHIFT)
    }

    pub(crate) fn with_lap(self, lap: u64) -> Self {
        Self((self.0 & Self::ALL) | ((lap as u8) << Self::LAP_SHIFT))
    }

    /// Whether it is an entry like most, neither negative nor tagged.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        self.0 & Self::ALL == 0
    }
}

/// The content of a record's first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// Filler of this many bytes.
    Filler(u64),
    /// Room of this many bytes, which somebody is filling and holds by a pin. Its other words aren't valid yet.
    Room(u64),
    /// An entry with this serial. It is live if, and only if, a slot points at it.
    Entry(u64, Flags),
}

impl Head {
    pub(crate) fn word(self) -> u64 {
        let (kind, payload) = match self {
            Self::Filler(bytes) => (FILLER, checked_length(FILLER, bytes / UNIT_BYTES)),
            Self::Room(bytes) => (ROOM, checked_length(ROOM, bytes / UNIT_BYTES)),
            Self::Entry(serial, flags) => (ENTRY, (serial & PAYLOAD_MASK) | (u64::from(flags.0) << PAYLOAD_BITS)),
        };
        (kind << KIND_SHIFT) | payload
    }

    #[inline]
    pub(crate) fn from_word(word: u64) -> Option<Self> {
        let payload = word & PAYLOAD_MASK;
        let flags = (word >> PAYLOAD_BITS) as u8;
        let bytes = (payload & ROOM_UNITS) * UNIT_BYTES;
        let has_length = |kind| flags == 0 && checked_length(kind, payload) == payload;
        match word >> KIND_SHIFT {
            FILLER => has_length(FILLER).then_some(Self::Filler(bytes)),
            ROOM => has_length(ROOM).then_some(Self::Room(bytes)),
            ENTRY => Some(Self::Entry(payload, Flags(flags))),
            _ => None,
        }
    }
}

/// A length in units, with 14 bits of a check above, since nothing else protects it.
fn checked_length(kind: u64, units: u64) -> u64 {
    let units = units & ROOM_UNITS;
    units | ((units ^ ROOM_UNITS ^ (kind << 32)).wrapping_mul(GOLDEN) >> 50 << 34)
}

/// The lengths of an entry's parts, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub(crate) key: u64,
    pub(crate) metadata: u64,
    pub(crate) value: u64,
}

impl Lengths {
    /// The bytes of the record: header, parts, and up to 7 bytes of padding.
    #[inline]
    pub(crate) fn record_bytes(self) -> u64 {
        (HEADER_BYTES + self.key + self.metadata + self.value).next_multiple_of(UNIT_BYTES)
    }

    /// Whether the record takes at most this many bytes, a multiple of [`UNIT_BYTES`].
    #[inline]
    pub(crate) fn fit_into(self, room: u64) -> bool {
        debug_assert!(room.is_multiple_of(UNIT_BYTES));
        // Rounding up can't lead over a multiple.
        HEADER_BYTES + self.key + self.metadata + self.value <= room
    }
}

/// The fields of a header, outside of the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) serial: u64,
    pub(crate) flags: Flags,
    pub(crate) lengths: Lengths,
    pub(crate) mac: u32,
    pub(crate) checksum: u32,
    pub(crate) created_ms: u64,
    pub(crate) times: Times,
    pub(crate) generation: u16,
    /// The purge epoch in which the work on the entry began.
    pub(crate) epoch: u32,
}

/// The record at a byte offset of the region.
///
/// Its header lies inside the region, which is checked here, once. The caller must check how far its body reaches
/// before it follows the lengths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    region: &'a Region,
    words: &'a [AtomicU64; HEADER_WORDS],
    pub(crate) offset: usize,
}

impl<'a> Record<'a> {
    /// # Panics
    /// If no header fits at `offset`, which is a bug of the caller.
    #[inline]
    pub(crate) fn at(region: &'a Region, offset: usize) -> Self {
        Self { region, words: region.words(offset), offset }
    }

    /// Like [`Record::at`], for an offset that was checked already.
    ///
    /// # Safety
    /// `offset` is a multiple of 8, and a header fits between it and the region's end.
    #[inline]
    pub(crate) unsafe fn at_checked(region: &'a Region, offset: usize) -> Self {
        debug_assert!(offset.is_multiple_of(8) && offset + RECORD_BYTES_MIN as usize <= region.len());
        // SAFETY: in bounds and aligned, by the caller's promise. All access to words is atomic.
        let words = unsafe { &*region.address(offset).cast::<[AtomicU64; HEADER_WORDS]>() };
        Self { region, words, offset }
    }

    #[inline]
    pub(crate) fn head(&self) -> Option<Head> {
        Head::from_word(self.words[HEAD].load(Acquire))
    }

    /// The flags of the entry, if this is one that was written in that lap.
    #[inline]
    pub(crate) fn flags_of_lap(&self, lap: u64) -> Option<Flags> {
        self.head_of_lap(lap).map(|word| Flags((word >> PAYLOAD_BITS) as u8))
    }

    /// The serial of the entry, if this is one that was written in that lap.
    #[inline]
    pub(crate) fn serial_of_lap(&self, lap: u64) -> Option<u64> {
        self.head_of_lap(lap).map(|word| word & PAYLOAD_MASK)
    }

    #[inline]
    fn head_of_lap(&self, lap: u64) -> Option<u64> {
        const LAP_SHIFT: u32 = PAYLOAD_BITS + Flags::LAP_SHIFT;
        let word = self.words[HEAD].load(Acquire);
        (word >> LAP_SHIFT == (ENTRY << (KIND_SHIFT - LAP_SHIFT)) | lap).then_some(word)
    }

    pub(crate) fn set_head(&self, head: Head) {
        self.words[HEAD].store(head.word(), Release);
    }

    #[inline]
    pub(crate) fn lengths(&self) -> Lengths {
        self.lengths_and_generation().0
    }

    /// The header of an entry. For anything else, serial and flags are zero.
    pub(crate) fn header(&self) -> Header {
        let sums = self.words[SUMS].load(Relaxed);
        let (serial, flags) = match self.head() {
            Some(Head::Entry(serial, flags)) => (serial, flags),
            _ => (0, Flags::default()),
        };
        Header {
            serial,
            flags,
            lengths: self.lengths(),
            mac: sums as u32,
            checksum: (sums >> 32) as u32,
            created_ms: self.created_ms(),
            times: self.times(),
            generation: self.generation(),
            epoch: self.epoch(),
        }
    }

    /// Stores the header, except its first word, which makes it a record.
    pub(crate) fn set_header(&self, header: &Header) {
        let lengths = header.lengths;
        let stores = [
            (SUMS, u64::from(header.mac) | (u64::from(header.checksum) << 32)),
            (CREATED, (header.created_ms & PAYLOAD_MASK) | (lengths.key << PAYLOAD_BITS)),
            (LENGTHS, lengths.value | (lengths.metadata << 32) | (u64::from(header.generation) << 48)),
            (TIMES, header.times.0),
        ];
        for (word, value) in stores {
            self.words[word].store(value, Relaxed);
        }
        self.half().store(header.epoch, Relaxed);
    }

    /// The epoch's half of the last word. Nothing loads that word as a whole, since its other half holds plain bytes
    /// of the key.
    #[inline]
    fn half(&self) -> &'a AtomicU32 {
        let word = self.words[EPOCH].as_ptr();
        // SAFETY: the first half of a word that lives as long. This half is only ever accessed in this way.
        unsafe { AtomicU32::from_ptr(word.cast()) }
    }

    pub(crate) fn created_ms(&self) -> u64 {
        self.words[CREATED].load(Relaxed) & PAYLOAD_MASK
    }

    #[inline]
    pub(crate) fn times(&self) -> Times {
        Times(self.words[TIMES].load(Relaxed))
    }

    /// Called under the stripe's lock. Readers see either the old times or the new.
    pub(crate) fn set_times(&self, times: Times) {
        self.words[TIMES].store(times.0, Relaxed);
    }

    #[inline]
    pub(crate) fn epoch(&self) -> u32 {
        self.half().load(Relaxed)
    }

    /// Called under the stripe's lock.
    pub(crate) fn set_epoch(&self, epoch: u32) {
        self.half().store(epoch, Relaxed);
    }

    /// The lengths together with the generation, so that their word is loaded once.
    #[inline]
    pub(crate) fn lengths_and_generation(&self) -> (Lengths, u16) {
        let lengths = self.words[LENGTHS].load(Relaxed);
        let key = self.words[CREATED].load(Relaxed) >> PAYLOAD_BITS;
        let lengths_of = Lengths { key, metadata: (lengths >> 32) & 0xffff, value: lengths & 0xffff_ffff };
        (lengths_of, (lengths >> 48) as u16)
    }

    /// The generation in which this record was written or last verified.
    #[inline]
    pub(crate) fn generation(&self) -> u16 {
        (self.words[LENGTHS].load(Relaxed) >> 48) as u16
    }

    /// If several verify at once, each stores the same word, since the lengths beside it don't change.
    pub(crate) fn set_generation(&self, generation: u16) {
        let lengths = self.words[LENGTHS].load(Relaxed) & PAYLOAD_MASK;
        self.words[LENGTHS].store(lengths | (u64::from(generation) << 48), Relaxed);
    }

    /// Offset of the key. Metadata and value follow it without gaps.
    #[inline]
    pub(crate) fn body(&self) -> usize {
        self.offset + HEADER_BYTES as usize
    }

    /// The bytes of the key.
    ///
    /// # Safety
    /// The record can't be reclaimed meanwhile: it is pinned, or it is live and its stripe is locked.
    pub(crate) unsafe fn key(&self) -> &'a [u8] {
        // SAFETY: the caller keeps the bytes unchanged.
        unsafe { self.region.bytes(self.body(), self.lengths().key as usize) }
    }

    /// The bytes of the metadata, with those after the caller's own.
    ///
    /// # Safety
    /// As for [`Record::key`].
    pub(crate) unsafe fn metadata(&self) -> &'a [u8] {
        let lengths = self.lengths();
        // SAFETY: the caller keeps the bytes unchanged.
        unsafe { self.region.bytes(self.body() + lengths.key as usize, lengths.metadata as usize) }
    }

    /// The bytes of the value.
    ///
    /// # Safety
    /// As for [`Record::key`].
    pub(crate) unsafe fn value(&self) -> &'a [u8] {
        let lengths = self.lengths();
        let start = self.body() + (lengths.key + lengths.metadata) as usize;
        // SAFETY: the caller keeps the bytes unchanged.
        unsafe { self.region.bytes(start, lengths.value as usize) }
    }

    #[inline]
    pub(crate) fn flags(&self) -> Flags {
        match self.head() {
            Some(Head::Entry(_, flags)) => flags,
            _ => Flags::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_words_survive_packing() {
        let flags = Flags::NEGATIVE.with(Flags::TAGGED).with_lap(63);
        assert_eq!((flags.lap(), flags.with_lap(64).lap(), flags.is_plain()), (63, 0, false));
        for head in [Head::Filler(1 << 36), Head::Room(1 << 36), Head::Entry((1 << 48) - 1, flags)] {
            assert_eq!(Head::from_word(head.word()), Some(head));
        }
        let of_other_kind = Head::Filler(64).word() ^ ((FILLER ^ ROOM) << KIND_SHIFT);
        for word in [0, u64::MAX, 4 << KIND_SHIFT, (ROOM << KIND_SHIFT) | (4 << PAYLOAD_BITS), of_other_kind] {
            assert_eq!(Head::from_word(word), None);
        }
    }

    #[test]
    fn a_flip_in_a_length_is_noticed() {
        for head in [Head::Filler, Head::Room] {
            let noticed = (1..2000_u64)
                .flat_map(|units| (0..48).map(move |bit| head(units * UNIT_BYTES).word() ^ (1 << bit)))
                .filter(|word| Head::from_word(*word).is_none())
                .count();
            assert!(noticed > 1999 * 48 - 20, "{noticed} of {}", 1999 * 48);
        }
    }

    #[test]
    fn headers_survive_packing() {
        let region = Region::heap(4096);
        let record = Record::at(&region, 64);
        let header = Header {
            serial: 5,
            flags: Flags::TAGGED,
            lengths: Lengths { key: 0xffff, metadata: 0xfffe, value: 0xffff_fffd },
            mac: 1,
            checksum: 2,
            created_ms: 1 << 47,
            times: Times(77),
            generation: 0xfffc,
            epoch: 0xfffb_fffa,
        };
        record.set_header(&header);
        record.set_head(Head::Entry(5, Flags::TAGGED));
        assert_eq!(record.header(), header);
    }
}
