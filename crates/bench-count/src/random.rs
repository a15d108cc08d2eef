//! Fixed pseudo-random numbers: the same seed gives the same workload on every machine.

/// `SplitMix64`.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A separate stream for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which is not 0 (multiply-shift; the bias is below 2^-32 for the bounds used here).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, inclusive.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }
}

/// A bijection of the 64-bit numbers that looks random.
pub fn mix(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Bytes of every workload's keys.
pub const KEY_BYTES: usize = 16;

/// The key of object `index`: 16 hexadecimal digits, distinct for distinct indexes.
pub fn key(index: u64) -> [u8; KEY_BYTES] {
    let mixed = mix(index.wrapping_add(0x9e37_79b9_7f4a_7c15));
    std::array::from_fn(|digit| b"0123456789abcdef"[((mixed >> (60 - 4 * digit)) & 15) as usize])
}

/// `bytes` bytes that don't compress and differ by `seed`.
pub fn filler(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut filled = Vec::with_capacity(bytes + 8);
    while filled.len() < bytes {
        filled.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    filled.truncate(bytes);
    filled
}
