//! Errors: what went wrong, and what to do. A miss is not an error.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::format::layout::{SIZE_MIN, Unfit};
use crate::format::superblock::{Rejected, VERSION};
use crate::transfer::ImportError;

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation did not happen. The entry of the key is unchanged, but other entries may have been evicted to
/// make room for it. [`crate::Cache::clear`] may have emptied some stripes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The key has no bytes.
    #[error("the key is empty; a key has at least one byte")]
    KeyEmpty,
    /// The key is longer than the limit of the format or of the volume.
    #[error("the key has {bytes} bytes, the limit is {max}; use a hash of it as key")]
    KeyTooLong {
        /// Its length.
        bytes: usize,
        /// The longest key.
        max: usize,
    },
    /// The metadata is longer than 65,535 bytes.
    #[error("the metadata has {bytes} bytes, the limit is {max}; store it as part of the value")]
    MetadataTooLong {
        /// Its length.
        bytes: usize,
        /// The longest metadata.
        max: usize,
    },
    /// The entry has more tags than it can carry.
    #[error("the entry has {count} tags, the limit is {max}; join those that are always purged together")]
    TooManyTags {
        /// How many tags it has.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// A tag is empty or too long.
    #[error("a tag has {bytes} bytes; it must have 1 to {max}. Use a hash of a longer one")]
    TagLength {
        /// Its length.
        bytes: usize,
        /// The longest tag.
        max: usize,
    },
    /// The entry to increment is not a counter.
    #[error("the entry is not a counter: its value has {bytes} bytes, not 8; remove it first, or use another key")]
    NotACounter {
        /// The value's length.
        bytes: usize,
    },
    /// Key, metadata and value together exceed the volume's limit for one entry.
    #[error(
        "the entry needs {bytes} bytes, the limit of this volume is {max}; \
         create it with a larger entry_bytes_max (at most a quarter of its size) or split the value"
    )]
    EntryTooLarge {
        /// Header, key, metadata and value.
        bytes: u64,
        /// The volume's `entry_bytes_max`.
        max: u64,
    },
    /// The requested size is below 512 KiB.
    #[error("a volume of {bytes} bytes is too small; the smallest has {min}")]
    SizeTooSmall {
        /// The requested bytes.
        bytes: u64,
        /// The smallest size.
        min: u64,
    },
    /// The requested size is larger than positions can address.
    #[error("a volume of {bytes} bytes is too large; the largest with these options has {max} bytes")]
    SizeTooLarge {
        /// The requested bytes.
        bytes: u64,
        /// The largest size, with the same options.
        max: u64,
    },
    /// `entry_bytes_max` is out of range.
    #[error("entry_bytes_max is {bytes}; for this size it must lie between 96 and {max}")]
    EntryMaxOutOfRange {
        /// The requested bytes.
        bytes: u64,
        /// A quarter of the volume.
        max: u64,
    },
    /// There is no such file, and `create` is off.
    #[error("there is no volume at {path}; create one first, or open with create(true)")]
    NotFound {
        /// The path that was opened.
        path: PathBuf,
    },
    /// The file is not a volume.
    #[error("{path} is not an Eyewall volume; it was left as it is. Choose another path")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file has a format version that this program doesn't know.
    #[error(
        "{path} has format version {found}, this program knows version {supported}; \
         to keep its entries, run `eyewall export` of the program that created it and `eyewall import` of this one; \
         or remove the file to start empty"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version that this program knows.
        supported: u32,
    },
    /// The file was made on a machine of the other byte order.
    #[error("{path} was made on a machine of another byte order; remove it to start empty")]
    ByteOrder {
        /// The file.
        path: PathBuf,
    },
    /// The file is empty or truncated, or its header is damaged.
    #[error(
        "{path} is damaged: {what}. Remove it to start empty, or open it with put_aside_broken(true), \
         which renames it and creates a new volume"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The damage that was found.
        what: &'static str,
    },
    /// The volume has another shape than the options ask for.
    #[error(
        "{path} was created with {option} = {found}, not {asked}; \
         leave the option out to use the volume as it is, or remove the file to start empty"
    )]
    OptionsDiffer {
        /// The file.
        path: PathBuf,
        /// Which option.
        option: &'static str,
        /// What the caller asked for.
        asked: u64,
        /// What the volume has.
        found: u64,
    },
    /// The volume can't have the tier that was asked for.
    #[error("{path} can't have a tier: {why}; open it without one")]
    NoTier {
        /// The volume, or the tier's file.
        path: PathBuf,
        /// Why not.
        why: &'static str,
    },
    /// The storage has no room for the volume. Nothing was left behind.
    #[error("no room for a volume of {bytes} bytes at {path}; free some space or choose a smaller size")]
    NoSpace {
        /// Where the volume was to be created.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The directory or file can't be written, or the cache was opened for reading only.
    #[error("{path} can only be read; {advice}")]
    ReadOnly {
        /// The file or directory.
        path: PathBuf,
        /// What helps.
        advice: &'static str,
    },
    /// Living processes have taken every process slot of the volume. Or this is a forked child that could not
    /// register, because no slot was left or it may not open the file again; it can read, but not write.
    #[error(
        "this process could not be registered: at most {max} processes can be attached to this volume; \
         stop some, or create a larger volume. A forked child can also open the volume again"
    )]
    TooManyProcesses {
        /// Slots of this volume's process table.
        max: u64,
    },
    /// Readers hold the bytes that would have to go, so no room can be made. The plan found no way, so it evicted
    /// nothing. Entries that were evicted before readers interfered stay evicted.
    #[error("readers hold too much of the cache to make room for {bytes} bytes; drop some hits and retry")]
    Pinned {
        /// The entry's bytes.
        bytes: u64,
    },
    /// Another process or thread held what this call needs for longer than the lock deadline.
    #[error("still waiting for {what} after {waited:?}; its holder is stopped, or the machine is overloaded; retry")]
    Busy {
        /// The thing that the call waited for.
        what: &'static str,
        /// For how long.
        waited: Duration,
    },
    /// An entry that was being written, or followed while it was written, will not be completed. The bytes read so
    /// far belong to no entry.
    #[error("the entry was not completed: {why}; look its key up again, and fill it if it is absent")]
    Interrupted {
        /// What happened.
        why: &'static str,
    },
    /// Bytes of the volume were lost under its map ([`crate::Options::survive_sigbus`]), or its header was
    /// overwritten ([`crate::Cache::check_header`]). The cache can no longer be used, and the state of the key's
    /// entry is unknown.
    #[error(
        "{path} failed: the file was truncated, its header was overwritten, or its storage returned an error; \
         close the cache, remove or replace the file, and open it again"
    )]
    Failed {
        /// The file.
        path: PathBuf,
    },
    /// The volume was resized, so another file has taken its place. This process can't follow, because the path still
    /// leads to the old file here, for instance because that file itself is mounted.
    #[error(
        "{path} was resized, but leads to the old file here; mount its directory instead of the file, and open it again"
    )]
    Moved {
        /// The volume's path.
        path: PathBuf,
    },
    /// The volume to resize has no file: it has no name, or lies on the heap.
    #[error("a volume without a file can't be resized; create a new one")]
    Nameless,
    /// A purge counts in this volume, but could not be put into its outbox, so other machines don't hear of it. Or the node could not read
    /// the outbox.
    #[error(
        "the purge counts here, but can't be passed on through {path}: {source}; see that the volume's node runs, and purge again"
    )]
    Outbox {
        /// The outbox's file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The stream of an export could not be written. It is incomplete.
    #[error("can't write the export: {source}")]
    Export {
        /// The error of the writer.
        source: io::Error,
    },
    /// An import ended early. The entries that it had stored remain.
    #[error(transparent)]
    Import(#[from] Box<ImportError>),
    /// The operating system reported an error.
    #[error("{what} {path}: {source}")]
    Io {
        /// The attempted operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }

    pub(crate) fn unfit(why: Unfit, size: u64, entry_bytes_max: u64) -> Self {
        match why {
            Unfit::SizeTooSmall => Self::SizeTooSmall { bytes: size, min: SIZE_MIN },
            Unfit::SizeTooLarge { most } => Self::SizeTooLarge { bytes: size, max: most },
            Unfit::EntryMax { most } => Self::EntryMaxOutOfRange { bytes: entry_bytes_max, max: most },
        }
    }

    pub(crate) fn rejected(why: Rejected, path: &Path) -> Self {
        let path = path.to_owned();
        match why {
            Rejected::Foreign => Self::Foreign { path },
            Rejected::Version(found) => Self::Version { path, found, supported: VERSION },
            Rejected::ByteOrder => Self::ByteOrder { path },
            Rejected::Zeros => Self::Corrupt { path, what: "its header is zeros" },
            Rejected::Corrupt(what) => Self::Corrupt { path, what },
        }
    }
}
