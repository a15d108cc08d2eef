//! The sketch: which keys were asked for and not there, and how often. It remembers three times as many keys as the
//! stripe has entries, in two bytes each, if it has as many cells. If it has more, it uses fewer lines.
//!
//! ```text
//!  a line    | hand |  1 |  2 | ...                     | 31 |     32 cells of 16 bits, in 8 words
//!            +------+----+----+--------------------------+----+
//!  a cell    | tag, 12 bits        | asked | requests, 3 bits |     0: empty
//!            +---------------------+-------+------------------+
//! ```
//!
//! A miss notes its key as *asked*. The put that follows makes a *request* of that, and so counts each request once,
//! however many look-ups missed. A new key takes the cell at the line's hand. Before that, the hand halves the counts
//! of the cells that have more than one, and passes them.
//!
//! A line more or less in use moves the keys of one line, and these are forgotten.
//!
//! Readers and writers change a line without a lock, by plain stores. What one of them loses is one request. A wrong
//! cell costs an entry the right ring, never a right byte. So no content of a line is damage, and neither kills nor
//! power loss need repair.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::format::hash::{self, Place};
use crate::format::sketch::{ASKED, CELLS, Cell, REQUESTS_MAX, line_of, matching_lanes};
use crate::stripe;
use crate::volume::Volume;

/// How many keys the sketch remembers for each entry of the stripe. A longer memory takes old requests for news.
const KEYS_PER_ENTRY: u64 = 3;
/// It remembers this many keys even if there are few entries.
const KEYS_MIN: u64 = 128;
/// Lines with fewer cells in use would fill too unevenly.
const KEYS_PER_LINE: u64 = 16;

/// Notes that the key of this hash was asked for and not there.
#[cold]
pub(crate) fn ask(volume: &Volume, hash: u64) {
    let place = hash::place(&volume.layout, hash);
    let Some(line) = Line::of(volume, &place) else { return };
    match line.find(&place) {
        Some(number) => {
            let cell = line.cell(number);
            // The first miss writes. Others until the next put only read.
            if !cell.is_asked() {
                line.set(number, Cell(cell.0 | ASKED));
            }
        }
        None => line.add(Cell::new(place.sketch_tag(), 0).asked()),
    }
}

/// Counts the request that the last miss of the key noted, because the key is put now.
pub(crate) fn answer(volume: &Volume, place: &Place) {
    let Some(line) = Line::of(volume, place) else { return };
    let Some(number) = line.find(place) else { return };
    let cell = line.cell(number);
    if cell.is_asked() {
        line.set(number, Cell::new(cell.tag(), (cell.requests() + 1).min(REQUESTS_MAX)));
    }
}

/// Counts a request for the key, whose value isn't put.
pub(crate) fn note(volume: &Volume, place: &Place) {
    let Some(line) = Line::of(volume, place) else { return };
    match line.find(place) {
        Some(number) => {
            let cell = line.cell(number);
            line.set(number, Cell::new(cell.tag(), (cell.requests() + 1).min(REQUESTS_MAX)));
        }
        None => line.add(Cell::new(place.sketch_tag(), 1)),
    }
}

/// How often the key was asked for and then put or noted, as far as the sketch remembers. `None` in a volume without a sketch.
pub(crate) fn requests(volume: &Volume, place: &Place) -> Option<u64> {
    let line = Line::of(volume, place)?;
    Some(line.find(place).map_or(0, |number| line.cell(number).requests()))
}

/// The same; `None` also if the sketch doesn't know the key.
pub(crate) fn remembered(volume: &Volume, place: &Place) -> Option<u64> {
    let line = Line::of(volume, place)?;
    line.find(place).map(|number| line.cell(number).requests())
}

/// The line of a key, of which the first `cells` cells after the hand are in use.
#[derive(Clone, Copy)]
struct Line<'a> {
    words: &'a [AtomicU64; 8],
    cells: usize,
}

