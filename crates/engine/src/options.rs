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
use crate::purge;
use crate::tier;
use crate::volume::Volume;

const PAGE_BYTES: u64 = 4096;
const SIZE_DEFAULT: u64 = 64 << 20;
const ENTRY_SIZE_HINT_DEFAULT: u64 = 1024;
const TIER_FOLDER_DEFAULT: &str = "/dev/shm";
/// How many copies of the largest size fit a tier at least. The tier then has sixteen stripes, and can give them back
/// one at a time.
const TIER_ENTRIES_LEAST: u64 = 256;
const TIER_ENTRY_LEAST: u64 = 16 << 10;
/// Low, since a copy is made while somebody waits for the entry.
const TIER_ENTRY_MOST: u64 = 1 << 20;
const LOCK_DEADLINE_DEFAULT: Duration = Duration::from_secs(1);

/// What happens to a volume that was not left in order, because the machine lost power or crashed, or because the
/// file is a copy. `docs/operations-volume.md` says in detail what survives what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Unclean {
    /// Keep what reached storage. Each entry is verified before it is used, and dropped if it fails. All that was
    /// purged or removed before the last [`Cache::sync`] stays so.
    #[default]
    Keep,
    /// Empty the volume.
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
/// The shape of a volume (size, entry-size hint, largest entry) is fixed when it is created. Opening an existing
/// volume with a shape that was set and differs is an error; the volume is never wiped. A shape that was not set is
/// taken from the file.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
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
    fleet: bool,
    pub(crate) unclean: Unclean,
    pub(crate) tier: Option<u64>,
    tier_folder: Option<PathBuf>,
    /// For a volume that replaces another one in this process: the [`Volume::lineage`] of that one.
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
            fleet: false,
            unclean: Unclean::Keep,
            tier: None,
            tier_folder: None,
            lineage: None,
        }
    }
}

impl Options {
    /// The defaults: 64 MiB, created if absent, accessible to its owner only.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes of the volume with all overhead, a hard cap. At least 512 KiB; rounded down to a multiple of 4096.
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// The expected size of a typical entry (key, metadata and value together) in bytes. Default 1024; more than 4096
    /// counts as 4096. The index starts with slots for entries of this size, then adapts to the entries that are put.
    pub fn entry_size_hint(mut self, bytes: u32) -> Self {
        self.entry_size_hint = Some(u64::from(bytes.max(16)));
        self
    }

    /// The largest entry (header, key, metadata and value) in bytes. Default: 1/16 of the size, but at most 4 MiB. It
    /// can be raised to a quarter of the size. Larger entries are refused, since one of them would evict too many
    /// others.
    pub fn entry_bytes_max(mut self, bytes: u64) -> Self {
        self.entry_bytes_max = Some(bytes);
        self
    }

    /// Whether to create the volume if it doesn't exist; default true. A read-only open never creates one.
    pub fn create(mut self, yes: bool) -> Self {
        self.create = yes;
        self
    }

