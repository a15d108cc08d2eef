//! Random numbers that nobody has to be unable to guess: for samples, and for names of requests.

use std::cell::Cell;

thread_local! {
    /// The state of xoroshiro128++, which each thread begins with a state of its own.
    static STATE: Cell<[u64; 2]> = Cell::new(seed());
}

/// A random number.
pub(crate) fn number() -> u64 {
    STATE.with(|cell| {
        let [first, mut second] = cell.get();
        let number = first.wrapping_add(second).rotate_left(17).wrapping_add(first);
        second ^= first;
        cell.set([first.rotate_left(49) ^ second ^ (second << 21), second.rotate_left(28)]);
        number
    })
}

/// Whether something that has this share of all cases is the case.
pub(crate) fn is_within(share: f64) -> bool {
    // 53 bits, as a float has.
    share >= 1.0 || ((number() >> 11) as f64) < share * (1_u64 << 53) as f64
}

fn seed() -> [u64; 2] {
    let mut bytes = [[0; 8]; 2];
    for part in &mut bytes {
        // Without the system's numbers, an address of this thread is as good as there is.
        if getrandom::fill(part).is_err() {
            *part = (std::ptr::from_ref(part).addr() as u64).to_le_bytes();
        }
    }
    // A state of zeros would stay.
    bytes.map(|part| u64::from_le_bytes(part) | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_many_is_about_right() {
        let count = |share| (0..100_000).filter(|_| is_within(share)).count();
        assert_eq!((count(0.0), count(1.0)), (0, 100_000));
        let tenth = count(0.1);
        assert!((9_000..11_000).contains(&tenth), "{tenth}");
        assert_ne!((number(), number()), (number(), number()));
    }
}
