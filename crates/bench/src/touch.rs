//! What a reader does with a value: the same code for every store.

/// How much of a value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Touch {
    /// Only its address.
    Pointer,
    /// One byte of each 4 KiB.
    Page,
    /// Every byte, as 64-bit words.
    Every,
}

impl Touch {
    /// The word for the name of a case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pointer => "pointer only",
            Self::Page => "one byte a page",
            Self::Every => "every byte",
        }
    }
}

/// Reads nothing: it only gets the value's address and length.
#[inline]
pub fn pointer(bytes: &[u8]) -> u64 {
    bytes.as_ptr().addr() as u64 ^ bytes.len() as u64
}

/// Reads the first byte of each 4 KiB.
#[inline]
pub fn page(bytes: &[u8]) -> u64 {
    let mut sum = 0_u64;
    let mut offset = 0;
    while offset < bytes.len() {
        sum = sum.wrapping_add(u64::from(bytes[offset]));
        offset += 4096;
    }
    sum
}

/// Sums all bytes as little-endian words.
#[inline]
pub fn every(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}
