//! The outbox: a file beside the volume with purges that other machines still have to hear of.
//!
//! ```text
//! purge: note in the volume -> append a record to the outbox, if there is one -> note it again
//! node:  read records -> pass them on -> all are passed on, and no append is under way -> empty the file
//! ```
//! The file exists only if the volume belongs to a fleet: its node creates it. A volume without one pays a failed `open` for each purge, and
//! look-ups and puts pay nothing. Only the reader, of which there is one, makes the file shorter.
//!
//! A process that dies during its append leaves a part of a record, and nobody was told that this purge has succeeded. The reader can't
//! know that no other record was damaged, so it puts a soft purge of everything in the place of what it skips.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use eyewall_region::appended::{Appended, Hold};
use eyewall_region::file::{self, Identity};
use eyewall_region::fork;
use eyewall_region::liveness::Alive;
use xxhash_rust::xxh3::xxh3_64;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::format::purges::Purge;
use crate::seam;
use crate::volume::Volume;

const SUFFIX: &str = ".purges";
const MAGIC: [u8; 4] = *b"EWP1";
/// Magic, length of the body, checksum of both.
const HEAD_BYTES: usize = 16;
/// The kind and what is purged.
const BODY_HEAD_BYTES: usize = 2;
/// The bytes behind, for a prefix, have at most as many bytes as a key.
const BODY_BYTES_MAX: usize = BODY_HEAD_BYTES + 0xffff;
/// The reader doesn't come, so purges must not fill the disk.
const OUTBOX_BYTES_MAX: u64 = 16 << 20;
/// How much is read at once; more than a record.
const READ_BYTES: usize = 256 << 10;

/// What a purge covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurgeOf {
    /// The entries that carry this tag.
    Tag(String),
    /// The entries whose key begins with this.
    Prefix(Vec<u8>),
    /// All entries.
    Everything,
}

/// The purges of a volume that its node has to pass on to other machines ([`Cache::outbox`]).
///
/// It belongs to the process that made it, and a forked child can't use it.
#[derive(Debug)]
pub struct Outbox {
    path: PathBuf,
    access: file::Access,
    /// The file that is read, and this process's turn to do so.
    turn: Option<Turn>,
    /// Purges are kept from being appended.
    held: Option<Appended>,
    fork: u32,
}

#[derive(Debug)]
struct Turn {
    identity: Identity,
    /// How far it is read.
    read: u64,
    alive: Option<Alive>,
}

impl Cache {
    /// The same volume for its node, which passes purges on itself: purges of the returned cache stay in the volume, also if it has an
    /// [`Outbox`].
    #[must_use]
    pub fn for_node(&self) -> Self {
        self.keeping_purges()
    }

    /// Creates the outbox of this volume, or takes over the reading of the present one. From now on, all purges of all processes go there,
    /// too, except those of [`Cache::for_node`]. `None` if another process reads it, or if the volume has no file.
    ///
    /// A file stays when this process ends, so that no purge is lost until the next node comes. Remove it if the volume no longer belongs to
    /// a fleet.
    ///
    /// # Errors
    /// [`ReadOnly`](Error::ReadOnly), [`Outbox`](Error::Outbox).
    pub fn outbox(&self) -> Result<Option<Outbox>> {
        let found = self.vouched(|volume| {
            volume.check_writable()?;
            place_of(volume)
        })?;
        let Some((path, access)) = found else { return Ok(None) };
        let mut outbox = Outbox { path, access, turn: None, held: None, fork: fork::generation() };
        Ok(outbox.has_turn()?.then_some(outbox))
    }
}

impl Outbox {
    /// The outbox's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The purges since the last call, in the order of their records; not all of them if there are many. It never waits for the
    /// processes that purge.
    ///
    /// # Errors
    /// [`Outbox`](Error::Outbox): a later call tries again.
    pub fn read(&mut self) -> Result<Vec<(PurgeOf, Purge)>> {
        let mut purges = Vec::new();
        if !self.has_turn()? {
            return Ok(purges);
        }
        let Some(turn) = &mut self.turn else { return Ok(purges) };
        let tried = match &self.held {
            Some(held) => read_on(held, turn, &mut purges),
            None => match opened(&self.path, turn) {
                Ok(Some(file)) => read_on(&file, turn, &mut purges),
                Ok(None) => Ok(Rest::Nothing),
                Err(error) => Err(error),
            },
        };
        let rest = tried.map_err(|source| failed(&self.path, source))?;
        if rest == Rest::Doubtful {
            self.skip_damage(&mut purges).map_err(|source| failed(&self.path, source))?;
        }
        Ok(purges)
    }

