//! The kernel, the limits of this process, memory, and the clock.

use std::fs;

use eyewall_region::memory::Memory;
use rustix::process::{Resource, getrlimit};

use super::Finding;
use crate::config::Config;
use crate::config::settings::CACHE_SIZE_DEFAULT;
use crate::units::{count, size};

/// Descriptors beside those of clients and origins: the volume, listeners, logs, files of folders.
const DESCRIPTORS_BESIDE: u64 = 256;
/// The listeners of the server ask the kernel for this many waiting connections.
const WAITING_CONNECTIONS: u64 = 4096;

pub(super) fn examine(config: &Config) -> Vec<Finding> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let limit = |resource| getrlimit(resource).current.unwrap_or(u64::MAX);
    let connections = config.server.limits.connections.as_ref().map(|number| number.0);
    let volume_bytes = config.cache.size.as_ref().map_or(CACHE_SIZE_DEFAULT, |size| size.0);
    let mut findings = vec![
        kernel(read("/proc/sys/kernel/osrelease").trim(), config.sites.iter().any(|site| site.root.is_some())),
        descriptors(limit(Resource::Nofile), connections),
    ];
    findings.extend(file_size(limit(Resource::Fsize), volume_bytes));
    findings.extend(waiting_connections(&read("/proc/sys/net/core/somaxconn")));
    let most = Memory::of_this_process().shares().map(|share| share.limit).min();
    findings.extend(memory(config, volume_bytes, total_memory(&read("/proc/meminfo")), most));
    findings.extend(clock_source(&read("/sys/devices/system/clocksource/clocksource0/current_clocksource")));
    findings
}

