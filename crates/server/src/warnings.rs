//! What an operator should know of a volume, in words. The administration's `/status` and `eyewall stat` say the same.

use eyewall::{Cache, Stats};

/// Says why the file system doesn't guarantee the volume's space, and what to do about it.
pub fn of_storage(cache: &Cache) -> Option<String> {
    let why = cache.storage_warning()?;
    Some(format!(
        "{why}: the space of the volume is not promised, and a full disk may end its users by SIGBUS. Keep it on ext4, \
         XFS or tmpfs."
    ))
}

/// Says what the counters of a volume show that somebody should act on.
pub fn of_stats(stats: &Stats) -> Vec<String> {
    let mut warnings = Vec::new();
    if stats.resets + stats.evictions_damaged > 0 {
        warnings
            .push("damaged parts were found and emptied; check the disk, and who else writes to this file.".to_owned());
    }
    warnings
}
