//! Which pages of a volume this process has mapped for writing.
//!
//! The first write to a page causes a fault in each process, which takes longer than storing a small entry. A log is
//! written in order. So the pages around its head are mapped a window at a time by one system call. That takes two
//! thirds of the time of the faults, and happens once in many puts.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use eyewall_region::fork;
use eyewall_region::region::Region;

/// How much is mapped at once. More would be only a little faster, and one put would have to wait for it.
const WINDOW_BYTES: usize = 64 << 10;

/// A bit for each window of a region, set once this process has mapped it. If the kernel takes its pages later, they
/// fault one by one, as without this.
#[derive(Debug)]
pub(crate) struct Mapped {
    /// The fork generation in which the bits are valid; a child has mapped nothing.
    fork: AtomicU32,
    windows: Box<[AtomicU64]>,
}

impl Mapped {
    pub(crate) fn none_of(region: &Region) -> Self {
        let words = region.len().div_ceil(WINDOW_BYTES).div_ceil(64);
        Self {
            fork: AtomicU32::new(fork::generation()),
            windows: std::iter::repeat_with(AtomicU64::default).take(words).collect(),
        }
    }

    /// Notes that all of the region was mapped for reading. In memory this is also for writing; pages of storage
    /// fault again when they are written.
    pub(crate) fn all_is_read(&self, region: &Region) {
        if region.is_stored() {
            return;
        }
        self.begin();
        self.windows.iter().for_each(|word| word.store(u64::MAX, Relaxed));
    }

    /// Forgets the bits of a parent process.
    fn begin(&self) {
        let generation = fork::generation();
        if self.fork.swap(generation, Relaxed) != generation {
            self.windows.iter().for_each(|word| word.store(0, Relaxed));
        }
    }

    /// Maps the pages of `bytes` bytes at `offset` before they are written. Offsets of a damaged log may be any
    /// number.
    #[inline]
    pub(crate) fn map(&self, region: &Region, offset: usize, bytes: usize) {
        let windows = offset / WINDOW_BYTES..offset.saturating_add(bytes).min(region.len()).div_ceil(WINDOW_BYTES);
        if self.fork.load(Relaxed) != fork::generation() || windows.clone().any(|window| !self.has(window)) {
            self.map_windows(region, windows);
        }
    }

    #[inline]
    fn has(&self, window: usize) -> bool {
        self.windows[window / 64].load(Relaxed) & (1 << (window % 64)) != 0
    }

    #[cold]
    fn map_windows(&self, region: &Region, mut windows: Range<usize>) {
        self.begin();
        windows.start = windows.clone().find(|window| !self.has(*window)).unwrap_or(windows.end);
        for window in windows.clone() {
            self.windows[window / 64].fetch_or(1 << (window % 64), Relaxed);
        }
        let start = windows.start * WINDOW_BYTES;
        let bytes = (windows.end * WINDOW_BYTES).min(region.len()).saturating_sub(start);
        // Pages that aren't in memory would be read only to be overwritten.
        if !region.is_stored() || region.is_resident(start, bytes).unwrap_or(false) {
            region.map_for_writing(start, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION_BYTES: usize = 80 * WINDOW_BYTES + 4096;

    fn mapped(mapped: &Mapped) -> usize {
        (0..REGION_BYTES.div_ceil(WINDOW_BYTES)).filter(|window| mapped.has(*window)).count()
    }

    #[test]
    fn a_window_is_mapped_once_and_whole() {
        let region = Region::heap(REGION_BYTES);
        let seen = Mapped::none_of(&region);
        seen.map(&region, 100, 50);
        assert_eq!(mapped(&seen), 1);
        seen.map(&region, WINDOW_BYTES - 1, 2);
        assert_eq!(mapped(&seen), 2);
        seen.map(&region, 70 * WINDOW_BYTES, 10 * WINDOW_BYTES + 4096);
        assert_eq!(mapped(&seen), 13);
    }

    #[test]
    fn memory_mapped_for_reading_is_mapped_for_writing() {
        let region = Region::heap(REGION_BYTES);
        let seen = Mapped::none_of(&region);
        seen.all_is_read(&region);
        assert_eq!(mapped(&seen), 81);
    }

    #[test]
    fn beyond_the_region_nothing_is_mapped() {
        let region = Region::heap(REGION_BYTES);
        let seen = Mapped::none_of(&region);
        seen.map(&region, REGION_BYTES - 10, 1 << 30);
        seen.map(&region, REGION_BYTES + WINDOW_BYTES, 10);
        assert_eq!(mapped(&seen), 1);
    }

    #[test]
    fn a_child_has_mapped_nothing() {
        let region = Region::heap(REGION_BYTES);
        let seen = Mapped::none_of(&region);
        seen.map(&region, 0, 10 * WINDOW_BYTES);
        seen.fork.store(fork::generation() + 1, Relaxed);
        seen.map(&region, 0, 1);
        assert_eq!(mapped(&seen), 1);
    }
}
