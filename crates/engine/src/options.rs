//! How a volume is opened or created.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::Duration;

use eyewall_region::file::Access;

use crate::attach;
use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::format::layout::Layout;
use crate::format::superblock::Superblock;
use crate::tier;
use crate::volume::Volume;

const PAGE_BYTES: u64 = 4096;
const SIZE_DEFAULT: u64 = 64 << 20;
const ENTRY_SIZE_HINT_DEFAULT: u64 = 1024;
const TIER_FOLDER_DEFAULT: &str = "/dev/shm";
/// So many of the largest copies fit a tier: it then has sixteen stripes, of which one at a time can be given back.
const TIER_ENTRIES_LEAST: u64 = 256;
const TIER_ENTRY_LEAST: u64 = 16 << 10;
/// A copy is made while somebody waits for the entry.
const TIER_ENTRY_MOST: u64 = 1 << 20;
const LOCK_DEADLINE_DEFAULT: Duration = Duration::from_secs(1);

/// What becomes of a volume that was not left in order: the machine lost power or crashed, or the file is a copy. What
/// survives what, in detail: `docs/operations-volume.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Unclean {
    /// What reached storage is kept: each entry is verified before it is used, and what fails is dropped. All that was
    /// purged or removed before the last [`Cache::sync`] stays so.
    #[default]
    Keep,
    /// It is emptied.
    Clear,
}

/// How a volume is opened or created.
///
/// ```
/// use eyewall::Options;
///
/// let folder = tempfile::tempdir()?;
/// let cache = Options::new().size(16 << 20).entry_size_hint(4096).open(folder.path().join("pages"))?;
/// cache.put("/", "<h1>Hello</h1>")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The shape of a volume (size, hint, largest entry) is fixed when it is created. Opening an existing one
/// with a shape that was set and differs is an error, never a silent wipe; a shape that was not set is the
/// file's own.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "switches that have nothing to do with each other")]
pub struct Options {
    size: Option<u64>,
    entry_size_hint: Option<u64>,
    pub(crate) entry_bytes_max: Option<u64>,
    pub(crate) create: bool,
    pub(crate) read_only: bool,
    mode: u32,
    group: Option<u32>,
    pub(crate) lock_deadline: Duration,
    pub(crate) secure_erase: bool,
    pub(crate) survive_sigbus: bool,
    pub(crate) put_aside_broken: bool,
    pub(crate) verify_hits: bool,
    pub(crate) unclean: Unclean,
    pub(crate) tier: Option<u64>,
    tier_folder: Option<PathBuf>,
    /// Of a volume that takes the place of another in this process: [`Volume::lineage`] of that.
    pub(crate) lineage: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            size: None,
            entry_size_hint: None,
            entry_bytes_max: None,
            create: true,
            read_only: false,
            mode: 0o600,
            group: None,
            lock_deadline: LOCK_DEADLINE_DEFAULT,
            secure_erase: false,
            survive_sigbus: false,
            put_aside_broken: false,
            verify_hits: false,
            unclean: Unclean::Keep,
            tier: None,
            tier_folder: None,
            lineage: None,
        }
    }
}

impl Options {
    /// The defaults: 64 MiB, created if absent, for its owner only.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes of the volume, all overhead included: the hard cap. At least 512 KiB; rounded down to a multiple of 4096.
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// The expected size of a typical entry (key, metadata and value together) in bytes; default 1024, and more than
    /// 4096 counts as 4096. The index begins with slots for entries of this size, and follows those that are put.
    pub fn entry_size_hint(mut self, bytes: u32) -> Self {
        self.entry_size_hint = Some(u64::from(bytes.max(16)));
        self
    }

    /// The largest entry (header, key, metadata and value) in bytes; default 1/16 of the size, at most
    /// 4 MiB. It can be raised to a quarter of the size. Larger ones are refused: one of them would throw
    /// out too much of everybody else's.
    pub fn entry_bytes_max(mut self, bytes: u64) -> Self {
        self.entry_bytes_max = Some(bytes);
        self
    }

