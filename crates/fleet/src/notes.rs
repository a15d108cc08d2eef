//! Which lines purge what: how a node judges a response that another node, or a shared store, has made.
//!
//! ```text
//!   lines:   ... 41   42   43   44   45   46          a response that is right up to line 43, with the tag `news`:
//!                ├────────────┼────────────┤             a note of `news` at line 44: refused
//!              floor        as of        last            no note after 43 covers it: taken
//! ```
//! A foreign response carries the number of a line, [`AsOf`]: it is right with respect to all lines up to there. The number is taken
//! before the origin is asked, or before the stored response is looked up. So a purge that the response may have missed has a greater
//! number.
//!
//! A node takes a foreign response in this order: it marks the state of its own purges, asks, judges by its notes, and stores with the
//! mark. A line is noted before it is applied (N9). So a line that was noted after the judgement is applied after the mark, and the volume
//! drops what is stored. Every other line is among the notes.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

use crate::log::{Line, Place, Reign};

/// Up to which line a response is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsOf {
    /// The number of the line.
    pub line: u64,
    /// The reign in which that line was written.
    pub written_in: Reign,
    /// The reign that the maker of the response followed.
    pub reign: Reign,
}

/// What a line covers, or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers<'a> {
    /// Responses of this address.
    Address(&'a str),
    /// Responses with this tag.
    Tag(&'a str),
    /// Keys that begin with this.
    Prefix(&'a [u8]),
    /// Everything.
    Everything,
}

/// A response that is judged.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Its address.
    pub address: &'a str,
    /// Its key.
    pub key: &'a [u8],
    /// Its tags.
    pub tags: &'a [String],
}

/// What the last lines of the log cover.
#[derive(Debug)]
pub struct Notes {
    kept_max: usize,
    /// A server that takes over has every acknowledged line.
    is_durable: bool,
    known: Option<Known>,
    hasher: RandomState,
}

/// `None` in its place: the node has no place in the log.
#[derive(Debug)]
struct Known {
    /// Lines up to this one are unknown.
    floor: u64,
    /// The last line that is noted.
    last: u64,
    /// The reign that the node follows.
    reign: Reign,
    /// The first lines of reigns, in their order. The first one is at most `floor`.
    reigns: VecDeque<(u64, Reign)>,
    /// Up to where the node has applied the log.
    applied: AsOf,
    /// The last line that covers a tag or an address, by its hash.
    latest: HashMap<u64, u64>,
    /// The same in the order of lines. An entry whose line isn't the latest is void.
    order: VecDeque<(u64, u64)>,
    prefixes: VecDeque<(u64, Vec<u8>)>,
    /// The last line that covers everything; 0 if none does.
    everything: u64,
}

/// A judgement compares with each prefix.
const PREFIXES_MAX: usize = 1024;

impl AsOf {
    /// What a node at this place has made.
    pub fn of(place: &Place) -> Self {
        Self { line: place.number, written_in: place.written_in.clone(), reign: place.reign.clone() }
    }

    /// As a text without line breaks.
    pub fn to_text(&self) -> String {
        format!("{} {} {}", self.line, self.written_in.as_str(), self.reign.as_str())
    }

    /// The value of such a text; `None` for other texts.
    pub fn parse(text: &str) -> Option<Self> {
        let (line, reigns) = text.split_once(' ')?;
        let (written_in, reign) = reigns.split_once(' ')?;
        let is_word = !reign.contains(char::is_whitespace);
        let (written_in, reign) = (Reign::new(written_in), Reign::new(reign));
        Some(Self { line: line.parse().ok()?, written_in, reign }).filter(|_| is_word)
    }
}

impl Notes {
    /// No notes, and no place. At most this many are kept; beyond that, the oldest lines are forgotten. `is_durable`: no acknowledged line is
    /// ever lost.
    pub fn new(kept_max: usize, is_durable: bool) -> Self {
        Self { kept_max: kept_max.max(1), is_durable, known: None, hasher: RandomState::new() }
    }

    /// Notes a line. Call it before the line is applied, with all that it covers at this node.
    pub fn add<'a>(&mut self, line: &Line, covers: impl IntoIterator<Item = Covers<'a>>) {
        let Some(known) = &mut self.known else { return };
        if line.number != known.last + 1 {
            self.known = None;
            return;
        }
        known.last = line.number;
        if known.reign_of(line.number) != &line.reign {
            known.reigns.push_back((line.number, line.reign.clone()));
        }
        known.reign.clone_from(&line.reign);
        for covers in covers {
            match Noted::of(covers, &self.hasher) {
                Noted::Hash(hash) => {
                    known.latest.insert(hash, line.number);
                    known.order.push_back((line.number, hash));
                }
                Noted::Prefix(prefix) => known.prefixes.push_back((line.number, prefix)),
                Noted::Everything => known.everything = line.number,
            }
        }
        known.forget(self.kept_max);
    }

    /// Lines are missing: until [`Notes::applied`], nothing is allowed.
    pub fn gap(&mut self) {
        self.known = None;
    }

    /// The node has applied all lines up to this place, which it may have reached by a gap.
    pub fn applied(&mut self, place: &Place) {
        let applied = AsOf::of(place);
        match self.known.as_mut().filter(|known| known.last == place.number) {
            Some(known) if *known.reign_of(place.number) == place.written_in => {
                (known.reign, known.applied) = (place.reign.clone(), applied);
            }
            _ => self.known = Some(Known::at(place, applied)),
        }
    }

    /// Forgets what lines cover, because the same line may cover something else from now on: the configuration has changed.
    /// [`Notes::add_earlier`] notes them again.
    pub fn forget(&mut self) {
        if let Some(known) = &mut self.known {
            let (latest, order, prefixes) = Default::default();
            (known.floor, known.latest, known.order, known.prefixes) = (known.last, latest, order, prefixes);
            known.forget_reigns();
        }
    }

    /// Up to where all that is stored here is right. `None`: the node has no place.
    pub fn as_of(&self) -> Option<&AsOf> {
        self.known.as_ref().map(|known| &known.applied)
    }

    /// Notes a line of before the notes began: the one that they reach back to, so that they reach back one line further. Later lines are
    /// known. False: it is another line, or there is no room for it.
    pub fn add_earlier<'a>(&mut self, line: &Line, covers: impl IntoIterator<Item = Covers<'a>>) -> bool {
        let (kept_max, hasher) = (self.kept_max, &self.hasher);
        let Some(known) = &mut self.known else { return false };
        if !known.ends_with(line) {
            return line.number > known.floor;
        }
        for covers in covers {
            if known.order.len() >= kept_max || known.prefixes.len() >= PREFIXES_MAX.min(kept_max) {
                return false;
            }
            match Noted::of(covers, hasher) {
                Noted::Hash(hash) => {
                    known.latest.entry(hash).or_insert(line.number);
                    known.order.push_front((line.number, hash));
                }
                Noted::Prefix(prefix) => known.prefixes.push_front((line.number, prefix)),
                Noted::Everything => known.everything = known.everything.max(line.number),
            }
        }
        known.floor = line.number - 1;
        if let Some((first, reign)) = known.reigns.front_mut() {
            let is_first = *reign != line.before;
            *first = if is_first { line.number } else { known.floor };
            if is_first {
                known.reigns.push_front((known.floor, line.before.clone()));
            }
        }
        true
    }

    /// Whether a foreign response may be taken: no line after `as_of` that this node knows covers it. After a change of the reign, a number
    /// doesn't show whether lines were lost that covered it: this node has made its responses stale, and the maker has not yet.
    pub fn allows(&self, as_of: &AsOf, subject: Subject<'_>) -> bool {
        let is_same = |known: &&Known| self.is_durable || known.reign == as_of.reign;
        let known = self.known.as_ref().filter(is_same).filter(|known| known.has(as_of));
        let Some(known) = known else { return false };
        let is_later = |line: u64| line > as_of.line;
        let covered = |hash: u64| known.latest.get(&hash).is_some_and(|line| is_later(*line));
        let prefixed = |(line, prefix): &(u64, Vec<u8>)| is_later(*line) && subject.key.starts_with(prefix);
        !is_later(known.everything)
            && !covered(self.hasher.hash_one((0u8, subject.address)))
            && !subject.tags.iter().any(|tag| covered(self.hasher.hash_one((1u8, tag.as_str()))))
            && !known.prefixes.iter().any(prefixed)
    }
}

