//! Where the fragments of a body lie, and their keys.

use std::ops::Range;

use eyewall_http::field::range::RangeSpec;

/// The most bytes of a fragment.
pub const FRAGMENT_BYTES_MAX: u64 = 1 << 20;

/// Bytes of a stored layout.
pub const LAYOUT_BYTES: usize = 20;

/// How a large body lies in its fragments: all have the same length, except the last, which may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the body.
    pub length: u64,
    /// Distinguishes the fragments of this head from those of other heads of the same address.
    pub generation: u64,
    /// Bytes of a fragment: 1 to [`FRAGMENT_BYTES_MAX`].
    pub fragment_bytes: u32,
}

impl Layout {
    /// Length, generation and bytes of a fragment, little-endian: part of the format of stored heads.
    pub fn to_bytes(self) -> [u8; LAYOUT_BYTES] {
        let mut bytes = [0; LAYOUT_BYTES];
        bytes[..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.generation.to_le_bytes());
        bytes[16..].copy_from_slice(&self.fragment_bytes.to_le_bytes());
        bytes
    }

    /// None where fragments have no bytes, or too many.
    pub fn from_bytes(bytes: [u8; LAYOUT_BYTES]) -> Option<Self> {
        let (longs, word) = bytes.split_at(16);
        let (longs, _) = longs.as_chunks::<8>();
        let (&[length, generation], &[word]) = (longs, word.as_chunks::<4>().0) else { return None };
        let fragment_bytes = u32::from_le_bytes(word);
        let is_sound = (1..=FRAGMENT_BYTES_MAX).contains(&fragment_bytes.into());
        is_sound.then_some(Self {
            length: u64::from_le_bytes(length),
            generation: u64::from_le_bytes(generation),
            fragment_bytes,
        })
    }

    /// The number of the fragment in which a byte lies.
    pub fn fragment_of(self, position: u64) -> u64 {
        position / u64::from(self.fragment_bytes)
    }

    /// The bytes of a fragment. Empty beyond the end of the body.
    pub fn bytes_of(self, number: u64) -> Range<u64> {
        let bytes = u64::from(self.fragment_bytes);
        let start = number.saturating_mul(bytes).min(self.length);
        start..start.saturating_add(bytes).min(self.length)
    }

    /// The fragments in which these bytes lie.
    pub fn fragments_of(self, bytes: &Range<u64>) -> Range<u64> {
        if bytes.is_empty() {
            return 0..0;
        }
        self.fragment_of(bytes.start)..self.fragment_of(bytes.end - 1) + 1
    }

    /// The prefix of the keys of all its fragments. `address` is the key of the address, which has no blank.
    ///
    /// The character behind the digits never follows the digits in the key of a variant.
    pub fn prefix(self, address: &[u8]) -> Vec<u8> {
        [address, format!(" {:016x}/", self.generation).as_bytes()].concat()
    }
}

/// The key of a fragment.
pub fn key_of(prefix: &[u8], number: u64) -> Vec<u8> {
    [prefix, format!("{number:x}").as_bytes()].concat()
}

/// The length of fragments in a volume with this greatest entry: a power of two that leaves a sixteenth for key and head.
pub fn fragment_bytes(entry_bytes_max: u64) -> u32 {
    let largest = entry_bytes_max.clamp(2, 2 * FRAGMENT_BYTES_MAX);
    let power = 1_u64 << (u64::BITS - 1 - (largest - largest.div_ceil(16)).leading_zeros());
    power.min(FRAGMENT_BYTES_MAX) as u32
}

/// The range to ask the origin for in place of `asked`, so that whole fragments arrive: its first byte, and its end unless it
/// reaches the end of the body. None for a suffix range, whose beginning is unknown.
pub fn widened(asked: RangeSpec, fragment_bytes: u32) -> Option<(u64, Option<u64>)> {
    let bytes = u64::from(fragment_bytes);
    let down = |position: u64| position - position % bytes;
    match asked {
        RangeSpec::Suffix(_) => None,
        RangeSpec::From(first) => Some((down(first), None)),
        RangeSpec::FromTo(first, last) => Some((down(first), down(last).checked_add(bytes))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fragments_leave_room_for_what_stands_beside_them() {
        for (entry_bytes_max, expected) in
            [(16 << 10, 8 << 10), (100_000, 65_536), (512 << 10, 256 << 10), (1 << 20, 512 << 10), (4 << 20, 1 << 20)]
        {
            assert_eq!(fragment_bytes(entry_bytes_max), expected, "{entry_bytes_max}");
        }
        assert_eq!(fragment_bytes(0), 1);
    }

    #[test]
    fn no_key_is_that_of_a_variant_or_of_another_generation() {
        let layout = Layout { length: 9, generation: 0xab, fragment_bytes: 4 };
        assert_eq!(key_of(&layout.prefix(b"http://a/b"), 17), b"http://a/b 00000000000000ab/11");
    }

    #[test]
    fn an_unsound_layout_is_none() {
        let layout = Layout { length: 9, generation: 1, fragment_bytes: 4 };
        assert_eq!(Layout::from_bytes(layout.to_bytes()), Some(layout));
        for fragment_bytes in [0, FRAGMENT_BYTES_MAX as u32 + 1] {
            assert_eq!(Layout::from_bytes(Layout { fragment_bytes, ..layout }.to_bytes()), None);
        }
    }

    proptest! {
        #[test]
        fn fragments_tile_the_body(length in 1_u64..1 << 40, fragment_bytes in 1_u32..=1 << 20, at in 0.0..1.0) {
            let layout = Layout { length, generation: 0, fragment_bytes };
            let position = (length as f64 * at) as u64 % length;
            let number = layout.fragment_of(position);
            let bytes = layout.bytes_of(number);
            prop_assert!(bytes.contains(&position));
            prop_assert_eq!(layout.bytes_of(number + 1).start, bytes.end);
            prop_assert_eq!(layout.fragments_of(&bytes), number..number + 1);
            let last = layout.fragment_of(length - 1);
            prop_assert_eq!(layout.bytes_of(last).end, length);
            prop_assert!(layout.bytes_of(last + 1).is_empty());
            prop_assert_eq!(layout.fragments_of(&(0..length)), 0..last + 1);
        }

        #[test]
        fn a_widened_range_has_all_that_was_asked_for_and_begins_with_a_fragment(
            first in any::<u64>(), more in 0_u64..1 << 30, power in 0_u32..=20,
        ) {
            let (bytes, last) = (1_u64 << power, first.saturating_add(more));
            let (start, end) = widened(RangeSpec::FromTo(first, last), bytes as u32).unwrap();
            prop_assert!(start <= first && first - start < bytes && start % bytes == 0);
            prop_assert!(end.is_none_or(|end| end > last && end - last <= bytes && end % bytes == 0));
            prop_assert_eq!(widened(RangeSpec::From(first), bytes as u32), Some((start, None)));
        }

        #[test]
        fn a_fragment_is_smaller_than_an_entry(entry_bytes_max in 2_u64..1 << 40) {
            let bytes = u64::from(fragment_bytes(entry_bytes_max));
            prop_assert!(bytes < entry_bytes_max && bytes <= FRAGMENT_BYTES_MAX && bytes.is_power_of_two());
            prop_assert!(bytes == FRAGMENT_BYTES_MAX || bytes * 2 >= entry_bytes_max);
        }
    }
}