    /// Whether to create the volume if there is none; default true. A read-only open never does.
    pub fn create(mut self, yes: bool) -> Self {
        self.create = yes;
        self
    }

    /// Opens an existing volume without the right to write: for inspection, and for files that this user
    /// may only read. Each hit is a verified copy, since a reader that can't write can't hold bytes in place.
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// Permission bits of a new volume, whatever the umask; default `0o600`.
    ///
    /// Only the nine permission bits count. **Whoever may write the file is trusted** not to change bytes that others have pinned.
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode & 0o777;
        self
    }

    /// The group of a new volume; default that of the process.
    pub fn group(mut self, gid: u32) -> Self {
        self.group = Some(gid);
        self
    }

    /// How long an operation waits for a stopped or overloaded process before it returns
    /// [`Error::Busy`]; default one second. A dead one is noticed within milliseconds.
    pub fn lock_deadline(mut self, wait: Duration) -> Self {
        self.lock_deadline = wait;
        self
    }

    /// Whether a new volume overwrites the bytes of each entry that dies with zeros: when it is replaced, removed, evicted or
    /// swept away, or when the last reader that holds it has gone and the hand comes by. Default false. It costs a write of
    /// every byte once more.
    ///
    /// A copy that storage has made of a block (snapshots, wear levelling, a journal) is out of its reach.
    pub fn secure_erase(mut self, yes: bool) -> Self {
        self.secure_erase = yes;
        self
    }

    /// Survives the loss of bytes under the map: somebody truncates the file, or its storage fails. Default false: the
    /// kernel ends the process by SIGBUS.
    ///
    /// Installs a handler of SIGBUS in this process, once; faults outside of such volumes go to the handler that was
    /// there before. A lost page reads as zeros from then on. The call that met it, and every later one, returns
    /// [`Error::Failed`]; nothing is written to storage any more. Other volumes aren't concerned, nor other processes,
    /// each of which meets the loss for itself. Whoever holds a hit asks [`crate::Hit::is_intact`] after reading it. A
    /// system call that is given lost bytes, as when they are written to a socket, fails with "bad address"
    /// (`EFAULT`), and no signal comes.
    ///
    /// Threads that block SIGBUS die of it all the same. So do those of a program that installs a handler later which
    /// doesn't call ours.
    pub fn survive_sigbus(mut self, yes: bool) -> Self {
        self.survive_sigbus = yes;
        self
    }

    /// Puts a broken volume aside instead of failing: [`Options::open`] renames the file to `<name>.broken-<seconds since
    /// 1970>` and creates a new volume of the size, mode and group that these options ask for. Default false: opening such a file
    /// returns [`Error::Corrupt`].
    ///
    /// A file is broken if it is empty or begins with 1 MiB of zeros, is shorter than its header says, its header fails its checksum, or its
    /// first page was overwritten. The last is told by the words of its stripes: the file must have its length, and,
    /// unless the page was overwritten with zeros, something must have been stored in it. Other files are never renamed: a file that shows no sign of a volume
    /// ([`Error::Foreign`]) may be somebody's data, and a volume of another format version ([`Error::Version`]) is sound for another
    /// program.
    ///
    /// One broken file is kept; older ones are removed. [`Cache::put_aside`] names it. It keeps its blocks, so the disk
    /// needs room for both. If several processes open the path at once, one of them renames the file, and all use the new volume. The option does nothing
    /// with `create(false)` or `read_only(true)`.
    pub fn put_aside_broken(mut self, yes: bool) -> Self {
        self.put_aside_broken = yes;
        self
    }

    /// Verifies the checksum of each hit before it is handed out. Default false: an entry is verified at its first use after it
    /// was written by another attachment, or was read from storage after a loss of power, and trusted from then on.
    ///
    /// An entry that fails is a miss, is dropped (at once if the stripe's lock is free, else by a later look-up), and counts in
    /// [`crate::Stats::evictions_damaged`]. That guards against other programs that write to the file, and against failing memory or
    /// disks. It can't see what is changed while a hit is held.
    ///
    /// Each hit then reads all of its bytes. `docs/operations-volume.md` says what that costs. [`Cache::scrub`] finds the
    /// same damage later, at a fraction of the cost. Hits that are copies made without a pin ([`Options::read_only`]) are always
    /// verified. The option is this process's; others may open the volume without it.
    pub fn verify_hits(mut self, yes: bool) -> Self {
        self.verify_hits = yes;
        self
    }

    /// What becomes of an existing volume that was not left in order; default [`Unclean::Keep`]. Asked of whoever opens it
    /// first. A kill of any process, or of all of them, leaves a volume in order, as long as the machine runs on.
    pub fn unclean(mut self, unclean: Unclean) -> Self {
        self.unclean = unclean;
        self
    }

    /// Puts a **tier** of up to so many bytes before the volume: copies, in shared memory, of what is asked for often. For
    /// volumes that are larger than memory, or on a slow disk. Default: none.
    ///
    /// All processes that open the volume with a tier share one; those that don't, see and change the same entries. It never
    /// gives what was overwritten, removed or purged, by whomever. [`Cache::get`], [`Cache::lookup`] and [`Cache::get_many`]
    /// look there first; copied is what takes up to 1/256 of the tier, and 1 MiB.
    ///
    /// It takes memory as it is filled, and gives it back when the process's control group gets short of it (see
    /// `docs/operations-volume.md`). Its file is there from the first process that opens it to the last one that leaves. One that
    /// is in use has a fixed size: asking for another is an error. When the volume is resized, it gets a new tier of the
    /// same size; where that can't be had, it goes on without.
    ///
    /// Not for volumes without a file, opened read-only, or that erase what dies: [`Error::NoTier`].
    pub fn tier(mut self, bytes: u64) -> Self {
        self.tier = Some(bytes);
        self
    }

    /// Where the tier's file is to be; default `/dev/shm`. A folder in shared memory; all processes must name the same.
    pub fn tier_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.tier_folder = Some(folder.into());
        self
    }

    /// Opens the volume at `path`; creates it if there is none (see [`Options::create`]).
    ///
    /// Creation allocates all blocks and appears at once: no other process ever sees half a volume.
    ///
    /// **Hazard**: the file is mapped. If somebody truncates it, or its storage fails, reading it raises SIGBUS, unless
    /// [`Options::survive_sigbus`] was asked for.
    ///
    /// # Errors
    /// [`NotFound`](Error::NotFound), [`Foreign`](Error::Foreign), [`Version`](Error::Version),
    /// [`ByteOrder`](Error::ByteOrder), [`Corrupt`](Error::Corrupt), [`OptionsDiffer`](Error::OptionsDiffer): the file is
    /// left as it is, unless [`Options::put_aside_broken`] says otherwise. [`SizeTooSmall`](Error::SizeTooSmall), [`SizeTooLarge`](Error::SizeTooLarge),
    /// [`EntryMaxOutOfRange`](Error::EntryMaxOutOfRange), [`NoSpace`](Error::NoSpace), [`ReadOnly`](Error::ReadOnly):
    /// nothing was created. [`TooManyProcesses`](Error::TooManyProcesses), [`Io`](Error::Io). [`Busy`](Error::Busy): another process
    /// was stopped while it attached, for ten seconds. With a tier, each of them for
    /// its file, too, and [`NoTier`](Error::NoTier): the volume may have been created then.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Cache> {
        let volume = attach::open(self, path.as_ref())?;
        let tiers = tier::open(self, &volume)?;
        Ok(Cache::from_volume(volume, tiers))
    }

    /// A volume in shared memory that has no name: this process shares it with those that it forks. Never
    /// read-only.
    pub fn anonymous(&self) -> Result<Cache> {
        tier::refuse(self, "an anonymous volume")?;
        attach::anonymous(&self.clone().read_only(false)).map(|volume| Cache::from_volume(volume, None))
    }

    /// A volume in this process's heap, shared by its threads only: for tests and models. Never read-only.
    pub fn heap(&self) -> Result<Cache> {
        tier::refuse(self, "a heap volume")?;
        attach::heap(&self.clone().read_only(false)).map(|volume| Cache::from_volume(volume, None))
    }

    /// With the shape of `volume` where none was set, to make a volume that takes its place.
    pub(crate) fn in_place_of(&self, volume: &Volume) -> Self {
        let old = &volume.layout;
        let size = self.size.unwrap_or(old.size);
        // A limit that followed from the old size follows from the new one.
        let derived = Layout::entry_bytes_max_for(old.size) == old.entry_bytes_max;
        let kept = if derived { None } else { Some(old.entry_bytes_max.min(size / 4)) };
        Self {
            size: Some(size),
            entry_size_hint: self.entry_size_hint.or(Some(old.entry_size_hint)),
            entry_bytes_max: self.entry_bytes_max.or(kept),
            secure_erase: self.secure_erase || volume.erases,
            ..volume.options.clone()
        }
    }

    /// Takes an existing volume of whatever shape.
    pub(crate) fn forget_shape(&mut self) {
        (self.size, self.entry_size_hint, self.entry_bytes_max) = (None, None, None);
        self.secure_erase = false;
    }

    pub(crate) fn size_or_default(&self) -> u64 {
        self.size.unwrap_or(SIZE_DEFAULT)
    }

    pub(crate) fn entry_size_hint_or_default(&self) -> u64 {
        self.entry_size_hint.unwrap_or(ENTRY_SIZE_HINT_DEFAULT)
    }

    pub(crate) fn tier_folder_or_default(&self) -> &Path {
        self.tier_folder.as_deref().unwrap_or(Path::new(TIER_FOLDER_DEFAULT))
    }

    /// For the tier of a volume whose file has this owner.
    pub(crate) fn for_tier(&self, bytes: u64, volume: &Volume, owner: &Metadata) -> Self {
        let access = tier::access_of(owner);
        Self {
            size: Some(bytes),
            entry_size_hint: Some(volume.layout.entry_size_hint),
            entry_bytes_max: Some((bytes / TIER_ENTRIES_LEAST).clamp(TIER_ENTRY_LEAST, TIER_ENTRY_MOST)),
            mode: access.mode,
            group: access.group,
            lock_deadline: self.lock_deadline,
            survive_sigbus: self.survive_sigbus,
            verify_hits: self.verify_hits,
            ..Self::default()
        }
    }

    /// Of the shape, only the size is asked for.
    pub(crate) fn any_shape(&self) -> Self {
        Self { entry_size_hint: None, entry_bytes_max: None, ..self.clone() }
    }

    pub(crate) fn access(&self) -> Access {
        Access { mode: self.mode, group: self.group }
    }

    /// Whether an existing volume is what was asked for.
    pub(crate) fn check_against(&self, superblock: &Superblock, path: &Path) -> Result<()> {
        let found = &superblock.layout;
        let asked = Layout::new(
            self.size.unwrap_or(found.size),
            self.entry_size_hint.unwrap_or(found.entry_size_hint),
            Some(self.entry_bytes_max.unwrap_or(found.entry_bytes_max)),
        );
        let hint = asked.map_or(self.entry_size_hint, |layout| self.entry_size_hint.map(|_| layout.entry_size_hint));
        let pairs = [
            ("size", self.size.map(|size| size - size % PAGE_BYTES), found.size),
            ("entry_size_hint", hint, found.entry_size_hint),
            ("entry_bytes_max", self.entry_bytes_max, found.entry_bytes_max),
            // Who doesn't ask for it can use a volume that does it.
            ("secure_erase", self.secure_erase.then_some(1), u64::from(superblock.erases)),
        ];
        for (option, asked, found) in pairs {
            if let Some(asked) = asked.filter(|asked| *asked != found) {
                return Err(Error::OptionsDiffer { path: path.to_owned(), option, asked, found });
            }
        }
        Ok(())
    }
}
