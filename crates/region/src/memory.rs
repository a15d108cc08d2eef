//! How much memory this process may use, how much is used, and whether tasks wait for memory.
//!
//! A limit belongs to a control group: the process's own or one above it, of version 2 or 1. Both versions may be
//! mounted, and either mount may start below the machine's root (in containers). Without a limit, only the waiting
//! tells.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Larger limits mean none, since version 1 writes a very large number.
const NO_LIMIT: u64 = 1 << 60;

/// Where to read the numbers of this process.
#[derive(Debug, Clone)]
pub struct Memory {
    groups: Vec<Group>,
    /// The file of the group's own pressure stall information, if there is one.
    stall: Option<PathBuf>,
}

/// A control group that may have a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    folder: PathBuf,
    files: &'static Files,
}

#[derive(Debug, PartialEq, Eq)]
struct Files {
    used: &'static str,
    limits: &'static [&'static str],
    /// Lines of `memory.stat`: the page cache of files that aren't shared memory.
    cached: [&'static str; 2],
}

const VERSION_2: Files =
    Files { used: "memory.current", limits: &["memory.max", "memory.high"], cached: ["inactive_file", "active_file"] };
const VERSION_1: Files = Files {
    used: "memory.usage_in_bytes",
    limits: &["memory.limit_in_bytes"],
    cached: ["total_inactive_file", "total_active_file"],
};

/// The memory of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Bytes that can't be reclaimed without losing or swapping something: all charged bytes, except the page cache
    /// of files.
    pub used: u64,
    /// Bytes that the group may use.
    pub limit: u64,
}

impl Memory {
    /// Finds where to read the numbers of this process. If the process is moved to other groups, call this again.
    pub fn of_this_process() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let (own, mounts) = (read("/proc/self/cgroup"), read("/proc/self/mountinfo"));
        let groups: Vec<Group> = [&VERSION_2, &VERSION_1]
            .into_iter()
            .flat_map(|files| folders(&own, &mounts, files).into_iter().map(move |folder| Group { folder, files }))
            .collect();
        let stall = groups.first().map(|group| group.folder.join("memory.pressure")).filter(|path| path.exists());
        Self { groups, stall }
    }

    /// The groups with a limit, the process's own first.
    pub fn shares(&self) -> impl Iterator<Item = Share> {
        self.groups.iter().filter_map(Group::share)
    }

    /// How much of the last ten seconds some task waited for memory, in hundredths of a percent; 0 if that is
    /// unknown.
    ///
    /// It counts tasks of the process's group. If the group doesn't tell and nothing is limited (`limited`), it
    /// counts tasks of the machine.
    pub fn stalled(&self, limited: bool) -> u64 {
        let of_machine = Path::new("/proc/pressure/memory");
        let path = self.stall.as_deref().or_else(|| (!limited).then_some(of_machine));
        let path = path.filter(|_| !IGNORES_WAITING.load(Relaxed));
        path.and_then(|path| fs::read_to_string(path).ok()).and_then(|text| parse_stalled(&text)).unwrap_or(0)
    }
}

static IGNORES_WAITING: AtomicBool = AtomicBool::new(false);

/// From now on, this process sees nobody wait for memory. The results of tests must not depend on the machine's load.
pub fn ignore_waiting_for_tests() {
    IGNORES_WAITING.store(true, Relaxed);
}

impl Group {
    fn share(&self) -> Option<Share> {
        let read = |name: &str| fs::read_to_string(self.folder.join(name)).ok();
        // "max" isn't a number, and means no limit.
        let limits = self.files.limits.iter().filter_map(|name| read(name)?.trim().parse::<u64>().ok());
        let limit = limits.min().filter(|limit| *limit < NO_LIMIT)?;
        let charged: u64 = read(self.files.used)?.trim().parse().ok()?;
        let stat = read("memory.stat").unwrap_or_default();
        let cached: u64 = self.files.cached.iter().map(|name| line_of(&stat, name)).sum();
        Some(Share { used: charged.saturating_sub(cached), limit })
    }
}

