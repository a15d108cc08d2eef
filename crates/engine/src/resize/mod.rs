//! Resizing: a volume of another shape replaces this one, and every process moves over by itself.
//!
//! ```text
//! all stripes locked -> new file beside -> entries copied -> synced, clean -> MOVED -> renamed -> slots cleared -> unlocked
//! ```
//!
//! A death before MOVED leaves the old volume unchanged, and a new file beside it that the next resize removes. From
//! MOVED on, the new file is the volume: any process that finds the word completes the rename ([`follow`]). Readers
//! continue in the old volume until its slots are cleared, and what they hold stays. Its blocks are given back once
//! nobody holds any.

mod copy;
mod follow;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use eyewall_region::file::{self, Created};

pub(crate) use follow::complete_rename;

use crate::attach;
use crate::claim;
use crate::error::{Error, Result};
use crate::format::superblock::Superblock;
use crate::options::Options;
use crate::purge::PurgeLock;
use crate::seam;
use crate::stripe::Stripe;
use crate::volume::Volume;

/// What became of the entries of a resized volume.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Resized {
    /// Entries that were copied. The new volume may have evicted some of them since, the coldest first.
    pub copied: u64,
    /// Entries that are too large for the new volume.
    pub too_large: u64,
    /// Entries that were left behind because they had expired, were purged, or were damaged.
    pub dead: u64,
}

/// Gives the volume the shape that `wanted` asks for.
pub(crate) fn resize(volume: &Volume, wanted: &Options) -> Result<Resized> {
    volume.check_writable()?;
    volume.mark_unclean()?;
    let Some(path) = volume.membership.path() else { return Err(Error::Nameless) };
    // Locked before the stripes, in the same order as when epochs begin again. No purge can run meanwhile, since the
    // notes aren't copied.
    let _no_purges = PurgeLock::acquire(volume)?;
    let stripes: Vec<Stripe<'_>> =
        (0..volume.layout.stripes as usize).map(|number| Stripe::lock(volume, number)).collect::<Result<_>>()?;
    // Checked under the locks: another resize is over, or waits for this one.
    if !follow::is_shown(volume, path)? {
        return Err(Error::Moved { path: path.to_owned() });
    }
    remove_leftovers(path);
    let superblock = attach::new_superblock(&wanted.in_place_of(volume))?;
    let id = superblock.id();
    let draft = moved_path(path, id);
    let outcome = fill(volume, &stripes, &draft, &superblock, wanted);
    if outcome.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    let resized = outcome?;
    seam::kill_point();
    volume.purges().set_moved(id);
    seam::kill_point();
    complete_rename(path, id)?;
    for stripe in &stripes {
        seam::kill_point();
        stripe.unlink_all(|_| true);
        // Nobody can pin what is still being written here; none of it will be stored.
        claim::forget_rooms(stripe, |_| true);
    }
    volume.purges().set_emptied();
    drop(stripes);
    follow::give_back(volume);
    Ok(resized)
}

/// Creates the new file, fills it, and leaves it synced and in order.
fn fill(
    volume: &Volume,
    stripes: &[Stripe<'_>],
    path: &Path,
    superblock: &Superblock,
    wanted: &Options,
) -> Result<Resized> {
    let Some(door) = volume.membership.door() else { return Err(Error::Nameless) };
    let access = door.access().map_err(|error| Error::io("reading", path, error))?;
    let size = superblock.layout.size;
    let file = match file::create(path, size, access, |file| attach::write_new(file, superblock)) {
        Ok(Created::New(file)) => file,
        Ok(Created::Exists) => return Err(Error::io("creating", path, ErrorKind::AlreadyExists.into())),
        Err(error) => return Err(attach::create_error(path, size, error)),
    };
    let options = wanted.in_place_of(volume);
    let new = attach::attach(&options, file, Some(path), None)?;
    let resized = copy::copy_all(volume, stripes, &new)?;
    new.sync_all()?;
    Ok(resized)
}

/// Path of the new volume, before it is renamed to `path`.
fn moved_path(path: &Path, id: u64) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!("{MOVED_INFIX}{id:016x}"));
    path.with_file_name(name)
}

const MOVED_INFIX: &str = ".moved-";

/// Removes the files that resizes have left beside the volume when they died.
fn remove_leftovers(path: &Path) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let prefix = [name.as_encoded_bytes(), MOVED_INFIX.as_bytes()].concat();
    for entry in entries.flatten() {
        let found = entry.file_name();
        let id = found.as_encoded_bytes().strip_prefix(&prefix[..]);
        if id.is_some_and(|id| id.len() == 16 && id.iter().all(u8::is_ascii_hexdigit)) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
