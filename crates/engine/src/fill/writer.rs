//! [`Writer`]: writes an entry piece by piece, in the place where it will be read.
//!
//! ```text
//!   begin: claim -> room, pinned -> key, metadata -> the claim names the room
//!   write: bytes -> progress -> wake those that follow
//!   grow:  in place; or another room -> copy -> the claim names it -> the old one is unpinned
//!   commit, under the stripe's lock: filler behind the value -> header -> slot -> the claim names nothing -> unpinned
//!   abort: the claim names nothing -> unpinned
//! ```
//!
//! A writer that dies at any of these points leaves its claim, and room that a dead process pins.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Release;
use std::sync::atomic::{AtomicU32, AtomicU64};

use eyewall_region::futex;
use xxhash_rust::xxh3::Xxh3;

use super::pin::PinAt;
use super::room::{Grown, Room};
use crate::claim::{Claim, Line};
use crate::error::{Error, Result};
use crate::format::UNIT_BYTES;
use crate::format::hash::Place;
use crate::format::record::{Flags, HEADER_BYTES, Head, Header, Lengths};
use crate::format::times::Times;
use crate::paging;
use crate::protocol::{self, Progress};
use crate::put::PutOptions;
use crate::seam;
use crate::stripe::Stripe;
use crate::volume::Volume;
use crate::write::{self, Condition, Draft, Outcome, Spot, Stage};

/// How much room a value of unknown length gets first.
const UNKNOWN_BYTES: u64 = 64 << 10;
/// How many bytes are read at once. They are few enough to be in the CPU's cache still when their checksum is
/// computed.
const READ_BYTES: u64 = 64 << 10;

/// What became of a written value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// It is the entry now, under this serial.
    Stored(u64),
    /// Since the writer began, somebody put, removed, cleared or purged the entry. The written value counts as stored
    /// before that, and nothing of it remains.
    Superseded,
}

/// Writes an entry's value into the volume, piece by piece ([`crate::Cache::writer`]). Nobody finds the entry before
/// it is committed; [`crate::Cache::follow`] reads it as it comes.
///
/// Dropping a writer without a commit aborts it, and leaves nothing behind. It may be sent to another thread. A
/// forked child can't use an inherited writer, and dropping it there has no effect.
///
/// Through [`Write`], errors come as [`io::Error`]s that hold an [`Error`](enum@Error). A write that fails takes none
/// of its bytes:
///
/// - [`EntryTooLarge`](Error::EntryTooLarge): this write exceeds the volume's limit, and aborts the writer.
/// - [`Pinned`](Error::Pinned), [`Busy`](Error::Busy): no more room can be made now. The caller may try the same
///   write again.
/// - [`Interrupted`](Error::Interrupted): the writer was aborted before.
pub struct Writer {
    volume: Arc<Volume>,
    line: Line,
    /// `None` once it was aborted or committed; it holds nothing then.
    room: Option<Room>,
    place: Place,
    key: Box<[u8]>,
    tags: Vec<u8>,
    /// The lengths written so far.
    lengths: Lengths,
    flags: Flags,
    times: Times,
    epoch: u32,
    serial: u64,
    checksum: Box<Xxh3>,
}

impl Writer {
    pub(super) fn begin(volume: &Volume, key: &[u8], options: &PutOptions<'_>, length: Option<u64>) -> Result<Self> {
        Self::begin_by(volume, key, options, length, |place| {
            let claim = Claim::acquire(volume, place)?;
            // A purge from now on covers the entry.
            Ok((claim, volume.purges().epoch() as u32))
        })
    }

