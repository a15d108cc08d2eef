//! Import: storing the entries of a stream that may come from anybody.
//!
//! Nothing of an entry is used before its checksum is verified, and no memory is allocated for bytes that haven't
//! arrived.

use std::io::{self, BufReader, Read};

use eyewall_region::clock;
use serde::Serialize;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::stream::{self, ENTRY_HEAD_BYTES, EntryHead, HEADER_BYTES, SUM_BYTES, TRAILER_REST_BYTES, Whole};
use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::format::times::Times;
use crate::put::PutOptions;
use crate::volume::Volume;
use crate::write::{self, Condition, Draft, Outcome};

const BUFFER_BYTES: usize = 64 << 10;
const REASON_BYTES: u64 = 2;

/// How [`Cache::import`] treats entries that exist already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Import {
    keep: bool,
}

impl Import {
    /// Imported entries replace existing ones.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether existing valid values stay. Stale and negative entries are replaced in any case.
    pub fn keep(mut self, keep: bool) -> Self {
        self.keep = keep;
        self
    }
}

/// What [`Cache::import`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Imported {
    /// Entries that were stored. If the volume is smaller than the stream, the last ones may have evicted the first
    /// ones again.
    pub entries: u64,
    /// Entries that were skipped because there is a valid one already ([`Import::keep`]).
    pub kept: u64,
    /// Entries that exceed the volume's limit.
    pub too_large: u64,
    /// Entries that expired since the export.
    pub expired: u64,
    /// Bytes of the stream that were read and verified.
    pub bytes: u64,
}

/// The fault of a stream.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// The stream is not an export.
    #[error("this is not the stream of an export; create one with `eyewall export`")]
    Foreign,
    /// The stream was written by another version.
    #[error(
        "the stream has version {found}, this program knows version {supported}; export it again with the same version"
    )]
    Version {
        /// The version of the stream.
        found: u32,
        /// The version that this program knows.
        supported: u32,
    },
    /// The stream ends too early.
    #[error("the stream is cut off: a part was lost on the way, or the export failed; export it again")]
    CutOff,
    /// Bytes of the stream have changed.
    #[error("the stream is damaged: {what}; export it again")]
    Damaged {
        /// The damage that was found.
        what: &'static str,
    },
    /// The stream could not be read.
    #[error("the stream could not be read: {0}")]
    Read(#[source] io::Error),
    /// The volume refused an entry.
    #[error("{0}")]
    Cache(#[source] Error),
}

/// Why an import ended early. The entries that it had stored remain.
#[derive(Debug, thiserror::Error)]
#[error("{broken} ({} entries before that were imported)", imported.entries)]
pub struct ImportError {
    /// The cause.
    #[source]
    pub broken: Broken,
    /// The part that was imported before.
    pub imported: Imported,
}

impl Cache {
    /// Stores the entries of a stream that [`Cache::export`] wrote, with their ages, times, metadata and tags. The
    /// time since the export, by the wall clocks of both machines, counts: entries that have expired by now are left
    /// out. Doesn't need bytes after the end of the stream, but may have read some.
    ///
    /// The stream doesn't know of purges since the export, so entries that they removed come back.
    ///
    /// ```
    /// use eyewall::{Import, Options};
    ///
    /// let (old, new) = (Options::new().heap()?, Options::new().heap()?);
    /// old.put("key", "value")?;
    /// let mut stream = Vec::new();
    /// old.export(&mut stream)?;
    /// assert_eq!(new.import(&stream[..], &Import::new())?.entries, 1);
    /// assert_eq!(&*new.get("key")?.expect("imported"), b"value");
    /// # Ok::<(), eyewall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Import`](Error::Import), with what was imported before the error; those entries remain.
    pub fn import(&self, from: impl Read, import: &Import) -> Result<Imported> {
        self.vouched(Volume::check_writable)?;
        let mut source = Source { from: BufReader::with_capacity(BUFFER_BYTES, from), bytes: 0 };
        let mut imported = Imported::default();
        match import_all(self, &mut source, *import, &mut imported) {
            Ok(()) => Ok(imported),
            Err(broken) => Err(Error::Import(Box::new(ImportError { broken, imported }))),
        }
    }
}

struct Source<R: Read> {
    from: BufReader<R>,
    bytes: u64,
}

impl<R: Read> Source<R> {
    fn exact<const N: usize>(&mut self) -> std::result::Result<[u8; N], Broken> {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes).map_err(Broken::from)?;
        self.bytes += N as u64;
        Ok(bytes)
    }

    /// Appends `count` bytes. Memory is allocated as they arrive.
    fn append(&mut self, count: u64, to: &mut Vec<u8>) -> std::result::Result<(), Broken> {
        let got = (&mut self.from).take(count).read_to_end(to).map_err(Broken::Read)?;
        self.bytes += got as u64;
        if got as u64 == count { Ok(()) } else { Err(Broken::CutOff) }
    }

    /// Reads and discards `count` bytes, only to add them to the checksum.
    fn pass(&mut self, mut count: u64, sum: &mut Xxh3) -> std::result::Result<(), Broken> {
        let mut block = [0; 4096];
        while count > 0 {
            let part = &mut block[..count.min(4096) as usize];
            self.from.read_exact(part).map_err(Broken::from)?;
            sum.update(part);
            self.bytes += part.len() as u64;
            count -= part.len() as u64;
        }
        Ok(())
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::CutOff } else { Self::Read(error) }
    }
}

