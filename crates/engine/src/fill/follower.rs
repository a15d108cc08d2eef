//! [`Follower`]: reads an entry while somebody writes it.
//!
//! A follower pins the room that the writer's claim names, as a reader pins what a slot names. It reads only below
//! the progress. When the fill is over, either the pinned room has become the entry, or the follower looks the entry
//! up. In both cases the serial shows that it is the entry that was followed.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

use eyewall_region::{fork, futex};

use super::pin::PinAt;
use crate::claim::{self, Line, PROBE_EVERY};
use crate::error::{Error, Result};
use crate::format::hash::Place;
use crate::format::record::{Flags, HEADER_BYTES, Head, Lengths, Record};
use crate::format::tags::Tags;
use crate::hit::OwnedHit;
use crate::protocol::{self, Glimpse};
use crate::read::{self, Use, Wanted};
use crate::stripe;
use crate::volume::Volume;
use crate::write;

/// Reads what a [`crate::Writer`], in this process or another, is writing ([`crate::Cache::follow`]).
///
/// **A follower returns bytes before the writer has committed them.** No checksum covers them until the end is
/// reached. Callers that can't accept this wait for the entry instead. Like a hit, a follower holds a pin, and with
/// it the bytes that it reads; drop it when done.
pub struct Follower {
    volume: Arc<Volume>,
    place: Place,
    key: Box<[u8]>,
    line: Line,
    /// The first word of the entry to come.
    promise: u64,
    held: Option<HeldRoom>,
    lengths: Lengths,
    metadata: Box<[u8]>,
    entry: Option<OwnedHit>,
    read: u64,
    fork: u32,
}

/// A room, or the entry that it has become, with the pin that holds it.
#[derive(Debug, Clone, Copy)]
struct HeldRoom {
    pin: PinAt,
    word: u64,
}

/// How far the fill has come.
enum State {
    /// This many bytes of the value are in the room that is held.
    Filling(u64),
    /// The value is complete, with this many bytes.
    Complete(u64),
    /// The fill ended without an entry.
    Over(&'static str),
}

const GIVEN_UP: &str = "its writer gave up, was killed, or was superseded";
const CONTRADICTION: &str = "the words of its writer contradict each other";

impl Follower {
    pub(super) fn find(volume: &Volume, key: &[u8]) -> Result<Option<Self>> {
        write::check_key(volume, key)?;
        volume.check_writable()?;
        let place = volume.place(key);
        let Some(shared) = volume.this.upgrade() else { return Ok(None) };
        for line in claim::of_key(volume, &place) {
            let promise = line.fill(volume).promise.load(Acquire);
            if !matches!(Head::from_word(promise), Some(Head::Entry(..))) || !line.is_held(volume) {
                continue;
            }
            let mut follower = Self {
                volume: Arc::clone(&shared),
                place,
                key: key.into(),
                line,
                promise,
                held: None,
                lengths: Lengths { key: key.len() as u64, metadata: 0, value: 0 },
                metadata: Box::default(),
                entry: None,
                read: 0,
                fork: fork::generation(),
            };
            if follower.begin() {
                return Ok(Some(follower));
            }
        }
        Ok(None)
    }

    /// Pins the room for the first time. Returns false if it doesn't, or no longer, belong to this key, or can't be
    /// pinned.
    fn begin(&mut self) -> bool {
        let mut state = self.look();
        while state.is_none() {
            state = self.look();
        }
        let Some(State::Filling(_)) = state else { return false };
        let volume = Arc::clone(&self.volume);
        let held = self.held.and_then(|held| locate(&volume, &self.place, held.word));
        let Some((record, room)) = held else { return false };
        let lengths = Lengths { value: 0, ..record.lengths() };
        if lengths.key != self.key.len() as u64 || lengths.record_bytes() > room {
            return false;
        }
        // SAFETY: the room is pinned. Its writer wrote the key before it named the room, and nobody writes it again.
        if unsafe { record.key() } != &*self.key {
            return false;
        }
        // SAFETY: as for the key.
        let metadata = unsafe { record.metadata() };
        let tagged = matches!(Head::from_word(self.promise), Some(Head::Entry(_, flags)) if flags.has(Flags::TAGGED));
        let tags = Tags::read(metadata).filter(|_| tagged);
        self.metadata = metadata[..tags.map_or(metadata.len(), |tags| tags.start)].into();
        self.lengths = lengths;
        true
    }

    /// The metadata that the entry will have.
    pub fn metadata(&self) -> &[u8] {
        &self.metadata
    }

    /// The serial that the entry will have.
    pub fn serial(&self) -> u64 {
        match Head::from_word(self.promise) {
            Some(Head::Entry(serial, _)) => serial,
            _ => 0,
        }
    }

    /// Copies the next bytes of the value into `bytes` and returns how many. Waits for them for up to `deadline`.
    /// Returns 0 when the value is complete and the entry is stored.
    ///
    /// # Errors
    /// [`Interrupted`](Error::Interrupted): the writer aborted, died, or was superseded. The bytes read so far belong to
    /// no entry; get the key again, or fill it. [`Busy`](Error::Busy): nothing came before the deadline; the caller may
    /// read again.
    pub fn read(&mut self, bytes: &mut [u8], deadline: Duration) -> Result<usize> {
        let start = Instant::now();
        loop {
            if self.fork != fork::generation() {
                return Err(Error::Interrupted { why: "it was begun in the process that this one was forked from" });
            }
            let volume = Arc::clone(&self.volume);
            volume.check_intact()?;
            let signal = self.line.fill(&volume).signal;
            let seen = signal.load(Acquire);
            match self.look() {
                None => continue,
                Some(State::Over(why)) => return Err(Error::Interrupted { why }),
                Some(State::Complete(value)) => return self.copy(bytes, value),
                Some(State::Filling(value)) if value > self.read || bytes.is_empty() => return self.copy(bytes, value),
                Some(State::Filling(_)) => {}
            }
            let waited = start.elapsed();
            let Some(left) = deadline.checked_sub(waited).filter(|left| !left.is_zero()) else {
                return Err(Error::Busy { what: "the writer of an entry that is followed", waited });
            };
            if let Some(asleep) = protocol::fall_asleep(signal, seen) {
                futex::wait(signal, asleep, PROBE_EVERY.min(left));
                // A dead writer wakes nobody. The look below sees all that it did before it died or released the
                // claim.
                let silent = signal.load(Acquire) == asleep && !self.line.is_held(&volume);
                if silent && matches!(self.look(), Some(State::Filling(value)) if value == self.read) {
                    return Err(Error::Interrupted { why: GIVEN_UP });
                }
            }
        }
    }

