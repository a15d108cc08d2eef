//! Cells of the sketch: 16 bits that remember a key ([`crate::sketch`]).
//!
//! ```text
//!  15                  4    3     2     0
//! +---------------------+-------+----------+
//! |        tag          | asked | requests |      0: empty
//! +---------------------+-------+----------+
//! ```

/// Keys that a line remembers. The first of its 32 cells is the hand instead.
pub(crate) const CELLS: usize = 31;
/// The most requests that a cell counts.
pub(crate) const REQUESTS_MAX: u64 = 7;
/// Bit of a cell: the key was asked for since its last put.
pub(crate) const ASKED: u16 = 1 << 3;
const TAG_SHIFT: u32 = 4;
/// 1 in each of the four cells of a word.
const EACH: u64 = 0x0001_0001_0001_0001;

/// A cell that isn't empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell(pub(crate) u16);

impl Cell {
    /// A key of this tag, with so many requests.
    pub(crate) fn new(tag: u16, requests: u64) -> Self {
        Self((tag << TAG_SHIFT) | requests.min(REQUESTS_MAX) as u16)
    }

    pub(crate) fn asked(self) -> Self {
        Self(self.0 | ASKED)
    }

    pub(crate) fn tag(self) -> u16 {
        self.0 >> TAG_SHIFT
    }

    pub(crate) fn is_asked(self) -> bool {
        self.0 & ASKED != 0
    }

    /// With half of its requests.
    pub(crate) fn halved(self) -> Self {
        Self((self.0 & !(REQUESTS_MAX as u16)) | (self.requests() / 2) as u16)
    }

    pub(crate) fn requests(self) -> u64 {
        u64::from(self.0) & REQUESTS_MAX
    }
}

/// The line of a key, by its second pick, while so many lines are in use (linear hashing). If one more is, it takes the
/// keys of one other line.
pub(crate) fn line_of(pick: u32, lines: u64) -> u64 {
    let all = lines.next_power_of_two();
    let line = u64::from(pick) & (all - 1);
    if line < lines { line } else { line & (all / 2 - 1) }
}

/// The cells of a word that have this tag, as the highest bit of each. Empty cells have the tag zero.
pub(crate) fn matching_lanes(word: u64, tag: u16) -> u64 {
    let differs = (word ^ (u64::from(tag << TAG_SHIFT) * EACH)) & (EACH * 0xfff0);
    !(((differs & (EACH * 0x7fff)) + EACH * 0x7fff) | differs) & (EACH * 0x8000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_keeps_its_parts() {
        let cell = Cell::new(0xfff, 9).asked();
        assert_eq!((cell.tag(), cell.requests(), cell.is_asked()), (0xfff, 7, true));
        assert!(!Cell::new(0xfff, 7).is_asked());
        assert_eq!(cell.halved(), Cell::new(0xfff, 3).asked());
    }

    #[test]
    fn one_line_more_takes_the_keys_of_one_line() {
        let pick = |key: u32| key.wrapping_mul(0x9e37_79b9);
        for lines in 1..200 {
            assert!((0..4000).all(|key| line_of(pick(key), lines) < lines));
            let moved = (0..4000).filter(|key| line_of(pick(*key), lines) != line_of(pick(*key), lines + 1));
            let from: std::collections::HashSet<_> = moved.map(|key| line_of(pick(key), lines)).collect();
            assert!(from.len() <= 1, "{lines}: {from:?}");
        }
    }

    #[test]
    fn cells_match_by_their_tag_alone() {
        let cells = [Cell::new(0x123, 0).asked(), Cell::new(0x122, 7), Cell::new(0x123, 5), Cell::new(0xfff, 7)];
        let word = cells.iter().rev().fold(0, |word, cell| (word << 16) | u64::from(cell.0));
        assert_eq!(matching_lanes(word, 0x123), (1 << 15) | (1 << 47));
        assert_eq!(matching_lanes(word, 0xfff), 1 << 63);
        assert_eq!(matching_lanes(word, 0x124), 0);
    }
}