    /// `claim` takes the key's claim, or already has it. It also returns the purge epoch in which the value counts as
    /// asked for.
    pub(super) fn begin_by<'v>(
        volume: &'v Volume,
        key: &[u8],
        options: &PutOptions<'_>,
        length: Option<u64>,
        claim: impl FnOnce(&Place) -> Result<(Claim<'v>, u32)>,
    ) -> Result<Self> {
        let draft = Draft::new(volume, key, &[], options)?;
        let value = length.unwrap_or(UNKNOWN_BYTES);
        let max = volume.layout.entry_bytes_max;
        let mut bytes = Lengths { value: value.min(max), ..draft.lengths }.record_bytes();
        if bytes > max {
            if length.is_some() {
                return Err(Error::EntryTooLarge { bytes: bytes.max(value), max });
            }
            bytes = max / UNIT_BYTES * UNIT_BYTES;
        }
        volume.check_writable()?;
        volume.mark_unclean()?;
        let place = volume.place(key);
        let (claim, epoch) = claim(&place)?;
        let draft = draft.begun_in(epoch);
        let pin = PinAt::for_room(volume, bytes)?;
        let mut stripe = Stripe::lock(volume, place.stripe)?;
        let serial = stripe.next_serial();
        let found = stripe.find(&place, key);
        let spot = write::find_room(&mut stripe, &place, bytes, found.as_ref())?;
        let room = Room::take(&stripe, spot, bytes, &draft.header(serial, 0), pin)?;
        let Some(shared) = volume.this.upgrade() else { unreachable!("a cache owns the volume") };
        let mut checksum = Box::new(Xxh3::new());
        for part in [draft.key, draft.metadata, &draft.tags] {
            checksum.update(part);
        }
        draft.fill(volume, room.record(volume, &place));
        let line = claim.into_line();
        let fill = line.fill(volume);
        fill.promise.store(Head::Entry(serial, draft.flags).word(), Release);
        seam::kill_point();
        fill.room.store(Volume::pin_word(place.stripe, room.position), Release);
        drop(stripe);
        if length.is_some() {
            let record = room.record(volume, &place);
            let begun = draft.lengths.key + draft.lengths.metadata;
            paging::make_room(volume, record.body() + begun as usize, record.offset + bytes as usize);
        }
        Ok(Self {
            volume: shared,
            line,
            room: Some(room),
            place,
            key: key.into(),
            lengths: draft.lengths,
            flags: draft.flags,
            times: draft.times,
            epoch: draft.epoch,
            tags: draft.tags,
            serial,
            checksum,
        })
    }

    /// How many bytes of the value have been written.
    pub fn written(&self) -> u64 {
        self.lengths.value
    }