/// The bytes of an entry. The buffers are used again for the next one.
#[derive(Default)]
struct Parts {
    tags: Vec<u8>,
    key: Vec<u8>,
    metadata: Vec<u8>,
    value: Vec<u8>,
}

fn import_all(
    cache: &Cache,
    source: &mut Source<impl Read>,
    import: Import,
    imported: &mut Imported,
) -> std::result::Result<(), Broken> {
    let (elapsed, mut whole) = read_header(source)?;
    let mut parts = Parts::default();
    loop {
        imported.bytes = source.bytes;
        let [kind] = source.exact::<1>()?;
        match kind {
            stream::ENTRY => {
                let (head, fits) = read_entry(cache.volume(), source, &mut parts, &mut whole)?;
                if fits {
                    store(cache, &head, &parts, elapsed, import, imported)?;
                } else {
                    imported.too_large += 1;
                }
            }
            stream::TRAILER => {
                let told: [u8; TRAILER_REST_BYTES] = source.exact()?;
                if told != whole.trailer_rest() {
                    return Err(Broken::Damaged { what: "its trailer doesn't match its entries" });
                }
                imported.bytes = source.bytes;
                return Ok(());
            }
            _ => return Err(Broken::Damaged { what: "an entry or the trailer is missing" }),
        }
    }
}

/// Returns the milliseconds since the export, and the state of the trailer's checksum.
fn read_header(source: &mut Source<impl Read>) -> std::result::Result<(u64, Whole), Broken> {
    let magic: [u8; 8] = source.exact()?;
    if magic != stream::MAGIC {
        return Err(Broken::Foreign);
    }
    let version: [u8; 4] = source.exact()?;
    let version = u32::from_le_bytes(version);
    if version != stream::VERSION {
        return Err(Broken::Version { found: version, supported: stream::VERSION });
    }
    let rest: [u8; HEADER_BYTES - 12] = source.exact()?;
    let mut header = stream::header(0);
    header[12..].copy_from_slice(&rest);
    let sum = stream::word(&header, HEADER_BYTES - SUM_BYTES);
    if header[12..16] != [0; 4] || sum != xxh3_64(&header[..HEADER_BYTES - SUM_BYTES]) {
        return Err(Broken::Damaged { what: "its header doesn't match its checksum" });
    }
    // A clock that is behind the exporter's clock tells nothing; then no time has passed.
    Ok((clock::wall_ms().saturating_sub(stream::word(&header, 16)), Whole::new(sum)))
}

