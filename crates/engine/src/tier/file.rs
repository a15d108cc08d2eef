//! The file of a tier. Its name follows from the volume's identity. The first process creates it, and the last one to
//! leave removes it.
//!
//! Both happen under the file's attach lock. A process that has waited for the lock checks whether the file still has
//! its name ([`super::check_joining`]), since the last process may have removed it meanwhile. A deserted tier was
//! left by processes that were killed: the file is used again, but nothing of its content.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyewall_region::file::{self, Access, Identity};

use crate::attach;
use crate::error::{Error, Result};
use crate::format::hash::Secret;
use crate::format::superblock::Superblock;
use crate::options::Options;
use crate::process::Door;
use crate::stats::{self, FoundTier};
use crate::stripe::Stripe;
use crate::volume::Volume;

/// How often the file may vanish, or turn out to be useless, while a process opens it.
const TRIES: usize = 100;
const PERMISSIONS: u32 = 0o777;
const OF_GROUP: u32 = 0o070;

/// Opens the tier of `volume`, or creates it.
pub(super) fn open(options: &Options, bytes: u64, volume: &Arc<Volume>) -> Result<Arc<Volume>> {
    let refused = |why| Error::NoTier { path: volume.name().to_owned(), why };
    if volume.read_only {
        return Err(refused("it was opened read-only"));
    }
    if volume.erases {
        return Err(refused("it erases dead entries, and copies would outlive them"));
    }
    let door = volume.membership.door().filter(|_| volume.membership.path().is_some());
    let Some(door) = door else { return Err(refused("it has no file")) };
    let owner = door.metadata().map_err(|error| Error::io("reading", volume.name(), error))?;
    let tier = Wanted {
        path: options.tier_folder_or_default().join(name(door.identity())),
        options: options.for_tier(bytes, volume, &owner),
        owner,
        volume,
    };
    for _ in 0..TRIES {
        if let Some(opened) = tier.open_once()? {
            return Ok(opened);
        }
    }
    Err(Error::io("opening", &tier.path, ErrorKind::TimedOut.into()))
}

/// Unique among all files that ever existed: an inode number may be used again, but not with the same time of birth.
fn name(identity: Identity) -> String {
    format!("eyewall-{:x}-{:x}-{:x}", identity.device, identity.inode, identity.born_ns)
}

/// The tier that is to be opened.
struct Wanted<'a> {
    path: PathBuf,
    options: Options,
    /// Metadata of the volume's file.
    owner: Metadata,
    volume: &'a Arc<Volume>,
}

impl Wanted<'_> {
    /// `None`: the file was created or removed, so look again.
    fn open_once(&self) -> Result<Option<Arc<Volume>>> {
        let reading = |error| Error::io("reading", &self.path, error);
        if self.path.is_symlink() {
            return Err(Error::NoTier { path: self.path.clone(), why: "it is a symbolic link" });
        }
        let file = match file::open(&self.path, true) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.create()?;
                return Ok(None);
            }
            Err(error) => return Err(attach::open_error(&self.path, error)),
        };
        let again = file.try_clone().map_err(reading)?;
        if !is_trusted(&file.metadata().map_err(reading)?, &self.owner) {
            return self.replace(again, true, "another user's file has its name");
        }
        match attach::attach(&self.options.any_shape(), file, Some(&self.path), Some(self.volume)) {
            Ok(tier) if tier.secret.hash_seed != self.volume.secret.hash_seed => {
                drop(tier);
                self.replace(again, false, "")
            }
            Ok(tier) => Ok(Some(tier)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(Error::OptionsDiffer { asked, found, .. }) => match self.replace(again, true, "") {
                Err(Error::NoTier { .. }) => {
                    Err(Error::OptionsDiffer { path: self.path.clone(), option: "tier", asked, found })
                }
                other => other,
            },
            // The processes that use the old file continue with it.
            Err(
                Error::Foreign { .. }
                | Error::Corrupt { .. }
                | Error::Version { .. }
                | Error::ByteOrder { .. }
                | Error::Failed { .. },
            ) => self.replace(again, false, ""),
            Err(error) => Err(error),
        }
    }

    /// Removes a file that can't be used. With `if_deserted`, only if nobody is attached to it.
    fn replace(&self, file: File, if_deserted: bool, why: &'static str) -> Result<Option<Arc<Volume>>> {
        let removed = Door::new(file, Some(self.path.clone())).and_then(|door| {
            let _turn = door.lock_attach()?;
            let goes = !if_deserted || door.is_deserted()?;
            if goes && door.has_its_name() {
                std::fs::remove_file(&self.path)?;
            }
            Ok(goes)
        });
        match removed {
            Ok(true) => Ok(None),
            Ok(false) => Err(Error::NoTier { path: self.path.clone(), why }),
            Err(error) => Err(Error::io("replacing", &self.path, error)),
        }
    }

    fn create(&self) -> Result<()> {
        let drawn = attach::new_superblock(&self.options)?;
        // Both volumes use the same hash seed, so one hash of a key serves for both.
        let secret = Secret { hash_seed: self.volume.secret.hash_seed, ..drawn.secret };
        // The layout has a fixed index: pages are given back stripe by stripe, and the index must keep all of its
        // own.
        let superblock = Superblock { secret, layout: drawn.layout.with_fixed_index(), ..drawn };
        let layout = &superblock.layout;
        let fill = |file: &File| {
            if file.metadata()?.uid() != self.owner.uid() {
                // Only root can do this. Other processes that may open the volume's file find the tier by its group.
                let _ = fchown(file, Some(self.owner.uid()), None);
            }
            attach::write_new(file, &superblock)
        };
        let access = self.options.access();
        file::create_with_hole(&self.path, layout.size, layout.data_at, access, fill)
            .map_err(|error| attach::create_error(&self.path, layout.size, error))?;
        Ok(())
    }
}