    /// Checks how far the fill has come; `None`: look again.
    fn look(&mut self) -> Option<State> {
        if let Some(entry) = &self.entry {
            return Some(State::Complete(entry.value().len() as u64));
        }
        let volume = Arc::clone(&self.volume);
        let Some(pin) = self.held.map(|held| held.pin).or_else(|| PinAt::free(&volume)) else {
            return Some(State::Over("this thread can't hold more bytes in place; drop some hits"));
        };
        let (word, held) = (pin.word(&volume), self.held.map_or(0, |held| held.word));
        match protocol::follow(&self.line.fill(&volume), self.promise, word, held) {
            Glimpse::Moved => {
                self.held = None;
                None
            }
            Glimpse::Room(room, value) => {
                self.held = Some(HeldRoom { pin, word: room });
                Some(self.judge(room, value))
            }
            Glimpse::Over => {
                if word.load(Acquire) != held {
                    protocol::unpin(word);
                    self.held = None;
                }
                Some(self.end())
            }
        }
    }

    /// Judges what the pinned room holds.
    fn judge(&self, word: u64, value: u64) -> State {
        let Some((record, room)) = locate(&self.volume, &self.place, word) else { return State::Over(CONTRADICTION) };
        let lengths = Lengths { value, ..self.lengths };
        match record.head() {
            Some(Head::Room(bytes)) if bytes <= room && lengths.record_bytes() <= bytes => State::Filling(value),
            Some(head) if self.is_promised(head) => self.complete(record, room),
            _ => State::Over(CONTRADICTION),
        }
    }

    /// Whether this is the promised entry. The promise was made before it was known in which lap the entry would be
    /// written, so the lap doesn't count.
    fn is_promised(&self, head: Head) -> bool {
        matches!(head, Head::Entry(serial, flags) if Head::Entry(serial, flags.with_lap(0)).word() == self.promise)
    }

    fn complete(&self, record: Record<'_>, room: u64) -> State {
        let lengths = record.lengths();
        let fits = lengths.record_bytes() <= room && lengths == Lengths { value: lengths.value, ..self.lengths };
        if fits { State::Complete(lengths.value) } else { State::Over(CONTRADICTION) }
    }

    /// After the fill: the room has become the entry, or the entry is looked up, since it may have moved.
    fn end(&mut self) -> State {
        if let Some(held) = self.held
            && let Some((record, room)) = locate(&self.volume, &self.place, held.word)
            && record.head().is_some_and(|head| self.is_promised(head))
        {
            return self.complete(record, room);
        }
        let volume = Arc::clone(&self.volume);
        let found = read::get(&volume, &self.key, Use::Peeks, Wanted::Any);
        let Ok(Some(hit)) = found else { return State::Over(GIVEN_UP) };
        if hit.serial() != self.serial() {
            return State::Over(GIVEN_UP);
        }
        let bytes = hit.len() as u64;
        self.entry = Some(hit.into_owned());
        self.unpin();
        State::Complete(bytes)
    }

    /// Copies from the first `value` bytes of the value, which lie in what is held.
    fn copy(&mut self, to: &mut [u8], value: u64) -> Result<usize> {
        let from = self.read.min(value);
        let bytes = to.len().min((value - from) as usize);
        let to = &mut to[..bytes];
        if let Some(entry) = &self.entry {
            to.copy_from_slice(&entry.value()[from as usize..][..bytes]);
        } else if let Some((record, _)) = self.held.and_then(|held| locate(&self.volume, &self.place, held.word)) {
            let start = record.offset as u64 + HEADER_BYTES + self.lengths.key + self.lengths.metadata + from;
            // SAFETY: the room is pinned. The bytes lie inside it and below the progress, so nobody writes them.
            to.copy_from_slice(unsafe { self.volume.region.bytes(start as usize, bytes) });
        }
        // Lost bytes read as zeros; this call catches them.
        self.volume.check_intact()?;
        self.read += bytes as u64;
        Ok(bytes)
    }

    fn unpin(&mut self) {
        if let Some(held) = self.held.take()
            && self.fork == fork::generation()
        {
            protocol::unpin(held.pin.word(&self.volume));
        }
    }
}

/// The record that a pin word names, if it lies in this stripe, and the number of bytes from there to the end of its
/// ring.
fn locate<'a>(volume: &'a Volume, place: &Place, word: u64) -> Option<(Record<'a>, u64)> {
    let (number, position) = Volume::pinned(word).filter(|(number, _)| *number == place.stripe)?;
    let (offset, room) = stripe::locate(volume, number, position)?;
    Some((Record::at(&volume.region, offset), room))
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.unpin();
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (serial, read) = (self.serial(), self.read);
        f.debug_struct("Follower").field("serial", &serial).field("read", &read).finish_non_exhaustive()
    }
}