    /// Reads up to `bytes` bytes from `source`, or until its end, directly into the volume. This saves the copy
    /// through a buffer that [`Write`] needs. Returns how many bytes were read.
    ///
    /// # Errors
    /// Those of the source and those of a write. Bytes read before the error count as written. They may be fewer than
    /// the source gave, if it returns bytes together with an error.
    ///
    /// ```
    /// use eyewall::{Options, PutOptions};
    ///
    /// let cache = Options::new().heap()?;
    /// let mut file = std::fs::File::open("/proc/self/status")?; // any source, a socket, say
    /// let mut writer = cache.writer("status", &PutOptions::new(), None)?;
    /// let bytes = writer.read_from(&mut file, u64::MAX)?;
    /// writer.commit()?;
    /// assert_eq!(cache.get("status")?.unwrap().len() as u64, bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_from(&mut self, source: &mut (impl Read + ?Sized), bytes: u64) -> io::Result<u64> {
        let mut left = bytes;
        while left > 0 {
            let asked = left.min(READ_BYTES).min(self.bytes_left()) as usize;
            let at = self.make_room(asked).map_err(io::Error::other)?;
            let read = match asked {
                // The entry is full. Check whether the source has ended, too.
                0 => source.read(&mut [0]),
                // SAFETY: as in `append`.
                asked => unsafe { self.volume.region.fill(at, asked, |room| source.read(room)) },
            };
            match read {
                Ok(0) => break,
                Ok(_) if asked == 0 => return Err(io::Error::other(self.refuse(self.lengths.value + 1))),
                Ok(read) => {
                    // A source may claim more bytes than it was asked for; the excess doesn't exist.
                    let read = read.min(asked);
                    self.take(at, read);
                    left -= read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes - left)
    }

    /// Makes the written value the entry of its key, and replaces any former entry. Its times count from now.
    ///
    /// # Errors
    /// Nothing is stored. [`Interrupted`](Error::Interrupted): a write beyond the limit aborted the writer, this is a
    /// forked child, or the volume was resized. [`Busy`](Error::Busy): a stopped process held the stripe for longer
    /// than the lock deadline.
    pub fn commit(mut self) -> Result<Committed> {
        let room = self.room()?;
        let volume = Arc::clone(&self.volume);
        let stripe = self.lock(&volume)?;
        if self.line.is_void(&stripe) {
            drop(stripe);
            return Ok(Committed::Superseded);
        }
        let draft = Draft {
            key: &self.key,
            metadata: &[],
            tags: std::mem::take(&mut self.tags),
            value: &[],
            lengths: self.lengths,
            flags: self.flags,
            created_ms: volume.now_ms(),
            times: self.times,
            epoch: self.epoch,
            is_dated: true,
            standing: None,
        };
        let stage = Stage::Reserved(room.bytes, self.serial);
        let spot = Spot { ring: room.ring, at: room.at, checksum: self.checksum.digest() as u32, stage };
        let found = stripe.find(&self.place, draft.key);
        let outcome = write::finish(&stripe, &self.place, spot, &draft, Condition::Claimed(self.line), found);
        if let Outcome::Superseded(_) | Outcome::Unmet = outcome {
            drop(stripe);
            return Ok(Committed::Superseded);
        }
        self.room = None;
        seam::kill_point();
        self.fill().room.store(0, Release);
        room.unpin(&volume);
        drop(stripe);
        self.end();
        volume.check_intact()?;
        Ok(Committed::Stored(self.serial))
    }

    /// Gives up: nothing is stored, and the callers that wait for the key continue. Dropping the writer does the
    /// same.
    pub fn abort(self) {
        drop(self);
    }

    /// Appends all of `bytes`, or nothing.
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let at = self.make_room(bytes.len())?;
        // SAFETY: the room belongs to this writer, is pinned, and is long enough. Followers read only below the
        // progress, which lies before these bytes.
        unsafe { self.volume.region.store(at, bytes) };
        self.take(at, bytes.len());
        Ok(())
    }

    /// Makes room for the next `bytes` bytes of the value, and returns their place.
    fn make_room(&mut self, bytes: usize) -> Result<usize> {
        let mut room = self.room()?;
        let value = self.lengths.value + bytes as u64;
        let needed = Lengths { value, ..self.lengths }.record_bytes();
        if needed > self.volume.layout.entry_bytes_max {
            return Err(self.refuse(value));
        }
        if needed > room.bytes {
            room = self.grow(room, needed)?;
        }
        Ok(self.end_of(room.record(&self.volume, &self.place).body()))
    }

    /// How many bytes of the value can still be written.
    fn bytes_left(&self) -> u64 {
        let most = self.volume.layout.entry_bytes_max / UNIT_BYTES * UNIT_BYTES;
        let beside = HEADER_BYTES + self.lengths.key + self.lengths.metadata;
        most.saturating_sub(beside + self.lengths.value)
    }

    /// Aborts, since a value of this length is too large.
    fn refuse(&mut self, value: u64) -> Error {
        self.give_up();
        let bytes = Lengths { value, ..self.lengths }.record_bytes();
        Error::EntryTooLarge { bytes, max: self.volume.layout.entry_bytes_max }
    }

    /// Adds bytes that are already in place to the value.
    fn take(&mut self, at: usize, bytes: usize) {
        // SAFETY: this writer has written them, and nobody else writes them while it has the room.
        self.checksum.update(unsafe { self.volume.region.bytes(at, bytes) });
        self.lengths.value += bytes as u64;
        self.fill().bytes.store(self.lengths.value, Release);
        self.wake();
    }

