//! Opening, creating, joining and leaving a volume.
//!
//! A process holds the attach lock while it joins or leaves. So "nobody is attached" stays true as long as somebody
//! acts on it.

use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use eyewall_region::file::{self, Created};
use eyewall_region::{Region, clock};

use crate::aside;
use crate::error::{Error, Result};
use crate::format::hash::Secret;
use crate::format::layout::{Layout, STRIPE_BYTES, STRIPES_MAX, SUPERBLOCK_BYTES};
use crate::format::superblock::{self, Attachment, Rejected, Superblock};
use crate::mapped::Mapped;
use crate::options::{Options, Unclean};
use crate::process::{Door, Membership};
use crate::purge;
use crate::resize;
use crate::seam;
use crate::stripe::{self, State};
use crate::tier;
use crate::volume::{self, StripeIndex, Volume};

/// No volume has lived this long; a larger time is from a damaged word.
const TIME_END: u64 = 1 << 47;

/// Even if a disk image begins with zeros, it has other bytes within this many.
const BLANK_BYTES: u64 = 1 << 20;

/// Opens the volume at `path`, or creates it if the options allow that.
pub(crate) fn open(options: &Options, path: &Path) -> Result<Arc<Volume>> {
    let puts_aside = options.put_aside_broken && options.create && !options.read_only;
    // A symbolic link stays. The file that it leads to is put aside and created again.
    let target = aside::target(path).filter(|_| puts_aside);
    let path = target.as_deref().unwrap_or(path);
    loop {
        match file::open(path, !options.read_only) {
            Ok(file) => {
                if was_replaced(&file, path)? {
                    continue;
                }
                if !puts_aside {
                    return attach(options, file, Some(path), None);
                }
                let identity = file::identity(&file).map_err(|error| Error::io("reading", path, error))?;
                match attach(options, file, Some(path), None) {
                    Err(Error::Corrupt { .. }) => aside::put_aside(path, identity)?,
                    other => return other,
                }
                seam::kill_point();
                continue;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if !options.create || options.read_only {
                    return Err(Error::NotFound { path: path.to_owned() });
                }
            }
            Err(error) => return Err(open_error(path, error)),
        }
        let superblock = new_superblock(options)?;
        let fill = |file: &std::fs::File| write_new(file, &superblock);
        match file::create(path, superblock.layout.size, options.access(), fill) {
            Ok(Created::New(file)) => return attach(options, file, Some(path), None),
            // Another process was faster. But a dangling link would be found again and again.
            Ok(Created::Exists) if path.is_symlink() && !path.exists() => {
                let error = io::Error::new(ErrorKind::NotFound, "it is a symbolic link to a missing file");
                return Err(Error::io("creating", path, error));
            }
            Ok(Created::Exists) => {}
            Err(error) => return Err(create_error(path, superblock.layout.size, error)),
        }
    }
}

/// Whether the file at `path` belongs to a volume that another one has replaced. Afterwards, the path leads to that
/// one.
fn was_replaced(file: &std::fs::File, path: &Path) -> Result<bool> {
    let mut page = [0; SUPERBLOCK_BYTES as usize];
    // A file that isn't a volume is refused later.
    if file.read_exact_at(&mut page, 0).is_err() || Superblock::decode(&page).is_err() {
        return Ok(false);
    }
    let id = superblock::moved_id(&page);
    if id == 0 {
        return Ok(false);
    }
    let same = |file: &std::fs::File| file::identity(file).map_err(|error| Error::io("reading", path, error));
    resize::complete_rename(&own_path(path), id)?;
    let shown = std::fs::File::open(path).map_err(|error| open_error(path, error))?;
    if same(&shown)? == same(file)? {
        return Err(Error::Moved { path: path.to_owned() });
    }
    Ok(true)
}