    /// Opens an existing volume without write access: to inspect it, or because this user may only read the file.
    /// Each hit is then a verified copy, since a reader that can't write can't hold bytes in place.
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// Permission bits of a new volume, independent of the umask; default `0o600`.
    ///
    /// Only the nine permission bits count. **Every user who may write the file is trusted** not to change bytes that
    /// others have pinned.
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode & 0o777;
        self
    }

    /// The group of a new volume; default: the group of the process.
    pub fn group(mut self, gid: u32) -> Self {
        self.group = Some(gid);
        self
    }

    /// How long an operation waits for a stopped or overloaded process before it returns [`Error::Busy`]; default one
    /// second. A dead process is noticed within milliseconds.
    pub fn lock_deadline(mut self, wait: Duration) -> Self {
        self.lock_deadline = wait;
        self
    }

    /// Whether a new volume overwrites the bytes of dead entries with zeros; default false. It does so when an entry
    /// is replaced, removed, evicted or swept. If a reader still holds the entry, it does so when the hand next comes
    /// by after the last reader has gone. This writes every byte once more.
    ///
    /// It can't reach copies of a block that the storage made, for instance in snapshots, a journal, or by wear
    /// levelling.
    pub fn secure_erase(mut self, yes: bool) -> Self {
        self.secure_erase = yes;
        self
    }

    /// Survives the loss of bytes under the map, when somebody truncates the file or its storage fails. Default
    /// false: the kernel ends the process by SIGBUS.
    ///
    /// The option installs a SIGBUS handler in this process, once. Faults outside of such volumes go to the handler
    /// that was installed before.
    ///
    /// - A lost page reads as zeros from then on.
    /// - The call that met the loss, and every later one, returns [`Error::Failed`]. Nothing is written to storage
    ///   any more.
    /// - Other volumes are unaffected. So are other processes, until they meet the loss themselves.
    /// - Callers that hold a hit ask [`crate::Hit::is_intact`] after reading it.
    /// - A system call that receives lost bytes, for instance to write them to a socket, fails with "bad address"
    ///   (`EFAULT`) instead of a signal.
    ///
    /// Two cases still end the process: a thread that blocks SIGBUS, and a handler that the program installs later
    /// and that doesn't call ours.
    pub fn survive_sigbus(mut self, yes: bool) -> Self {
        self.survive_sigbus = yes;
        self
    }

    /// Puts a broken volume aside instead of failing; default false. [`Options::open`] renames the file to
    /// `<name>.broken-<seconds since 1970>` and creates a new volume with the size, mode and group of these options.
    /// Without the option, opening such a file returns [`Error::Corrupt`].
    ///
    /// A file counts as broken in these cases:
    ///
    /// - it is empty, or begins with 1 MiB of zeros;
    /// - it is shorter than its header says;
    /// - its header fails its checksum;
    /// - its first page was overwritten. The words of its stripes show this: the file must still have its length and,
    ///   unless the page was overwritten with zeros, something must have been stored in it.
    ///
    /// Other files are never renamed. A file without any sign of a volume ([`Error::Foreign`]) may be somebody's
    /// data. A volume of another format version ([`Error::Version`]) is sound for another program.
    ///
    /// The engine keeps one broken file and removes older ones; [`Cache::put_aside`] names it. The file keeps its
    /// blocks, so the disk needs room for both. If several processes open the path at once, one of them renames the
    /// file, and all use the new volume. With `create(false)` or `read_only(true)` the option has no effect.
    pub fn put_aside_broken(mut self, yes: bool) -> Self {
        self.put_aside_broken = yes;
        self
    }

    /// Verifies the checksum of each hit before returning it; default false. By default, an entry is verified at its
    /// first use after another attachment wrote it, or after it was read from storage after a power loss. It is
    /// trusted from then on.
    ///
    /// An entry that fails is a miss and counts in [`crate::Stats::evictions_damaged`]. It is dropped at once if the
    /// stripe's lock is free, otherwise by a later look-up. This protects against other programs that write to the
    /// file and against failing memory or disks. It can't detect changes while a hit is held.
    ///
    /// Each hit then reads all of its bytes; `docs/operations-volume.md` says what that costs. [`Cache::scrub`] finds
    /// the same damage later, at a fraction of the cost. Hits that were copied without a pin ([`Options::read_only`])
    /// are always verified. The option applies to this process; others may open the volume without it.
    pub fn verify_hits(mut self, yes: bool) -> Self {
        self.verify_hits = yes;
        self
    }

    /// What happens to an existing volume that was not left in order; default [`Unclean::Keep`]. Only the first
    /// process to open the volume decides. Killing any or all of its processes leaves a volume in order, as long as
    /// the machine keeps running.
    pub fn unclean(mut self, unclean: Unclean) -> Self {
        self.unclean = unclean;
        self
    }

    /// Puts a **tier** of up to this many bytes in front of the volume: shared memory with copies of what is read
    /// often. For volumes that are larger than memory or on a slow disk. Default: no tier.
    ///
    /// All processes that open the volume with a tier share one. Processes without it see and change the same
    /// entries. A tier never returns what any process has overwritten, removed or purged. [`Cache::get`],
    /// [`Cache::lookup`] and [`Cache::get_many`] ask it first. It takes copies of entries of up to 1/256 of its size,
    /// and at most 1 MiB.
    ///
    /// The tier takes memory as it fills. It gives memory back when the process's control group runs short of it (see
    /// `docs/operations-volume.md`). Its file exists from the first process that opens it to the last one that
    /// leaves. A tier in use has a fixed size; asking for another is an error. When the volume is resized, it gets a
    /// new tier of the same size, or continues without one if that fails.
    ///
    /// A volume can't have a tier if it has no file, is opened read-only, or erases dead entries: [`Error::NoTier`].
    pub fn tier(mut self, bytes: u64) -> Self {
        self.tier = Some(bytes);
        self
    }

    /// The folder of the tier's file; default `/dev/shm`. It must be in shared memory, and all processes must name
    /// the same folder.
    pub fn tier_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.tier_folder = Some(folder.into());
        self
    }

    /// Says that the volume belongs to a fleet; default false. Purges of this and all other processes wait in the volume's outbox for its
    /// node, which passes them on to other machines: `eyewall serve` with a `[fleet]`, or `eyewall fleet agent`. A node also makes the
    /// outbox, so the option is for programs that may purge before the first node has run. It has no effect with `read_only`, and none on
    /// a volume without a file.
    pub fn fleet(mut self, yes: bool) -> Self {
        self.fleet = yes;
        self
    }

    /// Opens the volume at `path`, or creates it if there is none (see [`Options::create`]).
    ///
    /// A new volume gets all of its blocks, and appears at once: no other process ever sees half a volume.
    ///
    /// **Hazard**: the file is mapped. If somebody truncates it, or its storage fails, reading it raises SIGBUS,
    /// unless [`Options::survive_sigbus`] is set.
    ///
    /// # Errors
    /// - [`NotFound`](Error::NotFound), [`Foreign`](Error::Foreign), [`Version`](Error::Version),
    ///   [`ByteOrder`](Error::ByteOrder), [`Corrupt`](Error::Corrupt), [`OptionsDiffer`](Error::OptionsDiffer): the
    ///   file is left as it is, unless [`Options::put_aside_broken`] says otherwise.
    /// - [`SizeTooSmall`](Error::SizeTooSmall), [`SizeTooLarge`](Error::SizeTooLarge),
    ///   [`EntryMaxOutOfRange`](Error::EntryMaxOutOfRange), [`NoSpace`](Error::NoSpace),
    ///   [`ReadOnly`](Error::ReadOnly): nothing was created.
    /// - [`TooManyProcesses`](Error::TooManyProcesses), [`Io`](Error::Io).
    /// - [`Busy`](Error::Busy): another process was stopped for ten seconds while it attached.
    /// - With a tier, any of these for the tier's file, and [`NoTier`](Error::NoTier). The volume may have been
    ///   created then.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Cache> {
        let volume = attach::open(self, path.as_ref())?;
        let tiers = tier::open(self, &volume)?;
        if self.fleet && !self.read_only {
            purge::make_outbox(&volume)?;
        }
        Ok(Cache::from_volume(volume, tiers))
    }

    /// Creates a volume in shared memory without a name. This process shares it with the children that it forks.
    /// Never read-only.
    pub fn anonymous(&self) -> Result<Cache> {
        tier::refuse(self, "an anonymous volume")?;
        attach::anonymous(&self.clone().read_only(false)).map(|volume| Cache::from_volume(volume, None))
    }

    /// Creates a volume on this process's heap, which only its threads share: for tests and models. Never read-only.
    pub fn heap(&self) -> Result<Cache> {
        tier::refuse(self, "a heap volume")?;
        attach::heap(&self.clone().read_only(false)).map(|volume| Cache::from_volume(volume, None))
    }

    /// These options with the shape of `volume` where they set none, to make a volume that replaces it.
    pub(crate) fn in_place_of(&self, volume: &Volume) -> Self {
        let old = &volume.layout;
        let size = self.size.unwrap_or(old.size);
        // If the limit was derived from the old size, derive it from the new one.
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

    /// Accepts an existing volume of any shape.
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

    /// The options for the tier of a volume whose file has this owner.
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

    /// Asks for the size only, and no other part of the shape.
    pub(crate) fn any_shape(&self) -> Self {
        Self { entry_size_hint: None, entry_bytes_max: None, ..self.clone() }
    }

    pub(crate) fn access(&self) -> Access {
        Access { mode: self.mode, group: self.group }
    }

    /// Checks that an existing volume has the shape that was asked for.
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
            // A caller that didn't ask for erasing can use a volume that erases.
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