impl<'a> Line<'a> {
    /// `None` in a volume without a sketch.
    fn of(volume: &'a Volume, place: &Place) -> Option<Self> {
        let layout = &volume.layout;
        if layout.sketch_lines == 0 {
            return None;
        }
        let keys = stripe::entries(volume, place.stripe).saturating_mul(KEYS_PER_ENTRY).max(KEYS_MIN);
        let lines = keys.div_ceil(KEYS_PER_LINE).min(layout.sketch_lines);
        let at = layout.sketch_line_at(place.stripe, line_of(place.picks[1], lines));
        Some(Self { words: volume.region.line(at), cells: (keys / lines).min(CELLS as u64) as usize })
    }

    fn cell(self, number: usize) -> Cell {
        Cell((self.words[number / 4 % 8].load(Relaxed) >> (number % 4 * 16)) as u16)
    }

    fn set(self, number: usize, cell: Cell) {
        let (word, shift) = (&self.words[number / 4 % 8], number % 4 * 16);
        let others = word.load(Relaxed) & !(0xffff << shift);
        word.store(others | (u64::from(cell.0) << shift), Relaxed);
    }

    fn find(self, place: &Place) -> Option<usize> {
        let (tag, cells) = (place.sketch_tag(), self.cells);
        for (number, word) in self.words.iter().enumerate() {
            let word = word.load(Relaxed);
            let mut lanes = matching_lanes(word, tag);
            while lanes != 0 {
                let lane = lanes.trailing_zeros() as usize / 16;
                let cell = number * 4 + lane;
                if cell > 0 && cell <= cells && (word >> (lane * 16)) as u16 != 0 {
                    return Some(cell);
                }
                lanes &= lanes - 1;
            }
        }
        None
    }

    /// Puts a new cell in the place of one that was asked for at most once, or of the one at the hand.
    fn add(self, cell: Cell) {
        let cells = self.cells;
        let mut hand = usize::from(self.cell(0).0) % cells;
        for _ in 0..cells {
            let old = self.cell(hand + 1);
            if old.requests() <= 1 {
                break;
            }
            self.set(hand + 1, old.halved());
            hand = if hand + 1 == cells { 0 } else { hand + 1 };
        }
        self.set(hand + 1, cell);
        // `hand` is checked when it is read.
        self.set(0, Cell(hand as u16 + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(tag: u64) -> Place {
        Place { hash: 0, stripe: 0, picks: [0, 1], fingerprint: 0, ghost_hash: tag << 4 }
    }

    fn asked(line: Line<'_>, tag: u64) {
        if line.find(&place(tag)).is_none() {
            line.add(Cell::new(tag as u16, 1));
        }
    }

    #[test]
    fn a_line_remembers_the_last_31_keys() {
        let words: [AtomicU64; 8] = Default::default();
        let line = Line { words: &words, cells: CELLS };
        (0..100).for_each(|tag| asked(line, tag));
        for tag in 0..200 {
            assert_eq!(line.find(&place(tag)).is_some(), (69..100).contains(&tag), "{tag}");
        }
    }

    #[test]
    fn a_key_of_many_requests_outlives_others() {
        let words: [AtomicU64; 8] = Default::default();
        let line = Line { words: &words, cells: CELLS };
        line.add(Cell::new(7, 4));
        (100..150).for_each(|tag| asked(line, tag));
        assert_eq!(line.find(&place(7)).map(|number| line.cell(number).requests()), Some(2));
        (150..300).for_each(|tag| asked(line, tag));
        assert_eq!(line.find(&place(7)), None);
    }

    #[test]
    fn what_the_hand_passes_stays_asked_for() {
        let words: [AtomicU64; 8] = Default::default();
        let line = Line { words: &words, cells: CELLS };
        line.add(Cell::new(7, 4).asked());
        (100..150).for_each(|tag| asked(line, tag));
        let cell = line.find(&place(7)).map(|number| line.cell(number));
        assert_eq!(cell, Some(Cell::new(7, 2).asked()));
    }

    #[test]
    fn any_bytes_are_a_line() {
        let mut random = 1_u64;
        let words: [AtomicU64; 8] = std::array::from_fn(|_| {
            random = random.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) | 1;
            AtomicU64::new(random)
        });
        let line = Line { words: &words, cells: CELLS };
        (0..4096).for_each(|tag| asked(line, tag));
        assert!((4065..4096).all(|tag| line.find(&place(tag)).is_some()));
    }
}
