//! Opening, creating, joining and leaving a volume.
//!
//! The attach lock is held while a process joins or leaves, so that "nobody is attached" stays true for as
//! long as somebody acts on it.

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

/// No volume has lived so long: a damaged word says so.
const TIME_END: u64 = 1 << 47;

/// Disk images have something in so many bytes, however many zeros they begin with.
const BLANK_BYTES: u64 = 1 << 20;

/// Opens the volume at `path`, or creates it where the options allow.
pub(crate) fn open(options: &Options, path: &Path) -> Result<Arc<Volume>> {
    let puts_aside = options.put_aside_broken && options.create && !options.read_only;
    // A symbolic link stays: the file that it leads to is put aside, and made anew.
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
            // Somebody else was faster; but a link that leads nowhere would be found again and again.
            Ok(Created::Exists) if path.is_symlink() && !path.exists() => {
                let error = io::Error::new(ErrorKind::NotFound, "it is a symbolic link that leads nowhere");
                return Err(Error::io("creating", path, error));
            }
            Ok(Created::Exists) => {}
            Err(error) => return Err(create_error(path, superblock.layout.size, error)),
        }
    }
}

/// Whether the file at `path` is that of a volume in whose place another stands; the path shows that one afterwards.
fn was_replaced(file: &std::fs::File, path: &Path) -> Result<bool> {
    let mut page = [0; SUPERBLOCK_BYTES as usize];
    // What is no volume is told so later.
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

/// Why a file of so many bytes isn't taken for a volume, by what its first page is and what stands behind it.
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

/// Whether a file whose first page is that of no volume has stripes where a volume of its size has them.
fn has_our_stripes(file: &std::fs::File, bytes: u64, are_used: bool) -> bool {
    // As many as there can be.
    let mut stripes = [0; (STRIPES_MAX * STRIPE_BYTES) as usize];
    file.read_exact_at(&mut stripes, Layout::first_stripe_at(bytes)).is_ok() && stripe::are_stripes(&stripes, are_used)
}

/// Whether a file begins with [`BLANK_BYTES`] zeros, or ends with them before.
fn is_blank(file: &std::fs::File) -> bool {
    let mut bytes = Vec::new();
    let read = Read::take(file, BLANK_BYTES).read_to_end(&mut bytes);
    read.is_ok() && bytes.iter().all(|byte| *byte == 0)
}

/// The path of the file itself, by which it is found after a change of directory, and replaced when it is resized: where links
/// lead to it, it is the same for all who open it, and the links stay.
fn own_path(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

/// A volume in shared memory that has no name.
pub(crate) fn anonymous(options: &Options) -> Result<Arc<Volume>> {
    let path = Path::new("an anonymous volume");
    let superblock = new_superblock(options)?;
    let size = superblock.layout.size;
    let file = file::shared_memory(size).map_err(|error| create_error(path, size, error))?;
    write_new(&file, &superblock).map_err(|error| create_error(path, size, error))?;
    attach(options, file, None, None)
}

/// A volume in this process's heap.
pub(crate) fn heap(options: &Options) -> Result<Arc<Volume>> {
    let superblock = new_superblock(options)?;
    let region = Region::heap(superblock.layout.size as usize);
    let header = superblock.words().into_iter().enumerate().map(|(number, word)| (8 * number, word));
    for (at, word) in stripe::new_words(&superblock.layout).chain(header) {
        region.word(at).store(word, Relaxed);
    }
    enter(options, region, &superblock, Membership::new(None), None)
}

/// Writes what isn't zero in a new volume.
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
        .map_err(|error| Error::io("drawing a secret for", Path::new("a new volume"), io::Error::other(error)))?;
    let mut words = random.chunks_exact(8).map(|chunk| {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let mut next = || words.next().unwrap_or_default();
    let secret = Secret { hash_seed: next(), mac_key: [next(), next()] };
    Ok(Superblock { layout, secret, created_ms: clock::wall_ms(), erases: options.secure_erase })
}

/// Maps a volume's file and becomes one of its processes; `front_of`: as the tier of that volume.
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
    // Of one that is only read; who writes joins below.
    volume.set_generation(Attachment(&volume.region).generation());
    if volume.region.is_stored() {
        // Tables and index: each look-up needs some of it.
        volume.region.will_reuse(0, volume.layout.data_at as usize);
        for stripe in 0..volume.layout.stripes as usize {
            let bytes = volume.layout.bytes_taken(volume.buckets(stripe).count());
            let end = volume.layout.stripe_data_at(stripe + 1);
            volume.region.will_reuse((end - bytes) as usize, bytes as usize);
        }
    }
    let joined = if options.read_only {
        let boot = file::boot_id().map_err(|error| Error::io("reading", Path::new("the boot's number"), error))?;
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

/// Becomes one of the volume's processes; the first one puts it in order.
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
    // In a forked child: what the parent had seen may have been undone by an orderly end since.
    volume.marked_unclean.store(false, Relaxed);
    let claimed = volume.membership.claim(&volume.region, &volume.layout).map_err(failed)?;
    drop(turn);
    if !claimed {
        return Err(Error::TooManyProcesses { max: volume.layout.processes });
    }
    Ok(())
}

/// For the first process of an attachment: all locks, pins, claims and thread slots are void; what power loss can have done
/// to the volume is seen to; a new generation starts.
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
    // Where attachments can't be told apart, nothing tells what was verified in this one; where purges can't have been as
    // they are noted, nothing tells what was purged.
    // A tier is worth nothing to who comes first: whatever has happened to its volume since, nobody has compared.
    let sound = volume.front_of.is_none()
        && (fresh || attachment.is_numbered(&volume.secret) && purge::is_sound(volume, crashed));
    let state = match (sound, crashed, volume.options.unclean) {
        (true, false, _) => State::Trusted,
        (true, true, Unclean::Keep) => State::Crashed,
        _ => State::Void,
    };
    let stripes = 0..volume.layout.stripes as usize;
    // Nothing needs to be changed, and storage has all of it.
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
    if state == State::Void {
        attachment.count_unclean_drop();
    }
    // What is no id was damaged: it names no other volume.
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
    // Before a record carries its tag: else, after power loss, another attachment could be given the same number. In a
    // volume that storage has all of, the tag vouches for nothing that could be lost until something is written, and that
    // is preceded by a sync (`Volume::mark_unclean`).
    if untouched { Ok(()) } else { attachment.sync() }
}

/// The volume's time when the machine was started: as it stands in the volume for the whole of a boot. A new boot begins
/// with the wall clock's time, but never before the time that the volume had reached.
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

/// The number of the next attachment: one whose tag isn't zero. Before tags come round again, what was verified under
/// them is so no more, in storage either.
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

/// Leaves the volume. The last one syncs it and marks it clean.
pub(crate) fn leave(volume: &Volume) {
    let Some(door) = volume.membership.door() else { return };
    // One in whose place another stands is opened by nobody any more.
    let replaced = volume.purges().moved() != 0;
    // Failing to leave in order costs no data: it only leaves the volume marked as written to.
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
        // Of a volume that fails meanwhile nothing is promised either.
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
    fn before_tags_come_round_again_nothing_counts_as_verified() {
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
