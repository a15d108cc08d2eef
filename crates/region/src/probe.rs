//! Searching a cache line of words for a pattern.

use std::sync::atomic::AtomicU64;

/// Which words of a line have these bits in their upper half: bit *n* of the result stands for word *n*.
///
/// The words may change at the same time, so the answer is a hint. The caller loads the word that it names.
#[inline]
#[must_use]
pub fn matching(line: &[AtomicU64; 8], mask: u32, wanted: u32) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::_mm_set1_epi32;
        let found: u32;
        // All eight at once: one by one takes four times the instructions.
        // SAFETY: the block reads the line and nothing else. It reads each word, which is aligned, as an atomic load
        // would.
        unsafe {
            std::arch::asm!(
                "movups {low}, xmmword ptr [{line}]",
                "movups {other}, xmmword ptr [{line} + 16]",
                "shufps {low}, {other}, 0xdd",
                "movups {high}, xmmword ptr [{line} + 32]",
                "movups {other}, xmmword ptr [{line} + 48]",
                "shufps {high}, {other}, 0xdd",
                "pand {low}, {mask}",
                "pand {high}, {mask}",
                "pcmpeqd {low}, {wanted}",
                "pcmpeqd {high}, {wanted}",
                "packssdw {low}, {high}",
                "packsswb {low}, {low}",
                "pmovmskb {found:e}, {low}",
                line = in(reg) line.as_ptr(),
                mask = in(xmm_reg) _mm_set1_epi32(mask as i32),
                wanted = in(xmm_reg) _mm_set1_epi32(wanted as i32),
                low = out(xmm_reg) _,
                high = out(xmm_reg) _,
                other = out(xmm_reg) _,
                found = lateout(reg) found,
                options(nostack, preserves_flags, readonly),
            );
        }
        found & 0xff
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    line.iter().rev().fold(0, |bits, word| {
        let upper = (word.load(std::sync::atomic::Ordering::Acquire) >> 32) as u32;
        (bits << 1) | u32::from(upper & mask == wanted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_upper_halves_and_the_masked_bits_count() {
        let wanted = 0xffff_e100_u32;
        for matches in 0..256_u32 {
            let line: [AtomicU64; 8] = std::array::from_fn(|word| {
                let is_it = matches & (1 << word) != 0;
                // The lower half, and bits outside of the mask, are anything.
                let noise = u64::MAX >> (word * 4) & 0x1cff_ffff_ffff;
                AtomicU64::new(u64::from(if is_it { wanted } else { wanted ^ (1 << (13 + word)) }) << 32 | noise)
            });
            assert_eq!(matching(&line, 0xffff_e300, wanted), matches);
        }
    }
}
