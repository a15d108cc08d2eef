//! The owner of a lock, of a record that is being filled, of a claim or of a thread slot.

use std::fmt;

/// How many process slots an owner word can distinguish.
pub(crate) const PROCESSES_MAX: u64 = 1023;

/// A process, by its slot in the volume's process table and that slot's incarnation.
///
/// A slot is used again after its process has died; the incarnation tells the two apart. Owner words keep 21 bits of
/// it. An owner word could name a wrong process only after it had stayed unchanged through two million attaches to
/// one slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) process: u32,
    pub(crate) incarnation: u32,
}

const INCARNATION_BITS: u32 = 21;
pub(crate) const INCARNATION_MASK: u32 = (1 << INCARNATION_BITS) - 1;

impl Owner {
    /// Bits 0..21 are the incarnation, bits 21..31 the process slot + 1. Bit 31 is left to the lock. Never zero.
    pub(crate) fn word(self) -> u32 {
        ((self.process + 1) << INCARNATION_BITS) | (self.incarnation & INCARNATION_MASK)
    }

    /// The owner that a word names; `None` for zero (nobody).
    pub(crate) fn from_word(word: u32) -> Option<Self> {
        let process = (word >> INCARNATION_BITS) & 0x3ff;
        Some(Self { process: process.checked_sub(1)?, incarnation: word & INCARNATION_MASK })
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} incarnation {}", self.process, self.incarnation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_words_survive_packing_and_leave_the_top_bit_free() {
        for owner in [
            Owner { process: 0, incarnation: 1 },
            Owner { process: PROCESSES_MAX as u32 - 1, incarnation: INCARNATION_MASK },
        ] {
            assert_eq!(Owner::from_word(owner.word()), Some(owner));
            assert_eq!(owner.word() >> 31, 0);
        }
        assert_eq!(Owner::from_word(0), None);
    }
}