/// Whether only somebody who may also write the volume can have created this file, and nobody else may open it.
/// `owner` is the metadata of the volume's file.
fn is_trusted(found: &Metadata, owner: &Metadata) -> bool {
    let (mode, wanted) = (found.mode() & PERMISSIONS, owner.mode() & PERMISSIONS);
    let same_group = found.gid() == owner.gid();
    let known = [0, owner.uid()].contains(&found.uid());
    let writer = known || wanted & 0o002 != 0 || (wanted & 0o020 != 0 && same_group);
    found.is_file() && mode == wanted && (same_group || wanted & OF_GROUP == 0) && writer
}

/// Looks at the tier of `volume` in `folder` without joining it.
pub(super) fn look(folder: &Path, volume: &Volume) -> Result<Option<FoundTier>> {
    let Some(path_of_volume) = volume.membership.path() else { return Ok(None) };
    let Some(door) = volume.membership.door() else { return Ok(None) };
    let path = folder.join(name(door.identity()));
    let reading = |error| Error::io("reading", &path, error);
    if path.is_symlink() {
        return Ok(None);
    }
    let file = match file::open(&path, false) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(reading(error)),
    };
    let owner = std::fs::metadata(path_of_volume).map_err(|error| Error::io("reading", path_of_volume, error))?;
    if !is_trusted(&file.metadata().map_err(reading)?, &owner) {
        return Ok(None);
    }
    let tier = attach::attach(&Options::new().read_only(true), file, Some(&path), None)?;
    if tier.secret.hash_seed != volume.secret.hash_seed {
        return Ok(None);
    }
    let stats = stats::collect_tier(&tier)?;
    Ok(Some(FoundTier { path, stats }))
}

/// Mode and group of a volume's file, which its tier's file gets, too.
pub(crate) fn access_of(owner: &Metadata) -> Access {
    let mode = owner.mode() & PERMISSIONS;
    Access { mode, group: (mode & OF_GROUP != 0).then_some(owner.gid()) }
}

/// Called under the attach lock, after this process has left. The last process removes the file.
pub(super) fn after_leaving(tier: &Volume, door: &Door) {
    if !matches!(door.is_deserted(), Ok(true)) || !door.has_its_name() {
        return;
    }
    if remove(tier.name()).is_err() {
        // The file belongs to another user, in a folder where only that user may remove it. Giving its pages back at
        // least frees the memory.
        for number in 0..tier.layout.stripes as usize {
            // No other process is attached, so the lock isn't needed.
            let _ = Stripe::unlocked(tier, number).give_all_back();
        }
    }
}

/// Removes the file of a tier whose volume was resized, since nobody opens it by this name any more. Processes that
/// still use it do so until they find the volume's successor.
pub(super) fn retire(tier: &Volume) {
    let Some(door) = tier.membership.door() else { return };
    if let Ok(_turn) = door.lock_attach()
        && door.has_its_name()
    {
        let _ = remove(tier.name());
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