/// What the kernel lacks. A release begins with two numbers, such as `6.1.0-18-amd64`.
fn kernel(release: &str, serves_folders: bool) -> Finding {
    const ADVICE: &str = "use a later kernel";
    let mut numbers =
        release.split(|letter: char| !letter.is_ascii_digit()).filter_map(|number| number.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let name = format!("Linux {release}");
    if version == (0, 0) {
        Finding::warning("kernel", "its version is unknown", ADVICE)
    } else if version < (5, 6) && serves_folders {
        Finding::fault("kernel", format!("{name} has no openat2, so no `root` can be served"), "use Linux 5.6 or later")
    } else if version < (5, 14) {
        let words =
            format!("{name} can't read the pages of a volume ahead (MADV_POPULATE_READ), and sandboxes are weaker");
        Finding::warning("kernel", words, "use Linux 6.2 or later")
    } else if version < (6, 2) {
        let words = format!("{name} has a Landlock that lets a process in a sandbox truncate files");
        Finding::warning("kernel", words, "use Linux 6.2 or later if you set `sandbox`")
    } else {
        Finding::good("kernel", format!("{name} has all that Eyewall uses"))
    }
}

/// Each client takes a descriptor, and each request to an origin another one.
fn descriptors(limit: u64, connections: Option<u64>) -> Finding {
    let told = |limit: u64| if limit == u64::MAX { "any number of".to_owned() } else { count(limit) };
    let words = format!("this process may have {} descriptors", told(limit));
    let advice =
        "raise it: LimitNOFILE=65536 in the unit of systemd, or `ulimit -n 65536` in the shell that starts the server";
    match connections {
        Some(connections) if limit < connections.saturating_mul(2).saturating_add(DESCRIPTORS_BESIDE) => {
            let wanted = connections.saturating_mul(2).saturating_add(DESCRIPTORS_BESIDE);
            let words = format!("{words}; `connections = {connections}` may need {}", count(wanted));
            Finding::fault("descriptors", words, advice)
        }
        None if limit < 4096 => {
            let clients = count(limit.saturating_sub(DESCRIPTORS_BESIDE) / 2);
            Finding::warning("descriptors", format!("{words}: enough for some {clients} clients at once"), advice)
        }
        _ => Finding::good("descriptors", words),
    }
}

fn file_size(limit: u64, volume_bytes: u64) -> Option<Finding> {
    (limit < volume_bytes).then(|| {
        let words =
            format!("this process may write files of {}, and the volume has {}", size(limit), size(volume_bytes));
        Finding::fault(
            "file size",
            words,
            "raise the limit: LimitFSIZE=infinity in the unit of systemd, or `ulimit -f unlimited`",
        )
    })
}

fn waiting_connections(most: &str) -> Option<Finding> {
    let most: u64 = most.trim().parse().ok()?;
    (most < WAITING_CONNECTIONS).then(|| {
        let words = format!(
            "the kernel lets {} connections wait to be accepted; Eyewall asks for {}",
            count(most),
            count(WAITING_CONNECTIONS)
        );
        Finding::warning("waiting connections", words, "set the sysctl net.core.somaxconn to 4096")
    })
}

fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// The volume, the tier and the budget of the server against the memory that there is.
fn memory(config: &Config, volume_bytes: u64, total: Option<u64>, limit: Option<u64>) -> Option<Finding> {
    let total = total?;
    let (most, whose) = match limit {
        Some(limit) if limit < total => (limit, "its control group"),
        _ => (total, "this machine"),
    };
    let is_in_memory = config.cache.path.as_ref().is_none_or(|path| path.get_ref().starts_with("/dev/shm"));
    let tier = config.cache.tier.as_ref().map_or(0, |tier| tier.get_ref().0);
    let budget = config.server.limits.memory.as_ref().map_or(0, |budget| budget.get_ref().0);
    let fixed = tier + budget + if is_in_memory { volume_bytes } else { 0 };
    let told = format!("{} of {whose}", size(most));
    Some(if fixed > most {
        let words = format!("volume in memory, tier and `memory` take {}, more than the {told}", size(fixed));
        Finding::fault("memory", words, "make them smaller, or put the volume on a disk")
    } else if fixed > most / 4 * 3 {
        let words = format!("volume in memory, tier and `memory` take {} of the {told}", size(fixed));
        Finding::warning("memory", words, "leave a quarter for the server, the kernel and other programs")
    } else if !is_in_memory && volume_bytes > most {
        let words =
            format!("the volume has {}, more than the {told}, so some hits wait for the disk", size(volume_bytes));
        Finding::warning(
            "memory",
            words,
            "a `tier` keeps hot entries in memory; `eyewall advise` says which size your traffic needs",
        )
    } else {
        Finding::good("memory", format!("{told}; the volume has {}", size(volume_bytes)))
    })
}

/// Without the processor's own counter, each reading of the clock is a system call.
fn clock_source(name: &str) -> Option<Finding> {
    const FAST: [&str; 5] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen", "arch_sys_counter"];
    let name = name.trim();
    (!name.is_empty() && !FAST.contains(&name)).then(|| {
        let words = format!("the kernel reads the time from {name}, by a system call each time");
        Finding::warning(
            "clock",
            words,
            "choose a clock source that programs can read, such as tsc (boot with clocksource=tsc)",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;
    use crate::config::parse;

    #[test]
    fn a_kernel_is_judged_by_its_version() {
        for (release, serves_folders, state) in [
            ("6.12.43+deb13-amd64", true, State::Good),
            ("6.2.0", false, State::Good),
            ("6.1.0-18-amd64", true, State::Warning),
            ("5.10.0", true, State::Warning),
            ("5.4.0", true, State::Fault),
            ("5.4.0", false, State::Warning),
            ("", true, State::Warning),
        ] {
            assert_eq!(kernel(release, serves_folders).state, state, "{release}");
        }
    }

    #[test]
    fn descriptors_have_to_be_enough_for_the_connections() {
        assert_eq!(descriptors(1024, None).state, State::Warning);
        assert_eq!(descriptors(65_536, None).state, State::Good);
        assert_eq!(descriptors(1024, Some(384)).state, State::Good);
        assert_eq!(descriptors(1024, Some(400)).state, State::Fault);
        assert_eq!(descriptors(u64::MAX, Some(u64::MAX)).state, State::Good);
    }

    #[test]
    fn limits_below_what_the_server_needs_are_found() {
        assert!(file_size(u64::MAX, 1 << 30).is_none());
        assert_eq!(file_size(1 << 20, 1 << 30).unwrap().state, State::Fault);
        assert!(waiting_connections("4096\n").is_none() && waiting_connections("").is_none());
        assert_eq!(waiting_connections("128\n").unwrap().state, State::Warning);
        assert!(clock_source("tsc\n").is_none() && clock_source("").is_none());
        assert_eq!(clock_source("hpet\n").unwrap().state, State::Warning);
    }

    #[test]
    fn what_is_in_memory_has_to_fit() {
        let state = |cache: &str, total: u64, limit: Option<u64>| {
            let config = parse(&format!("{cache}[[site]]\norigins = [\"http://a\"]\n")).unwrap();
            memory(&config, 1 << 30, Some(total << 30), limit).unwrap().state
        };
        assert_eq!(state("", 8, None), State::Good);
        assert_eq!(state("", 8, Some(1 << 29)), State::Fault);
        assert_eq!(state("", 1, None), State::Warning);
        assert_eq!(state("[cache]\npath = \"/var/cache/x.eye\"\n", 8, Some(1 << 29)), State::Warning);
        assert_eq!(state("[cache]\npath = \"/var/cache/x.eye\"\ntier = \"2G\"\n", 1, None), State::Fault);
        assert_eq!(total_memory("MemTotal:       16 kB\nMemFree: 2 kB\n"), Some(16 << 10));
        assert_eq!(total_memory("nothing"), None);
    }
}