/// Why a file of `bytes` bytes isn't accepted as a volume, judged by its first page and by what lies behind.
fn refusal(why: Rejected, file: &std::fs::File, bytes: u64, name: &Path) -> Error {
    match why {
        Rejected::Foreign if has_our_stripes(file, bytes, true) => {
            Error::Corrupt { path: name.to_owned(), what: "its first page was overwritten" }
        }
        Rejected::Zeros if !has_our_stripes(file, bytes, false) && !is_blank(file) => {
            Error::rejected(Rejected::Foreign, name)
        }
        why => Error::rejected(why, name),
    }
}

/// Whether a file without a valid first page has stripes where a volume of its size would have them.
fn has_our_stripes(file: &std::fs::File, bytes: u64, are_used: bool) -> bool {
    // The most that there can be.
    let mut stripes = [0; (STRIPES_MAX * STRIPE_BYTES) as usize];
    file.read_exact_at(&mut stripes, Layout::first_stripe_at(bytes)).is_ok() && stripe::are_stripes(&stripes, are_used)
}

/// Whether the first [`BLANK_BYTES`] of a file, or all of it if it is shorter, are zeros.
fn is_blank(file: &std::fs::File) -> bool {
    let mut bytes = Vec::new();
    let read = Read::take(file, BLANK_BYTES).read_to_end(&mut bytes);
    read.is_ok() && bytes.iter().all(|byte| *byte == 0)
}