/// The part of a line that notes keep.
enum Noted {
    /// Of a tag or an address.
    Hash(u64),
    Prefix(Vec<u8>),
    Everything,
}

impl Noted {
    fn of(covers: Covers<'_>, hasher: &RandomState) -> Self {
        match covers {
            Covers::Address(address) => Self::Hash(hasher.hash_one((0u8, address))),
            Covers::Tag(tag) => Self::Hash(hasher.hash_one((1u8, tag))),
            Covers::Prefix(prefix) => Self::Prefix(prefix.to_owned()),
            Covers::Everything => Self::Everything,
        }
    }
}

impl Known {
    /// Whether this is the last line that the notes don't reach back to.
    fn ends_with(&self, line: &Line) -> bool {
        line.number > 0
            && line.number == self.floor
            && self.reigns.front().is_some_and(|(first, reign)| *first <= line.number && *reign == line.reign)
    }

    fn at(place: &Place, applied: AsOf) -> Self {
        Self {
            floor: place.number,
            last: place.number,
            reign: place.reign.clone(),
            reigns: VecDeque::from([(place.number, place.written_in.clone())]),
            applied,
            latest: HashMap::new(),
            order: VecDeque::new(),
            prefixes: VecDeque::new(),
            everything: 0,
        }
    }

    /// The reign in which a line was written that isn't before the floor.
    fn reign_of(&self, line: u64) -> &Reign {
        let of_line = self.reigns.iter().rev().find(|(first, _)| *first <= line);
        of_line.map_or(&self.reign, |(_, reign)| reign)
    }

    /// Whether it is a place of the log that the node follows, and not before the floor. A place that the node has not reached counts if
    /// it is in the reign of the last line, or in the present one: within a reign, a number means one line.
    fn has(&self, as_of: &AsOf) -> bool {
        let AsOf { line, written_in, .. } = as_of;
        let is_ahead = *line > self.last;
        *line >= self.floor && (self.reign_of(*line) == written_in || is_ahead && *written_in == self.reign)
    }

    /// Keeps the bounds. A line that is forgotten in part raises the floor.
    fn forget(&mut self, kept_max: usize) {
        while self.order.len() > kept_max
            && let Some((line, hash)) = self.order.pop_front()
        {
            self.floor = self.floor.max(line);
            if self.latest.get(&hash) == Some(&line) {
                self.latest.remove(&hash);
            }
        }
        while self.prefixes.len() > PREFIXES_MAX.min(kept_max)
            && let Some((line, _)) = self.prefixes.pop_front()
        {
            self.floor = self.floor.max(line);
        }
        self.forget_reigns();
    }

    /// Drops the reigns that ended before the floor.
    fn forget_reigns(&mut self) {
        while self.reigns.get(1).is_some_and(|(first, _)| *first <= self.floor) {
            self.reigns.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
