//! A control group, of version 1 or 2, that gives its processes too little memory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The mount points of the two versions.
const MOUNT_1: &str = "/sys/fs/cgroup/memory";
const MOUNT_2: &str = "/sys/fs/cgroup";

/// A group of this run, below the group of this process. Dropping it removes the group, whose processes must have ended
/// by then.
#[derive(Debug)]
pub(super) struct Group {
    path: PathBuf,
}

impl Group {
    /// Makes a group of that name with this memory limit. If that fails, the error is a reason for people to read.
    pub(super) fn create(name: &str, limit_bytes: u64) -> std::result::Result<Self, String> {
        let text =
            fs::read_to_string("/proc/self/cgroup").map_err(|failure| format!("/proc/self/cgroup: {failure}"))?;
        let own = Own::parse(&text);
        let (parent, limit) = match own.version_1 {
            Some(below) => (Path::new(MOUNT_1).join(below), "memory.limit_in_bytes"),
            None => (own.version_2.and_then(passing_on).ok_or(NO_GROUP)?, "memory.max"),
        };
        let path = parent.join(format!("eyewall-bench-{}-{name}", std::process::id()));
        let made = fs::create_dir(&path).and_then(|()| {
            let group = Self { path: path.clone() };
            fs::write(path.join(limit), limit_bytes.to_string())?;
            // Turns off swapping, another form of paging, which isn't measured here. Without swap there is no such
            // file.
            let _ = fs::write(path.join("memory.swap.max"), "0");
            Ok(group)
        });
        made.map_err(|failure: io::Error| {
            format!("no control group could be made at {} ({failure}); run it as root", path.display())
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(failure) = fs::remove_dir(&self.path) {
            eprintln!("bench: the control group {} is left: {failure}", self.path.display());
        }
    }
}

/// Moves this process into the group at `path`.
pub(super) fn join(path: &Path) -> Result<()> {
    let procs = path.join("cgroup.procs");
    fs::write(&procs, std::process::id().to_string()).map_err(Error::path("join the control group by", &procs))
}

const NO_GROUP: &str = "no control group above this process passes the memory controller on to groups below it; \
                        write +memory to the cgroup.subtree_control of one";

/// The nearest group of version 2, from `below` upwards, that enables the memory controller for the groups below it.
fn passing_on(below: &str) -> Option<PathBuf> {
    let own = Path::new(below);
    own.ancestors().map(|group| Path::new(MOUNT_2).join(group)).find(|group| {
        let passed_on = fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
        passed_on.split_ascii_whitespace().any(|controller| controller == "memory")
    })
}

/// The groups of a process, relative to the mounts.
#[derive(Debug, PartialEq, Eq)]
struct Own<'a> {
    /// The group of the memory controller, if that is of version 1.
    version_1: Option<&'a str>,
    version_2: Option<&'a str>,
}

impl<'a> Own<'a> {
    /// Parses `/proc/self/cgroup`: lines of `number:controllers:/path`.
    fn parse(text: &'a str) -> Self {
        let mut own = Self { version_1: None, version_2: None };
        for line in text.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            let below = path.trim_start_matches('/');
            if controllers.is_empty() {
                own.version_2 = Some(below);
            } else if controllers.split(',').any(|controller| controller == "memory") {
                own.version_1 = Some(below);
            }
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::Own;

    #[test]
    fn both_versions_are_told_apart() {
        let both = "8:pids:/\n4:memory,other:/a/b\n0::/c\n";
        assert_eq!(Own::parse(both), Own { version_1: Some("a/b"), version_2: Some("c") });
        let second = "0::/user.slice/with:colon\n";
        assert_eq!(Own::parse(second), Own { version_1: None, version_2: Some("user.slice/with:colon") });
        assert_eq!(Own::parse("nonsense\n"), Own { version_1: None, version_2: None });
    }
}