/// The path of the file itself. It finds the file after a change of directory, and is replaced when the volume is
/// resized. If links lead to the file, all who open it get the same path, and the links stay.
fn own_path(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

/// Creates a volume in shared memory without a name.
pub(crate) fn anonymous(options: &Options) -> Result<Arc<Volume>> {
    let path = Path::new("an anonymous volume");
    let superblock = new_superblock(options)?;
    let size = superblock.layout.size;
    let file = file::shared_memory(size).map_err(|error| create_error(path, size, error))?;
    write_new(&file, &superblock).map_err(|error| create_error(path, size, error))?;
    attach(options, file, None, None)
}

/// Creates a volume on this process's heap.
pub(crate) fn heap(options: &Options) -> Result<Arc<Volume>> {
    let superblock = new_superblock(options)?;
    let region = Region::heap(superblock.layout.size as usize);
    let header = superblock.words().into_iter().enumerate().map(|(number, word)| (8 * number, word));
    for (at, word) in stripe::new_words(&superblock.layout).chain(header) {
        region.word(at).store(word, Relaxed);
    }
    enter(options, region, &superblock, Membership::new(None), None)
}

/// Writes the bytes of a new volume that aren't zero.
pub(crate) fn write_new(file: &std::fs::File, superblock: &Superblock) -> io::Result<()> {
    for (at, word) in stripe::new_words(&superblock.layout) {
        file.write_all_at(&word.to_le_bytes(), at as u64)?;
    }
    file.write_all_at(&superblock.encode(), 0)
}

pub(crate) fn new_superblock(options: &Options) -> Result<Superblock> {
    let size = options.size_or_default();
    let layout = Layout::new(size, options.entry_size_hint_or_default(), options.entry_bytes_max)
        .map_err(|why| Error::unfit(why, size, options.entry_bytes_max.unwrap_or(0)))?;
    let mut random = [0_u8; 24];
    getrandom::fill(&mut random)
        .map_err(|error| Error::io("generating a secret for", Path::new("a new volume"), io::Error::other(error)))?;
    let mut words = random.chunks_exact(8).map(|chunk| {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let mut next = || words.next().unwrap_or_default();
    let secret = Secret { hash_seed: next(), mac_key: [next(), next()] };
    Ok(Superblock { layout, secret, created_ms: clock::wall_ms(), erases: options.secure_erase })
}

/// Maps a volume's file and becomes one of its processes. `front_of`: as the tier of that volume.
pub(crate) fn attach(
    options: &Options,
    file: std::fs::File,
    path: Option<&Path>,
    front_of: Option<&Arc<Volume>>,
) -> Result<Arc<Volume>> {
    let name = path.unwrap_or_else(|| Path::new("an anonymous volume"));
    let reading = |error| Error::io("reading", name, error);
    let metadata = file.metadata().map_err(reading)?;
    if !metadata.is_file() {
        return Err(Error::Foreign { path: name.to_owned() });
    }
    let mut page = vec![0; SUPERBLOCK_BYTES.min(metadata.len()) as usize];
    file.read_exact_at(&mut page, 0).map_err(reading)?;
    let superblock = Superblock::decode(&page).map_err(|why| refusal(why, &file, metadata.len(), name))?;
    if metadata.len() < superblock.layout.size {
        return Err(Error::Corrupt { path: name.to_owned(), what: "it is shorter than its superblock says" });
    }
    options.check_against(&superblock, name)?;
    let mapping = |error| Error::io("mapping", name, error);
    let mut region = Region::map(&file, superblock.layout.size as usize, !options.read_only).map_err(mapping)?;
    if options.survive_sigbus {
        region.survive_sigbus().map_err(mapping)?;
    }
    let door = Door::new(file, path.map(own_path)).map_err(reading)?;
    enter(options, region, &superblock, Membership::new(Some(door)), front_of)
}

fn enter(
    options: &Options,
    region: Region,
    superblock: &Superblock,
    membership: Membership,
    front_of: Option<&Arc<Volume>>,
) -> Result<Arc<Volume>> {
    volume::watch_forks();
    let id = volume::next_id();
    let volume = Arc::new_cyclic(|this| Volume {
        this: this.clone(),
        mapped: Mapped::none_of(&region),
        region,
        layout: superblock.layout,
        indexes: StripeIndex::all_of(&superblock.layout),
        secret: superblock.secret,
        header: superblock.words(),
        looked_ms: AtomicU64::new(0),
        id,
        lineage: options.lineage.unwrap_or(id),
        read_only: options.read_only,
        options: options.clone(),
        successor: OnceLock::new(),
        erases: superblock.erases,
        lock_deadline: options.lock_deadline,
        named: stripe::Named::default(),
        membership,
        generation: AtomicU16::default(),
        trusted: AtomicU32::default(),
        time_base: AtomicU64::new(0),
        marked_unclean: AtomicBool::new(false),
        copied_bytes: AtomicU64::new(0),
        shared_pins: std::sync::Mutex::default(),
        recently_resident: std::sync::OnceLock::new(),
        front_of: front_of.map(Arc::clone),
    });
    // For read-only openers; the others join below.
    volume.set_generation(Attachment(&volume.region).generation());
    if volume.region.is_stored() {
        // Tables and index: each look-up needs some of their pages.
        volume.region.will_reuse(0, volume.layout.data_at as usize);
        for stripe in 0..volume.layout.stripes as usize {
            let bytes = volume.layout.bytes_taken(volume.buckets(stripe).count());
            let end = volume.layout.stripe_data_at(stripe + 1);
            volume.region.will_reuse((end - bytes) as usize, bytes as usize);
        }
    }
    let joined = if options.read_only {
        let boot = file::boot_id().map_err(|error| Error::io("reading", Path::new("the boot ID"), error))?;
        volume.time_base.store(time_base(&volume, Some(boot)), Relaxed);
        Ok(())
    } else {
        join(&volume)
    };
    volume.check_intact()?;
    joined?;
    volume::list(&volume);
    Ok(volume)
}

/// Becomes one of the volume's processes. The first one puts the volume in order.
pub(crate) fn join(volume: &Volume) -> Result<()> {
    let path = volume.membership.path().unwrap_or_else(|| Path::new("a volume"));
    let failed = |error| Error::io("attaching to", path, error);
    let start = Instant::now();
    let turn = volume.membership.door().map(Door::lock_attach).transpose().map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => Error::Busy { what: "another process that attaches", waited: start.elapsed() },
        _ => failed(error),
    })?;
    tier::check_joining(volume)?;
    let first = match volume.membership.door() {
        Some(door) => !door.anybody(&volume.layout).map_err(failed)?,
        None => true,
    };
    if first {
        put_in_order(volume).map_err(failed)?;
    }
    volume.set_generation(Attachment(&volume.region).generation());
    volume.time_base.store(tier::time_base(volume).unwrap_or(Attachment(&volume.region).time_base()), Relaxed);
    // In a forked child: an orderly end may have undone since what the parent had seen.
    volume.marked_unclean.store(false, Relaxed);
    let claimed = volume.membership.claim(&volume.region, &volume.layout).map_err(failed)?;
    drop(turn);
    if !claimed {
        return Err(Error::TooManyProcesses { max: volume.layout.processes });
    }
    Ok(())
}

/// For the first process of an attachment: voids all locks, pins, claims and thread slots, repairs what power loss
/// may have done to the volume, and starts a new generation.
fn put_in_order(volume: &Volume) -> io::Result<()> {
    let attachment = Attachment(&volume.region);
    let here = match volume.membership.door() {
        Some(door) => Some((file::boot_id()?, door.identity())),
        None => None,
    };
    let (boot, identity) = attachment.home();
    let fresh = attachment.is_new();
    let crashed = !fresh
        && here.is_some_and(|(boot_now, identity_now)| {
            identity != identity_now || boot != boot_now && !attachment.is_clean()
        });
    // If attachments can't be told apart, nothing tells what was verified in this one. If the notes of purges are
    // impossible, nothing tells what was purged. A tier is worth nothing to the first process, since nobody knows
    // what has happened to its volume since.
    let sound = volume.front_of.is_none()
        && (fresh || attachment.is_numbered(&volume.secret) && purge::is_sound(volume, crashed));
    let state = match (sound, crashed, volume.options.unclean) {
        (true, false, _) => State::Trusted,
        (true, true, Unclean::Keep) => State::Crashed,
        _ => State::Void,
    };
    let stripes = 0..volume.layout.stripes as usize;
    // Nothing has to change, and storage has all of it.
    let untouched = state == State::Trusted
        && attachment.is_clean()
        && stripes.clone().all(|number| stripe::is_in_order(volume, number));
    if !untouched && attachment.is_clean() {
        attachment.set_clean(false);
        attachment.sync()?;
    }
    for thread in 0..volume.layout.threads as u32 {
        let at = volume.layout.thread_at(thread);
        volume.region.half(at).store(0, Relaxed);
        for pin in volume.region.line(at + 64) {
            pin.store(0, Relaxed);
        }
    }
    for number in stripes {
        stripe::put_in_order(volume, number, state);
    }
    if crashed {
        attachment.set_crashes(attachment.crashes() + 1);
    }
    if state == State::Void {
        attachment.count_unclean_drop();
    }
    // A word that isn't a valid id was damaged, and names no other volume.
    if volume.purges().moved() == 0 {
        volume.purges().set_moved(0);
    }
    purge::put_in_order(volume, sound, crashed)?;
    attachment.set_time_base(time_base(volume, here.map(|(boot, _)| boot)));
    volume.time_base.store(attachment.time_base(), Relaxed);
    volume.see_time();
    seam::kill_point();
    if let Some((boot, identity)) = here {
        attachment.set_home(boot, identity);
    }
    let number = next_attachment(volume, attachment.attachments())?;
    seam::kill_point();
    attachment.start_generation(&volume.secret, number);
    // Synced before a record carries the tag. Otherwise, after power loss, another attachment could get the same
    // number. If storage has all of the volume, the tag protects nothing that could be lost until something is
    // written, and `Volume::mark_unclean` syncs before that.
    if untouched { Ok(()) } else { attachment.sync() }
}

/// The volume's time at the start of the machine. During a boot, the volume keeps it. A new boot starts with the wall
/// clock's time, but never before the time that the volume had reached.
fn time_base(volume: &Volume, boot: Option<u128>) -> u64 {
    let attachment = Attachment(&volume.region);
    let of_this_boot = boot.is_some_and(|boot| attachment.home().0 == boot);
    match attachment.time_base() {
        base @ 1..TIME_END if of_this_boot => base,
        _ => {
            let seen = attachment.time_seen();
            let seen = if seen < TIME_END { seen } else { 0 };
            clock::wall_ms().max(seen).saturating_sub(clock::since_boot_ms()).max(1)
        }
    }
}

/// The number of the next attachment, whose tag isn't zero. Before tags repeat, all that was verified under them is
/// marked as unverified, in storage, too.
fn next_attachment(volume: &Volume, last: u64) -> io::Result<u64> {
    let mut number = last;
    loop {
        number = number.wrapping_add(1) & (u64::MAX >> 16);
        if number.trailing_zeros() >= 16 {
            stripe::forget_verified(volume);
            volume.region.sync(0, volume.region.len())?;
        }
        if superblock::tag(&volume.secret, number) != 0 {
            return Ok(number);
        }
    }
}

/// Leaves the volume. The last process syncs it and marks it clean.
pub(crate) fn leave(volume: &Volume) {
    let Some(door) = volume.membership.door() else { return };
    // Nobody opens a volume any more that another one has replaced.
    let replaced = volume.purges().moved() != 0;
    // If leaving in order fails, no data is lost; the volume only stays marked as written to.
    let turn = door.lock_attach();
    volume.membership.leave(&volume.region, &volume.layout);
    if !volume.read_only {
        volume.see_time();
    }
    if volume.front_of.is_some() {
        if turn.is_ok() {
            tier::after_leaving(volume, door);
        }
        return;
    }
    let attachment = Attachment(&volume.region);
    if turn.is_ok()
        && !replaced
        && matches!(door.anybody(&volume.layout), Ok(false))
        && !attachment.is_clean()
        && !volume.has_failed()
    {
        let synced = volume.region.sync(0, volume.region.len());
        // Nothing is promised either for a volume that fails meanwhile.
        if synced.is_ok() && !volume.has_failed() {
            stripe::all_are_sure(volume);
            attachment.set_clean(true);
            let _ = attachment.sync();
        }
    }
}

pub(crate) fn open_error(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::IsADirectory => Error::Foreign { path: path.to_owned() },
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Error::ReadOnly {
            path: path.to_owned(),
            advice: "open it with read_only(true), or as a user who may write it",
        },
        _ => Error::io("opening", path, error),
    }
}

