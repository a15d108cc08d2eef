//! What this process has in memory, and what there still is, as the kernel counts it.

use std::fs;

use crate::error::{Error, Result};

const STATUS: &str = "/proc/self/status";

/// Bytes of this process that are in memory: now, and at most since the peak was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resident {
    /// Now.
    pub bytes: u64,
    /// At most.
    pub peak_bytes: u64,
}

impl Resident {
    /// Looks.
    pub fn look() -> Result<Self> {
        let status = fs::read_to_string(STATUS).map_err(Error::io(format!("read {STATUS}")))?;
        Self::parse(&status).ok_or_else(|| Error::Invalid(format!("{STATUS} tells neither VmRSS nor VmHWM")))
    }

    /// Forgets the peak so far, where the kernel lets one; then looks.
    pub fn from_now() -> Result<Self> {
        // Where it can't be done, an earlier peak counts too, and what is told is too much.
        let _ = fs::write("/proc/self/clear_refs", "5");
        Self::look()
    }

    /// How far the peak has risen above what was there at an earlier look.
    pub fn grown_since(self, earlier: Self) -> u64 {
        self.peak_bytes.saturating_sub(earlier.bytes)
    }

    fn parse(status: &str) -> Option<Self> {
        let bytes = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            let kib: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
            Some(kib * 1024)
        };
        Some(Self { bytes: bytes("VmRSS:")?, peak_bytes: bytes("VmHWM:")? })
    }
}

/// Bytes that this process has had read from storage, map faults included; `None` where the kernel doesn't say.
pub fn read_from_storage() -> Option<u64> {
    of_storage("read_bytes: ")
}

/// Bytes that this process has made the kernel write to storage, by maps too: pages that it was the first to dirty. `None` where
/// the kernel doesn't say.
pub fn written_to_storage() -> Option<u64> {
    of_storage("write_bytes: ")
}

/// Bytes of memory that programs can still take without swapping, as the kernel estimates; `None` where it doesn't say.
pub fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

fn of_storage(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix(name))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_told_from_what_is_there() {
        let status = "Name:\tbench\nVmPeak:\t  900 kB\nVmHWM:\t   300 kB\nVmRSS:\t   200 kB\n";
        let found = Resident::parse(status).unwrap();
        assert_eq!(found, Resident { bytes: 200 << 10, peak_bytes: 300 << 10 });
        let earlier = Resident { bytes: 50 << 10, peak_bytes: 60 << 10 };
        assert_eq!(found.grown_since(earlier), 250 << 10);
        assert_eq!(Resident::parse("Name:\tbench\n"), None);
    }

    #[test]
    fn this_process_is_in_memory() {
        let now = Resident::look().unwrap();
        assert!(now.bytes > 0 && now.peak_bytes >= now.bytes);
        assert!(available().unwrap() > 0);
    }
}