    /// Empties the outbox if the caller has passed on all that [`Outbox::read`] has returned, and nothing was appended since. Returns whether
    /// it did.
    ///
    /// # Errors
    /// [`Outbox`](Error::Outbox).
    pub fn forget(&mut self) -> Result<bool> {
        let Some(turn) = &mut self.turn else { return Ok(false) };
        if turn.read == 0 {
            return Ok(true);
        }
        let path = &self.path;
        let clear = |file: &Appended, turn: &mut Turn| {
            if file.identity()? != turn.identity || file.bytes()? != turn.read {
                return Ok(false);
            }
            seam::kill_point();
            file.clear()?;
            turn.read = 0;
            Ok(true)
        };
        let cleared = match &self.held {
            Some(held) => clear(held, turn),
            None => match exclusive(path) {
                Ok(Some(file)) => clear(&file, turn),
                Ok(None) => Ok(false),
                Err(error) => Err(error),
            },
        };
        cleared.map_err(|source| failed(path, source))
    }

    /// Whether it was this process's turn at the last call of [`Outbox::read`]. If not, another process reads the outbox.
    pub fn is_reader(&self) -> bool {
        self.turn.is_some()
    }

    /// How many bytes the reader has read and not emptied yet.
    pub fn bytes_read(&self) -> u64 {
        self.turn.as_ref().map_or(0, |turn| turn.read)
    }

    /// Lets purges wait until [`Outbox::release`], so that the reader can empty an outbox that others fill all the time. Returns false if an
    /// append is under way.
    ///
    /// # Errors
    /// [`Outbox`](Error::Outbox).
    pub fn hold(&mut self) -> Result<bool> {
        let held = exclusive(&self.path).map_err(|source| failed(&self.path, source))?;
        self.held = held;
        Ok(self.held.is_some())
    }

    /// Ends [`Outbox::hold`].
    pub fn release(&mut self) {
        self.held = None;
    }

    /// Whether this process reads the file that the path names now. If somebody has removed the file, makes a new one.
    fn has_turn(&mut self) -> Result<bool> {
        if self.fork != fork::generation() {
            return Ok(false);
        }
        let shown = file::identity_at(&self.path).ok();
        if shown.is_some() && self.turn.as_ref().map(|turn| turn.identity) == shown {
            return Ok(true);
        }
        (self.turn, self.held) = (None, None);
        self.turn = take_turn(&self.path, self.access).map_err(|source| failed(&self.path, source))?;
        Ok(self.turn.is_some())
    }

    /// Skips what isn't a record, once it is sure that no append is under way.
    fn skip_damage(&mut self, purges: &mut Vec<(PurgeOf, Purge)>) -> io::Result<()> {
        let Some(turn) = &mut self.turn else { return Ok(()) };
        let opened;
        let file = match &self.held {
            Some(held) => held,
            None => match exclusive(&self.path)? {
                Some(file) => {
                    opened = file;
                    &opened
                }
                None => return Ok(()),
            },
        };
        // The append may have ended meanwhile.
        if file.identity()? != turn.identity || read_on(file, turn, purges)? != Rest::Doubtful {
            return Ok(());
        }
        let bytes = file.read(turn.read, READ_BYTES)?;
        let next = (1..bytes.len()).find(|at| !matches!(record(&bytes[*at..]), Record::Bad));
        turn.read += next.unwrap_or(bytes.len()) as u64;
        purges.push((PurgeOf::Everything, Purge::Soft));
        Ok(())
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        if self.fork != fork::generation()
            && let Some(alive) = self.turn.take().and_then(|turn| turn.alive)
        {
            alive.forget_inherited();
        }
    }
}

/// Passes on a purge that the volume has noted, if the volume has an outbox.
///
/// # Errors
/// [`Error::Outbox`]: the purge counts in this volume.
pub(crate) fn pass_on(volume: &Volume, what: &PurgeOf, kind: Purge) -> Result<bool> {
    let Some(path) = path_of(volume) else { return Ok(false) };
    let append = || {
        let Some(file) = Appended::lock(&path, Hold::Shared, volume.lock_deadline)? else { return Ok(false) };
        seam::kill_point();
        file.append(&encode(what, kind), OUTBOX_BYTES_MAX)?;
        seam::kill_point();
        Ok(true)
    };
    append().map_err(|source: io::Error| failed(&path, source))
}

/// Makes the outbox of a volume that has none, so that its purges wait there for a node.
pub(crate) fn make_outbox(volume: &Volume) -> Result<()> {
    let Some((path, access)) = place_of(volume)? else { return Ok(()) };
    Appended::create(&path, access).map_err(|source| Error::io("creating", &path, source))
}

/// The path of the outbox, and who may use it: the users of the volume. `None` for a volume without a path.
fn place_of(volume: &Volume) -> Result<Option<(PathBuf, file::Access)>> {
    let Some((door, path)) = volume.membership.door().zip(path_of(volume)) else { return Ok(None) };
    let access = door.access().map_err(|source| Error::io("reading", volume.name(), source))?;
    Ok(Some((path, access)))
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::Outbox { path: path.to_owned(), source }
}