    /// The end of the written bytes in a record with this body.
    fn end_of(&self, body: usize) -> usize {
        body + (self.lengths.key + self.lengths.metadata + self.lengths.value) as usize
    }

    fn grow(&mut self, room: Room, needed: u64) -> Result<Room> {
        let volume = Arc::clone(&self.volume);
        let mut stripe = self.lock(&volume)?;
        let new = match room.grow(&mut stripe, needed, &self.header())? {
            Grown::InPlace(room) => {
                self.room = Some(room);
                return Ok(room);
            }
            Grown::Elsewhere(new) => new,
        };
        drop(stripe);
        let (from, to) = (room.record(&volume, &self.place).body(), new.record(&volume, &self.place).body());
        // SAFETY: both rooms are pinned and belong to this writer. Nobody reads the new one yet, and nobody writes
        // the old one.
        unsafe { volume.region.store(to, volume.region.bytes(from, self.end_of(from) - from)) };
        let stripe = self.lock(&volume).inspect_err(|_| new.unpin(&volume))?;
        self.room = Some(new);
        seam::kill_point();
        self.fill().room.store(Volume::pin_word(self.place.stripe, new.position), Release);
        room.unpin(&volume);
        stripe.give_up_room(room.ring, room.at, room.bytes);
        drop(stripe);
        self.wake();
        Ok(new)
    }

    /// Locks the stripe of the key. Nothing is written to a volume that was resized.
    fn lock<'v>(&self, volume: &'v Volume) -> Result<Stripe<'v>> {
        Stripe::lock(volume, self.place.stripe).map_err(|error| match error {
            Error::Moved { .. } => Error::Interrupted { why: "the volume was resized" },
            error => error,
        })
    }

    fn give_up(&mut self) {
        if let Some(room) = self.room.take()
            && self.line.is_own()
        {
            seam::kill_point();
            self.fill().room.store(0, Release);
            // Others use these bytes only after the hand has checked whether a claim names the room, and then the
            // pins. So no lock is needed, except to erase the bytes.
            let stripe = self.volume.erases.then(|| Stripe::lock(&self.volume, self.place.stripe));
            room.unpin(&self.volume);
            if let Some(Ok(stripe)) = stripe {
                stripe.give_up_room(room.ring, room.at, room.bytes);
            }
            self.end();
        }
    }

    fn end(&self) {
        self.wake();
        self.line.release(&self.volume);
    }

    fn room(&self) -> Result<Room> {
        if !self.line.is_own() {
            return Err(Error::Interrupted { why: "the writer belongs to the process that this one was forked from" });
        }
        self.room.ok_or(Error::Interrupted { why: "the writer was aborted because the value grew too large" })
    }

    fn fill(&self) -> Progress<'_, AtomicU64, AtomicU32> {
        self.line.fill(&self.volume)
    }

    fn wake(&self) {
        let signal = self.fill().signal;
        if protocol::signal(signal) {
            futex::wake(signal, u32::MAX >> 1);
        }
    }

    /// The header of the room. Followers read only the lengths of key and metadata in it.
    fn header(&self) -> Header {
        Header {
            serial: 0,
            flags: self.flags,
            lengths: Lengths { value: 0, ..self.lengths },
            mac: 0,
            checksum: 0,
            created_ms: 0,
            times: self.times,
            generation: 0,
            epoch: self.epoch,
        }
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("written", &self.written()).field("room", &self.room).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::hash::checksum;

    #[test]
    fn the_checksum_of_pieces_is_that_of_the_whole() {
        let bytes: Vec<u8> = (0..5000_u32).map(|byte| (byte * 7 % 251) as u8).collect();
        for pieces in [1, 3, 200, 255, 256, 257, 1024] {
            let mut sum = Xxh3::new();
            bytes.chunks(pieces).for_each(|piece| sum.update(piece));
            assert_eq!(sum.digest() as u32, checksum(&bytes));
        }
    }
}
