//! What the system says of this process.

use std::fs;

use rustix::process::{Resource, getrlimit};

/// The clock ticks of a second in `/proc`, which are the same on all machines (`USER_HZ`).
const TICKS: f64 = 100.0;

/// This process. A value is missing if the system doesn't tell it.
#[derive(Default)]
pub(super) struct Process {
    pub(super) resident_bytes: Option<u64>,
    /// The part that is no file and no volume.
    pub(super) anonymous_bytes: Option<u64>,
    pub(super) threads: Option<u64>,
    pub(super) descriptors: Option<u64>,
    /// `None` also without a limit.
    pub(super) descriptors_max: Option<u64>,
    pub(super) cpu_seconds: Option<f64>,
}

impl Process {
    pub(super) fn of_this() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kibibytes = |name: &str| field(&status, name)?.strip_suffix(" kB")?.parse::<u64>().ok();
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        Self {
            resident_bytes: kibibytes("VmRSS:").map(|count| count << 10),
            anonymous_bytes: kibibytes("RssAnon:").map(|count| count << 10),
            threads: field(&status, "Threads:").and_then(|count| count.parse().ok()),
            // Reading the folder takes one more.
            descriptors: fs::read_dir("/proc/self/fd").ok().map(|all| (all.count() as u64).saturating_sub(1)),
            descriptors_max: getrlimit(Resource::Nofile).current,
            cpu_seconds: cpu_seconds(&stat),
        }
    }
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// User and system time, the fields 14 and 15 (`proc_pid_stat(5)`). The second one is a name in parentheses, which may have any letters.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, behind_name) = stat.rsplit_once(") ")?;
    let mut fields = behind_name.split(' ').skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_may_have_blanks_and_parentheses() {
        let stat = "7 (a) R b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(cpu_seconds(""), None);
    }

    #[test]
    fn this_process_has_all_values() {
        let Process { resident_bytes, anonymous_bytes, threads, descriptors, cpu_seconds, .. } = Process::of_this();
        assert!(resident_bytes >= anonymous_bytes && anonymous_bytes > Some(0));
        assert!(threads > Some(0) && descriptors > Some(2) && cpu_seconds >= Some(0.0));
    }
}