fn line_of(stat: &str, name: &str) -> u64 {
    let mut values = stat.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    values.find_map(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
}

/// The folders of the process's group and of those above it, the innermost first.
fn folders(own: &str, mounts: &str, files: &'static Files) -> Vec<PathBuf> {
    let is_first = *files == VERSION_1;
    let Some(path) = own.lines().find_map(|line| path_of_group(line, is_first)) else { return Vec::new() };
    let Some((root, mounted)) = mounts.lines().find_map(|line| mount_of_groups(line, is_first)) else {
        return Vec::new();
    };
    // In a namespace, the group may lie outside of what is mounted; then only the mount is visible.
    let inside = Path::new(path).strip_prefix(&root).ok();
    let inside = inside.filter(|inside| !inside.starts_with("..")).unwrap_or(Path::new(""));
    inside.ancestors().map(|part| mounted.join(part)).collect()
}

/// Parses a line of `/proc/self/cgroup`, such as `4:memory:/a/b` or `0::/a/b`.
fn path_of_group(line: &str, is_first: bool) -> Option<&str> {
    let (_, rest) = line.split_once(':')?;
    let (controllers, path) = rest.split_once(':')?;
    let wanted = if is_first { controllers.split(',').any(|name| name == "memory") } else { controllers.is_empty() };
    wanted.then_some(path)
}

/// Parses a line of `/proc/self/mountinfo`: which part of the hierarchy is mounted, and where.
fn mount_of_groups(line: &str, is_first: bool) -> Option<(PathBuf, PathBuf)> {
    let (mount, system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, place) = (mount.next()?, mount.next()?);
    let mut system = system.split(' ');
    let (kind, options) = (system.next()?, system.nth(1)?);
    let wanted =
        if is_first { kind == "cgroup" && options.split(',').any(|name| name == "memory") } else { kind == "cgroup2" };
    wanted.then(|| (unescape(root), unescape(place)))
}

/// Spaces and similar characters are written as `\040`.
fn unescape(field: &str) -> PathBuf {
    let mut plain = String::with_capacity(field.len());
    let mut rest = field;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.map_or('\\', char::from));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    plain.push_str(rest);
    plain.into()
}

/// Parses a line such as `some avg10=1.25 avg60=0.30 avg300=0.00 total=1649977`.
fn parse_stalled(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let (whole, part) = some.split(' ').find_map(|field| field.strip_prefix("avg10="))?.split_once('.')?;
    Some(whole.parse::<u64>().ok()? * 100 + part.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
23 1 0:28 / / rw - ext4 /dev/root rw
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn the_groups_of_both_versions_are_found_from_the_inside_out() {
        let own = "4:cpu,memory:/shop/web\n1:cpu:/\n0::/unified/web\n";
        let first = ["/sys/fs/cgroup/memory/shop/web", "/sys/fs/cgroup/memory/shop", "/sys/fs/cgroup/memory/"];
        assert_eq!(folders(own, MOUNTS, &VERSION_1), first.map(PathBuf::from));
        assert_eq!(folders(own, MOUNTS, &VERSION_2)[0], Path::new("/sys/fs/cgroup/unified/unified/web"));
        assert_eq!(folders("0::/web\n", MOUNTS, &VERSION_1), Vec::<PathBuf>::new());
        assert_eq!(folders("0::/web\n", "", &VERSION_2), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_mount_may_begin_below_the_root_and_have_spaces_in_its_name() {
        let mounts = "1 2 0:3 /box\\040one /sys/fs/c\\040g rw - cgroup2 none rw";
        assert_eq!(folders("0::/box one/web\n", mounts, &VERSION_2)[0], Path::new("/sys/fs/c g/web"));
        for outside in ["0::/../other\n", "0::/elsewhere\n"] {
            assert_eq!(folders(outside, mounts, &VERSION_2), [Path::new("/sys/fs/c g/")]);
        }
        assert_eq!(unescape("\\x\\"), Path::new("\\x\\"));
    }

    #[test]
    fn a_group_without_a_limit_has_no_share() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let group = Group { folder: folder.path().to_owned(), files: &VERSION_2 };
        assert_eq!(group.share(), None);
        write("memory.current", "1000\n");
        write("memory.stat", "anon 5\nfile 700\ninactive_file 100\nactive_file 50\n");
        write("memory.max", "max\n");
        assert_eq!(group.share(), None);
        write("memory.max", "4000\n");
        assert_eq!(group.share(), Some(Share { used: 850, limit: 4000 }));
        write("memory.high", "3000\n");
        assert_eq!(group.share(), Some(Share { used: 850, limit: 3000 }));
        let first = Group { files: &VERSION_1, ..group };
        write("memory.usage_in_bytes", "1000\n");
        write("memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(first.share(), None);
    }

    #[test]
    fn waiting_is_read_in_hundredths_of_a_percent() {
        let text = "some avg10=12.05 avg60=0.00 avg300=0.00 total=1\nfull avg10=3.00 avg60=0.00 avg300=0.00 total=1\n";
        assert_eq!(parse_stalled(text), Some(1205));
        assert_eq!(parse_stalled("full avg10=3.00\n"), None);
        let here = Memory::of_this_process();
        assert!(here.stalled(false) <= 10_000 && here.shares().all(|share| share.limit > 0), "{here:?}");
    }
}