pub(crate) fn create_error(path: &Path, bytes: u64, error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            Error::NoSpace { path: path.to_owned(), bytes }
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Error::ReadOnly {
            path: path.parent().unwrap_or(path).to_owned(),
            advice: "a volume can't be created there; choose another directory",
        },
        _ => Error::io("creating", path, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::slot::Slot;

    #[test]
    fn before_tags_repeat_nothing_counts_as_verified() {
        let cache = Options::new().heap().unwrap();
        cache.put("key", "value").unwrap();
        let volume = cache.volume();
        let place = volume.place(b"key");
        let generation = || {
            let buckets = volume.buckets(place.stripe);
            let slots = volume.bucket(&place, 0, buckets).iter().chain(volume.bucket(&place, 1, buckets));
            let live = slots.map(|slot| Slot(slot.load(Relaxed))).find(|slot| slot.is_live()).unwrap();
            stripe::entry_at(volume, place.stripe, live.position()).unwrap().0.generation()
        };
        assert_eq!(generation(), volume.generation());
        assert!(next_attachment(volume, 0xfff0).unwrap() >= 0xfff1);
        assert_eq!(generation(), volume.generation());
        assert!(next_attachment(volume, 0xffff).unwrap() >= 0x1_0000);
        assert_eq!(generation(), 0);
        assert_eq!(&*cache.get("key").unwrap().unwrap(), b"value");
        assert_eq!(generation(), volume.generation(), "verified as it was read");
    }
}
