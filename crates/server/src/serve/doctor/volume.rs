//! The file system, and the place for the volume.

use std::fs;
use std::path::{Path, PathBuf};

use eyewall::Options;

use super::Finding;
use crate::config::Volume;
use crate::config::settings::CACHE_SIZE_DEFAULT;
use crate::units::size;
use crate::warnings;

pub(super) fn examine(settings: &Volume) -> Vec<Finding> {
    let Some(path) = settings.path.as_ref().map(|path| path.get_ref().as_path()) else {
        let words = "it is in memory, and ends with the server";
        return vec![Finding::good("volume", words)];
    };
    if path.exists() { existing(path) } else { to_be_made(path, settings) }
}

fn existing(path: &Path) -> Vec<Finding> {
    let cache = match Options::new().create(false).read_only(true).open(path) {
        Ok(cache) => cache,
        Err(error) => {
            let advice = "the server renames a broken volume and makes a new one, unless it runs with --keep-broken";
            return vec![Finding::fault("volume", error.to_string(), advice)];
        }
    };
    let mut findings = vec![Finding::good("volume", format!("{} has {}", path.display(), size(cache.size())))];
    findings.extend(
        warnings::of_storage(&cache)
            .map(|words| Finding::warning("file system", words, "move the volume to ext4, XFS or tmpfs")),
    );
    let warnings = cache.stats().map(|stats| warnings::of_stats(&stats)).unwrap_or_default();
    findings.extend(warnings.into_iter().map(|words| Finding::warning("volume", words, "run `eyewall verify --deep`")));
    findings
}

fn to_be_made(path: &Path, settings: &Volume) -> Vec<Finding> {
    let wanted = settings.size.as_ref().map_or(CACHE_SIZE_DEFAULT, |size| size.0);
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let Ok(place) = rustix::fs::statvfs(&folder) else {
        let words = format!("{} doesn't exist", folder.display());
        return vec![Finding::fault("volume", words, "make the folder, owned by the user of the server")];
    };
    let free = place.f_bavail.saturating_mul(place.f_frsize);
    let mut findings = vec![if free < wanted {
        let words = format!("{} has {} free, and the volume will take {}", folder.display(), size(free), size(wanted));
        Finding::fault("volume", words, "free some space, or give a smaller `size`")
    } else {
        Finding::good("volume", format!("{} will be made; its file system has {} free", path.display(), size(free)))
    }];
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let folder = fs::canonicalize(&folder).unwrap_or(folder);
    findings.extend(file_system(&mounts, &folder).and_then(of_kind));
    findings
}

/// The kind of the file system of a folder, by the longest mount point above it.
fn file_system<'a>(mounts: &'a str, folder: &Path) -> Option<&'a str> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (point, kind) = (words.nth(1)?, words.next()?);
        folder.starts_with(point).then_some((point.len(), kind))
    });
    // The last of several at one place is the one that is seen.
    mounts.max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

fn of_kind(kind: &str) -> Option<Finding> {
    let is_guaranteed = ["ext4", "ext3", "ext2", "xfs", "tmpfs", "f2fs"].contains(&kind);
    (!is_guaranteed).then(|| {
        let words =
            format!("{kind} may not guarantee the space of the volume: a full disk may kill the server by SIGBUS");
        Finding::warning("file system", words, "keep the volume on ext4, XFS or tmpfs")
    })
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn a_folder_has_the_file_system_of_the_nearest_mount() {
        let mounts =
            "/dev/a / ext4 rw 0 0\noverlay /var overlay rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n/dev/b /var xfs rw 0 0\n";
        let kind = |folder: &str| file_system(mounts, Path::new(folder)).unwrap();
        assert_eq!(
            (kind("/"), kind("/dev/shm/x"), kind("/variable"), kind("/var/cache")),
            ("ext4", "tmpfs", "ext4", "xfs")
        );
        assert!(of_kind("xfs").is_none());
        assert_eq!(of_kind("btrfs").unwrap().state, State::Warning);
    }

    #[test]
    fn a_volume_that_is_to_be_made_needs_its_folder_and_room() {
        let folder = tempfile::tempdir().unwrap();
        let of = |path: &Path, bytes: &str| {
            let text = format!(
                "[cache]\npath = \"{}\"\nsize = \"{bytes}\"\n[[site]]\norigins = [\"http://a\"]\n",
                path.display()
            );
            examine(&crate::config::parse(&text).unwrap().cache)[0].clone()
        };
        assert_eq!(of(&folder.path().join("x.eye"), "1M").state, State::Good);
        assert_eq!(of(&folder.path().join("x.eye"), "2T").state, State::Fault);
        let other = folder.path().join("other.eye");
        fs::write(&other, "no volume").unwrap();
        assert_eq!(of(&other, "1M").state, State::Fault);
    }
}