/// The outbox is beside the volume, also if links lead to the volume. A resize doesn't change it.
fn path_of(volume: &Volume) -> Option<PathBuf> {
    let path = volume.membership.path()?;
    let mut name = path.file_name()?.to_owned();
    name.push(SUFFIX);
    Some(path.with_file_name(name))
}

/// The file with the exclusive lock; `None` if an append is under way, or if there is no file.
fn exclusive(path: &Path) -> io::Result<Option<Appended>> {
    match Appended::lock(path, Hold::Exclusive, Duration::ZERO) {
        Err(error) if error.kind() == ErrorKind::TimedOut => Ok(None),
        other => other,
    }
}

fn opened(path: &Path, turn: &Turn) -> io::Result<Option<Appended>> {
    let Some(file) = Appended::open(path)? else { return Ok(None) };
    Ok((file.identity()? == turn.identity).then_some(file))
}

fn take_turn(path: &Path, access: file::Access) -> io::Result<Option<Turn>> {
    Appended::create(path, access)?;
    let Some(file) = Appended::open(path)? else { return Ok(None) };
    let identity = file.identity()?;
    Ok(file.become_reader()?.map(|alive| Turn { identity, read: 0, alive: Some(alive) }))
}

/// The bytes behind the records that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Nothing,
    /// A part of a record, or damage.
    Doubtful,
}

fn read_on(file: &Appended, turn: &mut Turn, purges: &mut Vec<(PurgeOf, Purge)>) -> io::Result<Rest> {
    if file.bytes()? < turn.read {
        // Somebody else has emptied it.
        turn.read = 0;
    }
    let bytes = file.read(turn.read, READ_BYTES)?;
    let is_all = bytes.len() < READ_BYTES;
    let mut at = 0;
    while at < bytes.len() {
        match record(&bytes[at..]) {
            Record::Whole { purge, bytes } => {
                purges.push(purge);
                at += bytes;
                turn.read += bytes as u64;
            }
            // The next call reads it.
            _ if !is_all && bytes.len() - at < HEAD_BYTES + BODY_BYTES_MAX => break,
            Record::Bad => return Ok(Rest::Doubtful),
        }
    }
    Ok(Rest::Nothing)
}

fn encode(what: &PurgeOf, kind: Purge) -> Vec<u8> {
    let (number, bytes): (u8, &[u8]) = match what {
        PurgeOf::Tag(tag) => (0, tag.as_bytes()),
        PurgeOf::Prefix(prefix) => (1, prefix),
        PurgeOf::Everything => (2, &[]),
    };
    let body_bytes = (BODY_HEAD_BYTES + bytes.len()) as u32;
    let body = [&[u8::from(kind == Purge::Soft), number][..], bytes].concat();
    let checksum = checksum(body_bytes, &body);
    [&MAGIC[..], &body_bytes.to_le_bytes(), &checksum.to_le_bytes(), &body].concat()
}

fn checksum(body_bytes: u32, body: &[u8]) -> u64 {
    xxh3_64(&[&body_bytes.to_le_bytes(), body].concat())
}

enum Record {
    Whole {
        purge: (PurgeOf, Purge),
        bytes: usize,
    },
    /// A part of one, or none.
    Bad,
}

/// The record at the beginning of `bytes`.
fn record(bytes: &[u8]) -> Record {
    let read = || {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let body_bytes = u32::from_le_bytes(head[4..8].try_into().ok()?);
        if head[..4] != MAGIC || body_bytes as usize > BODY_BYTES_MAX {
            return None;
        }
        let body = rest.get(..body_bytes as usize)?;
        if checksum(body_bytes, body).to_le_bytes() != head[8..] {
            return None;
        }
        let (head, name) = body.split_at_checked(BODY_HEAD_BYTES)?;
        let kind = if head[0] == 0 { Purge::Hard } else { Purge::Soft };
        let what = match head[1] {
            0 => PurgeOf::Tag(String::from_utf8(name.to_vec()).ok()?),
            1 => PurgeOf::Prefix(name.to_vec()),
            2 => PurgeOf::Everything,
            _ => return None,
        };
        Some(Record::Whole { purge: (what, kind), bytes: HEAD_BYTES + body.len() })
    };
    read().unwrap_or(Record::Bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_purge_survives_as_a_record_and_no_damaged_one_does() {
        let purges =
            [PurgeOf::Tag("post-7".to_owned()), PurgeOf::Prefix(b"/shop/\xff\0".to_vec()), PurgeOf::Everything];
        for (what, kind) in purges.iter().flat_map(|what| [(what, Purge::Hard), (what, Purge::Soft)]) {
            let bytes = encode(what, kind);
            let Record::Whole { purge, bytes: count } = record(&bytes) else { panic!("{what:?}") };
            assert_eq!((purge, count), ((what.clone(), kind), bytes.len()));
            for at in 0..bytes.len() {
                assert!(matches!(record(&bytes[..at]), Record::Bad));
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x10;
                assert!(matches!(record(&damaged), Record::Bad));
            }
        }
    }
}
