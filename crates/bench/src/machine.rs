//! The machine of a record, without names or paths of the host.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result};

/// The facts about a machine that a reader needs to judge the figures.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Processor model.
    pub cpu: String,
    /// Cores this process may use.
    pub cores: usize,
    /// Main memory in MiB.
    pub memory_mib: u64,
    /// Operating system and kernel release.
    pub kernel: String,
    /// File system under the disk directory.
    pub disk_file_system: String,
    /// File system under the shared-memory directory.
    pub shm_file_system: String,
}

impl Machine {
    /// Examines this machine and the two directories of the run.
    pub fn look(disk: &Path, shm: &Path) -> Result<Self> {
        let cpu_info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let memory_info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Ok(Self {
            cpu: field(&cpu_info, "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: field(&memory_info, "MemTotal")
                .and_then(|size| size.split(' ').next()?.parse::<u64>().ok())
                .map_or(0, |kib| kib / 1024),
            kernel: format!("{} {}", std::env::consts::OS, release.trim()),
            disk_file_system: file_system(disk)?,
            shm_file_system: file_system(shm)?,
        })
    }

    /// A short name for the names of files: processor and cores.
    pub fn kind(&self) -> String {
        let words: Vec<String> = self
            .cpu
            .replace("(R)", "")
            .replace("(TM)", "")
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty() && !matches!(*word, "CPU" | "Processor"))
            .take(4)
            .map(str::to_ascii_lowercase)
            .collect();
        format!("{}-{}cores", words.join("-"), self.cores)
    }
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The name of the file system that holds `path`.
pub fn file_system(path: &Path) -> Result<String> {
    let found = rustix::fs::statfs(path).map_err(std::io::Error::from).map_err(Error::path("statfs", path))?;
    Ok(match found.f_type as u64 & 0xffff_ffff {
        0xef53 => "ext4".to_owned(),
        0x0102_1994 => "tmpfs".to_owned(),
        0x5846_5342 => "xfs".to_owned(),
        0x9123_683e => "btrfs".to_owned(),
        0x794c_7630 => "overlayfs".to_owned(),
        other => format!("file system 0x{other:x}"),
    })
}

/// Free space below `path` for an ordinary user, in bytes.
pub fn free_bytes(path: &Path) -> Result<u64> {
    let found = rustix::fs::statvfs(path).map_err(std::io::Error::from).map_err(Error::path("statvfs", path))?;
    Ok(found.f_bavail * found.f_frsize)
}

/// KiB that the kernel reads ahead from the disk below `path`, for maps too; `None` if the kernel doesn't say.
pub fn read_ahead_kib(path: &Path) -> Option<u64> {
    queue_of(path, "read_ahead_kb")?.parse().ok()
}

/// A setting of the queue of the device below `path`; `None` if the kernel doesn't tell.
pub fn queue_of(path: &Path, name: &str) -> Option<String> {
    let device = fs::metadata(path).ok()?.dev();
    let block = format!("/sys/dev/block/{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    // For a partition, the directory of its disk has the file.
    let places = [format!("{block}/queue/{name}"), format!("{block}/../queue/{name}")];
    places.iter().find_map(|place| Some(fs::read_to_string(place).ok()?.trim().to_owned()))
}

/// The load average of the last minute; 0 if it can't be read.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// A machine counts as idle up to this load average (one minute).
const LOAD_IDLE_MAX: f64 = 0.5;

/// A note for readers of a record if the machine was busy with other work; `None` if it is idle.
pub fn busy() -> Option<String> {
    let load = load();
    (load > LOAD_IDLE_MAX).then(|| format!("The machine was busy when the run began: load {load:.1}."))
}

/// Now in UTC as `YYYY-MM-DDTHH:MM:SSZ`.
pub fn now_in_utc() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", date(seconds / 86_400))
}

/// Today in UTC as `YYYY-MM-DD`.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date(seconds / 86_400)
}

/// The civil date of a day counted from 1970-01-01 (Howard Hinnant's algorithm).
fn date(day: u64) -> String {
    let shifted = day + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day_of_month:02}")
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_become_civil_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(19_782), "2024-02-29");
        assert_eq!(date(20_089), "2025-01-01");
    }
}