/// Reads the rest of an entry. The flag says whether it may be stored; if not, its value was discarded.
fn read_entry(
    volume: &Volume,
    source: &mut Source<impl Read>,
    parts: &mut Parts,
    whole: &mut Whole,
) -> std::result::Result<(EntryHead, bool), Broken> {
    let mut bytes = [stream::ENTRY; ENTRY_HEAD_BYTES];
    let rest: [u8; ENTRY_HEAD_BYTES - 1] = source.exact()?;
    bytes[1..].copy_from_slice(&rest);
    let head = EntryHead::read(&bytes).ok_or(Broken::Damaged { what: "an entry has unknown flags" })?;
    let mut sum = Xxh3::new();
    sum.update(&bytes);
    for (count, part) in
        [(head.tags, &mut parts.tags), (head.key, &mut parts.key), (head.metadata, &mut parts.metadata)]
    {
        part.clear();
        source.append(count.into(), part)?;
        sum.update(part);
    }
    let fits = head.value <= volume.layout.entry_bytes_max;
    parts.value.clear();
    if fits {
        source.append(head.value, &mut parts.value)?;
        sum.update(&parts.value);
    } else {
        source.pass(head.value, &mut sum)?;
    }
    let (sum, told) = (sum.digest(), source.exact::<SUM_BYTES>()?);
    if told != sum.to_le_bytes() {
        return Err(Broken::Damaged { what: "an entry doesn't match its checksum" });
    }
    whole.add(sum);
    Ok((head, fits))
}

fn store(
    cache: &Cache,
    head: &EntryHead,
    parts: &Parts,
    elapsed: u64,
    import: Import,
    imported: &mut Imported,
) -> std::result::Result<(), Broken> {
    let is_negative = head.flags & stream::NEGATIVE != 0;
    if is_negative && head.value != REASON_BYTES {
        return Err(Broken::Damaged { what: "a negative entry has no reason" });
    }
    let fresh = head.fresh_left.map(|left| left.saturating_sub(elapsed));
    let usable = head.usable_left.map(|left| left.saturating_sub(elapsed));
    // An entry without stale time has ended when both times are zero.
    if fresh == Some(0) && usable == Some(0) {
        imported.expired += 1;
        return Ok(());
    }
    let tags = read_tags(&parts.tags)?;
    let options = PutOptions::new().metadata(&parts.metadata).tags(&tags);
    let condition = if import.keep { Condition::Absent } else { Condition::Always };
    // The volume is looked up for each entry, since it may be resized in the middle of the stream.
    let stored = cache.vouched(|volume| {
        let now = volume.now_ms();
        let created = now.saturating_sub(head.age.saturating_add(elapsed));
        let since = |left: u64| left.saturating_add(now - created);
        let times = Times::of(fresh.map(since), usable.map(since));
        let draft = Draft::new(volume, &parts.key, &parts.value, &options)?.with_age(created, times);
        write::put(volume, &if is_negative { draft.negative() } else { draft }, condition)
    });
    match stored {
        Ok(Outcome::Stored(_) | Outcome::Superseded(_)) => imported.entries += 1,
        Ok(Outcome::Unmet) => imported.kept += 1,
        // The limit for keys follows from the limit for entries.
        Err(Error::EntryTooLarge { .. } | Error::MetadataTooLong { .. } | Error::KeyTooLong { .. }) => {
            imported.too_large += 1;
        }
        Err(Error::KeyEmpty) => return Err(Broken::Damaged { what: "an entry has no key" }),
        Err(Error::TagLength { .. } | Error::TooManyTags { .. }) => {
            return Err(Broken::Damaged { what: "an entry has empty tags or too many" });
        }
        Err(error) => return Err(Broken::Cache(error)),
    }
    Ok(())
}

/// A tag is its length in 8 bits, followed by its bytes.
fn read_tags(mut left: &[u8]) -> std::result::Result<Vec<&str>, Broken> {
    let mut tags = Vec::new();
    while let Some((length, rest)) = left.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length)).ok_or(BAD_TAGS)?;
        tags.push(std::str::from_utf8(name).map_err(|_| BAD_TAGS)?);
        left = rest;
    }
    Ok(tags)
}

const BAD_TAGS: Broken = Broken::Damaged { what: "the tags of an entry can't be read" };
