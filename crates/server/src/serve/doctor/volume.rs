//! The file system, and the place for the volume.

use std::fs::File;
use std::path::{Path, PathBuf};

use eyewall::Options;
use eyewall_region::file::allocation_warning;

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
    findings.extend(cache.storage_warning().map(of_file_system));
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
    let warning = File::open(&folder).ok().as_ref().and_then(allocation_warning);
    findings.extend(warning.map(of_file_system));
    findings
}

fn of_file_system(why: &str) -> Finding {
    let words = format!("{why}: a full disk may kill the server by SIGBUS");
    Finding::warning("file system", words, "keep the volume on ext4, XFS or tmpfs")
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

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
        std::fs::write(&other, "no volume").unwrap();
        assert_eq!(of(&other, "1M").state, State::Fault);
    }
}
