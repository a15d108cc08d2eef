//! Warnings about a volume for its operator. The administration's `/status` and `eyewall stat` show the same ones.

use eyewall::{Cache, Stats};

/// Warns that the file system doesn't guarantee the volume's space.
pub fn of_storage(cache: &Cache) -> Option<String> {
    let why = cache.storage_warning()?;
    Some(format!(
        "{why}: the file system doesn't guarantee the space of the volume, and a full disk may kill its processes by SIGBUS. Keep \
         the volume on ext4, XFS or tmpfs."
    ))
}

/// Warnings from the counters of a volume.
pub fn of_stats(stats: &Stats) -> Vec<String> {
    let mut warnings = Vec::new();
    if stats.resets + stats.evictions_damaged > 0 {
        warnings
            .push("Eyewall found and dropped damaged parts; check the disk, the memory, and which programs write to this file.".to_owned());
    }
    warnings
}
