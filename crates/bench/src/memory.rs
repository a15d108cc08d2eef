//! The memory of this process, and the memory that is still available, as the kernel counts them.

use std::fs;

use crate::error::{Error, Result};

const STATUS: &str = "/proc/self/status";

/// Resident bytes of this process: now, and the peak since it was last reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resident {
    /// Now.
    pub bytes: u64,
    /// The peak.
    pub peak_bytes: u64,
}

impl Resident {
    /// Reads both from the kernel.
    pub fn look() -> Result<Self> {
        let status = fs::read_to_string(STATUS).map_err(Error::io(format!("read {STATUS}")))?;
        Self::parse(&status).ok_or_else(|| Error::Invalid(format!("{STATUS} tells neither VmRSS nor VmHWM")))
    }

    /// Resets the peak, if the kernel allows that; then reads both.
    pub fn from_now() -> Result<Self> {
        // If the kernel doesn't allow it, an earlier peak counts, and the figure is too large.
        let _ = fs::write("/proc/self/clear_refs", "5");
        Self::look()
    }

    /// How far the peak has risen above the resident bytes of an earlier reading.
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

/// Bytes that the kernel has read from storage for this process, page faults included; `None` if the kernel doesn't
/// tell.
pub fn read_from_storage() -> Option<u64> {
    of_storage("read_bytes: ")
}

/// Bytes that the kernel has to write to storage because of this process: pages that the process was the first to
/// dirty, through maps too. `None` if the kernel doesn't tell.
pub fn written_to_storage() -> Option<u64> {
    of_storage("write_bytes: ")
}

/// The kernel's estimate of the memory that programs can still take without swapping, in bytes; `None` if it doesn't
/// tell.
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
