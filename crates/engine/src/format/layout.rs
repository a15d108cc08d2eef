//! Where everything lies in a volume, computed from a few numbers of the superblock and checked against the volume's
//! size.

use super::{POSITIONS_MAX, UNIT_BYTES, owner::PROCESSES_MAX, record, sketch};

/// The smallest volume.
pub(crate) const SIZE_MIN: u64 = 512 << 10;
/// No volume can be larger: sixteen stripes with as many positions as a slot can hold.
const SIZE_MAX: u64 = STRIPES_MAX * POSITIONS_MAX * UNIT_BYTES + (1 << 40);
/// The superblock's page.
pub(crate) const SUPERBLOCK_BYTES: u64 = 4096;
/// One process slot: incarnation, process ID, start time.
pub(crate) const PROCESS_BYTES: u64 = 64;
/// One thread slot: owner line, pin line, counter line.
pub(crate) const THREAD_BYTES: u64 = 192;
/// One stripe's words.
pub(crate) const STRIPE_BYTES: u64 = 512;
/// One claim, a cache line: the hash of its key, its holder, and the progress of a fill.
pub(crate) const CLAIM_BYTES: u64 = 64;
/// A bucket of the table of purged tags: floors and seven cells.
pub(crate) const TAG_LINE_BYTES: u64 = 64;
/// The filter of such a bucket.
const TAG_FILTER_BYTES: u64 = 4;
/// A line of the sketch.
const SKETCH_LINE_BYTES: u64 = 64;
/// Eight slots of eight bytes: one cache line.
pub(crate) const BUCKET_BYTES: u64 = 64;
/// Slots in a bucket.
pub(crate) const BUCKET_SLOTS: u64 = 8;

pub(crate) const STRIPES_MAX: u64 = 16;
/// The small ring's share of a stripe's data in percent, including what the index takes of it.
const SMALL_PERCENT: u64 = 20;
/// The index never takes the last of this many parts of the small ring.
pub(crate) const LEAST_OF_SMALL: u64 = 4;
/// The largest entry takes at most half of this percentage of a stripe.
const LARGEST_PERCENT: u64 = 15;
/// A stripe has at least one bucket for this many bytes, however large its entries are.
const BYTES_PER_BUCKET: u64 = 16 << 10;
/// Index slots for each expected entry, in percent: one for the entry, the rest for ghosts.
const SLOTS_PER_ENTRY_PERCENT: u64 = 175;
/// Bytes of these slots.
const INDEX_BYTES_PER_ENTRY: u64 = SLOTS_PER_ENTRY_PERCENT * 8 / 100;
/// The sketch remembers this many times the expected entries, in at most one in so many bytes of a stripe.
const SKETCH_KEYS_PER_ENTRY: u64 = 4;
const SKETCH_PART_MAX: u64 = 128;
const ENTRY_MAX_DEFAULT: u64 = 4 << 20;
/// Record lengths stay below the limit of a length field.
const ENTRY_MAX: u64 = u32::MAX as u64 / 2;
/// Larger hints count as this. Sizes have heavy tails, and a cache keeps the small entries. With the mean size of
/// requested objects (51 KB in one web trace), the index would be full long before the data. More slots cost 0.3 %.
const ENTRY_SIZE_HINT_MAX: u64 = 4096;
pub(crate) const PAGE: u64 = 4096;

/// The shape of a volume. The first fields are stored; the others follow from them ([`Layout::place_parts`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) size: u64,
    pub(crate) stripes: u64,
    /// The least number of buckets in the index of one stripe.
    pub(crate) buckets: u64,
    /// Bytes of one stripe's small ring, including those that the index may take.
    pub(crate) small: u64,
    /// Bytes of one stripe's main ring, which lies before the small one.
    pub(crate) main: u64,
    pub(crate) processes: u64,
    pub(crate) threads: u64,
    /// Claims of one stripe.
    pub(crate) claims: u64,
    pub(crate) entry_bytes_max: u64,
    pub(crate) entry_size_hint: u64,
    /// Buckets of the table of purged tags.
    pub(crate) tag_lines: u64,
    /// Whether the number of buckets follows from the hint and never changes, as in a tier.
    pub(crate) index_is_fixed: bool,

    pub(crate) processes_at: u64,
    pub(crate) threads_at: u64,
    pub(crate) stripes_at: u64,
    pub(crate) claims_at: u64,
    pub(crate) tag_filters_at: u64,
    pub(crate) tags_at: u64,
    pub(crate) sketch_at: u64,
    pub(crate) data_at: u64,
    /// Lines of the sketch of one stripe.
    pub(crate) sketch_lines: u64,
    /// The most buckets in the index of one stripe: as many as fit three quarters of the small ring.
    pub(crate) buckets_max: u64,
    /// Offset of the first stripe's first bucket, and the distance to the next stripe's. The second bucket lies
    /// before the first.
    pub(crate) first_bucket_at: u64,
    pub(crate) stripe_step: u64,
    /// Bytes of the small ring that a bucket takes.
    pub(crate) bucket_taken: u64,
}

/// Why there is no layout for the requested shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    SizeTooSmall,
    /// The largest size that has one.
    SizeTooLarge {
        most: u64,
    },
    EntryMax {
        most: u64,
    },
}

impl Layout {
    /// The layout of a new volume.
    pub(crate) fn new(size: u64, entry_size_hint: u64, entry_bytes_max: Option<u64>) -> Result<Self, Unfit> {
        let size = size - size % PAGE;
        if size < SIZE_MIN {
            return Err(Unfit::SizeTooSmall);
        }
        if size > SIZE_MAX {
            return Err(Self::too_large(entry_size_hint, entry_bytes_max));
        }
        let most = (size / 4).min(ENTRY_MAX);
        let entry_bytes_max = entry_bytes_max.unwrap_or_else(|| Self::entry_bytes_max_for(size));
        if entry_bytes_max > most || entry_bytes_max < 2 * record::RECORD_BYTES_MIN {
            return Err(Unfit::EntryMax { most });
        }
        let mut layout = Self::shared_out(size, entry_size_hint, entry_bytes_max);
        if !layout.has_positions() {
            return Err(Self::too_large(entry_size_hint, Some(entry_bytes_max)));
        }
        layout.place_parts();
        debug_assert!(layout.is_sound());
        Ok(layout)
    }

    /// Where the first stripe of a volume of this size lies. Depends on the size only.
    pub(crate) fn first_stripe_at(size: u64) -> u64 {
        SUPERBLOCK_BYTES + Self::processes_for(size) * PROCESS_BYTES + Self::threads_for(size) * THREAD_BYTES
    }

    fn processes_for(size: u64) -> u64 {
        (size >> 18).clamp(32, PROCESSES_MAX)
    }

    fn threads_for(size: u64) -> u64 {
        (size >> 16).clamp(64, 4096)
    }

    /// The sizes of the parts, before they have their places.
    fn shared_out(size: u64, entry_size_hint: u64, entry_bytes_max: u64) -> Self {
        let stripes = (size * LARGEST_PERCENT / 100 / (2 * entry_bytes_max)).clamp(1, STRIPES_MAX);
        let mut layout = Self {
            size,
            stripes,
            processes: Self::processes_for(size),
            threads: Self::threads_for(size),
            claims: (size >> 20).clamp(16, 64),
            entry_bytes_max,
            entry_size_hint: entry_size_hint.clamp(16, ENTRY_SIZE_HINT_MAX),
            tag_lines: (size >> 16).clamp(8, 1 << 14),
            ..Self::default()
        };
        layout.share_out();
        layout
    }

    /// Whether a slot can hold every position of a stripe.
    fn has_positions(&self) -> bool {
        self.stripe_data_bytes() / UNIT_BYTES < POSITIONS_MAX
    }

    /// The error with the largest size that has enough positions.
    fn too_large(entry_size_hint: u64, entry_bytes_max: Option<u64>) -> Unfit {
        let (mut most, mut too_large) = (SIZE_MIN / PAGE, SIZE_MAX / PAGE + 1);
        while most + 1 < too_large {
            let middle = u64::midpoint(most, too_large);
            let size = middle * PAGE;
            let entry_bytes_max = entry_bytes_max.unwrap_or_else(|| Self::entry_bytes_max_for(size));
            if Self::shared_out(size, entry_size_hint, entry_bytes_max).has_positions() {
                most = middle;
            } else {
                too_large = middle;
            }
        }
        Unfit::SizeTooLarge { most: most * PAGE }
    }

    /// The default for the largest entry of a volume of this size.
    pub(crate) fn entry_bytes_max_for(size: u64) -> u64 {
        (size / 16).min(ENTRY_MAX_DEFAULT)
    }

    /// Divides the bytes that the tables leave between index and rings.
    fn share_out(&mut self) {
        let tables = SUPERBLOCK_BYTES
            + self.processes * PROCESS_BYTES
            + self.threads * THREAD_BYTES
            + self.stripes * (STRIPE_BYTES + self.claims * CLAIM_BYTES)
            + self.tag_filters_bytes()
            + self.tag_lines * TAG_LINE_BYTES
            + self.stripes * self.sketch_lines_wanted() * SKETCH_LINE_BYTES
            + PAGE;
        let stripe = (self.size - tables) / self.stripes;
        self.buckets = (stripe / BYTES_PER_BUCKET).max(2);
        let mut data = stripe;
        if self.index_is_fixed {
            let entries = stripe / (self.entry_bytes_hinted() + INDEX_BYTES_PER_ENTRY);
            self.buckets = self.buckets.max(Self::buckets_for(entries));
            data -= self.buckets * BUCKET_BYTES;
        }
        self.small = (data * SMALL_PERCENT / 100).next_multiple_of(BUCKET_BYTES);
        self.main = (data - self.small) / BUCKET_BYTES * BUCKET_BYTES;
    }

    /// The same layout with an index that never grows.
    pub(crate) fn with_fixed_index(mut self) -> Self {
        self.index_is_fixed = true;
        self.share_out();
        self.place_parts();
        self
    }

    /// How many buckets a stripe needs for this many entries, including slots for ghosts.
    pub(crate) fn buckets_for(entries: u64) -> u64 {
        (entries.saturating_mul(SLOTS_PER_ENTRY_PERCENT) / 100).div_ceil(BUCKET_SLOTS)
    }

    /// How many buckets a new stripe has, by the hint.
    pub(crate) fn buckets_hinted(&self) -> u64 {
        let entries = self.stripe_data_bytes() / (self.entry_bytes_hinted() + INDEX_BYTES_PER_ENTRY);
        Self::buckets_for(entries).clamp(self.buckets, self.buckets_max)
    }

    fn entry_bytes_hinted(&self) -> u64 {
        (self.entry_size_hint.min(ENTRY_SIZE_HINT_MAX) + record::HEADER_BYTES).next_multiple_of(UNIT_BYTES)
    }

    /// How many lines the sketch of a stripe has. A tier has none: its volume remembers.
    fn sketch_lines_wanted(&self) -> u64 {
        if self.index_is_fixed {
            return 0;
        }
        let stripe = self.size / self.stripes.max(1);
        let keys = stripe / (self.entry_bytes_hinted() + INDEX_BYTES_PER_ENTRY) * SKETCH_KEYS_PER_ENTRY;
        keys.div_ceil(sketch::CELLS as u64).min(stripe / SKETCH_PART_MAX / SKETCH_LINE_BYTES).max(1)
    }

    /// Bytes of the small ring that this many buckets take.
    #[inline]
    pub(crate) fn bytes_taken(&self, buckets: u64) -> u64 {
        buckets * self.bucket_taken
    }

    /// Computes the offsets from the stored fields.
    pub(crate) fn place_parts(&mut self) {
        self.processes_at = SUPERBLOCK_BYTES;
        self.threads_at = self.processes_at + self.processes * PROCESS_BYTES;
        self.stripes_at = self.threads_at + self.threads * THREAD_BYTES;
        self.claims_at = self.stripes_at + self.stripes * STRIPE_BYTES;
        self.tag_filters_at = self.claims_at + self.stripes * self.claims * CLAIM_BYTES;
        self.tags_at = self.tag_filters_at + self.tag_filters_bytes();
        self.sketch_at = self.tags_at + self.tag_lines * TAG_LINE_BYTES;
        self.sketch_lines = self.sketch_lines_wanted();
        let index_at = self.sketch_at + self.stripes * self.sketch_lines * SKETCH_LINE_BYTES;
        let index_bytes = if self.index_is_fixed { self.stripes * self.buckets * BUCKET_BYTES } else { 0 };
        let index_end = index_at + index_bytes;
        self.data_at = index_end.next_multiple_of(PAGE.min(SUPERBLOCK_BYTES));
        if self.data_at + self.stripes * self.stripe_data_bytes() > self.size {
            self.data_at = index_end;
        }
        if self.index_is_fixed {
            (self.buckets_max, self.bucket_taken) = (self.buckets, 0);
            self.stripe_step = self.buckets * BUCKET_BYTES;
            self.first_bucket_at = index_at + self.stripe_step - BUCKET_BYTES;
        } else {
            let most = (self.small - self.small / LEAST_OF_SMALL) / BUCKET_BYTES;
            (self.buckets_max, self.bucket_taken) = (most.min(u64::from(u32::MAX)), BUCKET_BYTES);
            let end = self.data_at + self.stripe_data_bytes();
            self.first_bucket_at = end - BUCKET_BYTES;
            self.stripe_step = self.stripe_data_bytes();
        }
    }

    /// Whether the stored fields are possible. An untrusted superblock is checked by this.
    pub(crate) fn is_sound(&self) -> bool {
        let bounded = (1..=STRIPES_MAX).contains(&self.stripes)
            && (2..=1 << 31).contains(&self.buckets)
            && self.buckets <= self.buckets_max
            && (1..=PROCESSES_MAX).contains(&self.processes)
            && (1..=1 << 16).contains(&self.threads)
            && (1..=1 << 16).contains(&self.claims)
            && (1..=1 << 20).contains(&self.tag_lines)
            && self.small.is_multiple_of(BUCKET_BYTES)
            && self.main.is_multiple_of(BUCKET_BYTES)
            && self.small > 0
            && self.main > 0
            && self.small < 1 << 40
            && self.main < 1 << 40
            && self.size >= SIZE_MIN
            && self.entry_bytes_max >= 2 * record::RECORD_BYTES_MIN
            && self.entry_bytes_max <= (self.main / 2).min(ENTRY_MAX);
        bounded
            && self.stripe_data_bytes() / UNIT_BYTES < POSITIONS_MAX
            && self.data_at + self.stripes * self.stripe_data_bytes() <= self.size
    }

    /// The largest entry for a small ring of which the index leaves `left` bytes.
    pub(crate) fn largest_for_small(&self, left: u64) -> u64 {
        (self.small * LARGEST_PERCENT / SMALL_PERCENT).min(left) / 2
    }

    /// Bytes of both rings of one stripe.
    #[inline]
    pub(crate) fn stripe_data_bytes(&self) -> u64 {
        self.small + self.main
    }

    /// Offset of stripe `stripe`'s first data byte.
    #[inline]
    pub(crate) fn stripe_data_at(&self, stripe: usize) -> u64 {
        self.data_at + stripe as u64 * self.stripe_data_bytes()
    }

    /// Offset of a bucket. Buckets lie in the small ring, from its end downwards; those of a fixed index lie before
    /// all rings, in the same order.
    #[inline]
    pub(crate) fn bucket_at(&self, stripe: usize, bucket: u64) -> usize {
        (self.first_bucket_at + stripe as u64 * self.stripe_step - bucket * BUCKET_BYTES) as usize
    }

    /// Offset of a stripe's words.
    #[inline]
    pub(crate) fn stripe_at(&self, stripe: usize) -> usize {
        (self.stripes_at + stripe as u64 * STRIPE_BYTES) as usize
    }

    /// Offset of a stripe's claim.
    pub(crate) fn claim_at(&self, stripe: usize, claim: u64) -> usize {
        (self.claims_at + (stripe as u64 * self.claims + claim) * CLAIM_BYTES) as usize
    }

    /// Number of the bucket, in the table of purged tags, for a tag with this hash.
    #[inline]
    pub(crate) fn tag_line_of(&self, hash: u64) -> u64 {
        ((hash & 0xffff_ffff) * self.tag_lines) >> 32
    }

    /// Offset of such a bucket.
    #[inline]
    pub(crate) fn tag_line_at(&self, line: u64) -> usize {
        (self.tags_at + line * TAG_LINE_BYTES) as usize
    }

    /// Offset of a line of the sketch of a stripe.
    #[inline]
    pub(crate) fn sketch_line_at(&self, stripe: usize, line: u64) -> usize {
        (self.sketch_at + (stripe as u64 * self.sketch_lines + line) * SKETCH_LINE_BYTES) as usize
    }

    fn tag_filters_bytes(&self) -> u64 {
        (self.tag_lines * TAG_FILTER_BYTES).next_multiple_of(TAG_LINE_BYTES)
    }

    /// Offset of a thread slot.
    #[inline]
    pub(crate) fn thread_at(&self, thread: u32) -> usize {
        (self.threads_at + u64::from(thread) * THREAD_BYTES) as usize
    }

    /// Offset of a process slot.
    pub(crate) fn process_at(&self, process: u32) -> usize {
        (self.processes_at + u64::from(process) * PROCESS_BYTES) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_layout_fits_its_size(size in SIZE_MIN..1 << 44, hint in 1..1_u64 << 32, entry in 80..1_u64 << 40) {
            let entry = entry.min((size - size % PAGE) / 4).min(u64::from(u32::MAX) / 2);
            match Layout::new(size, hint, Some(entry)) {
                Ok(layout) => {
                    prop_assert!(layout.is_sound(), "{layout:?}");
                    prop_assert!((layout.buckets..=layout.buckets_max).contains(&layout.buckets_hinted()));
                }
                Err(why) => prop_assert!(matches!(why, Unfit::SizeTooLarge { most } if most < size), "{why:?}"),
            }
        }
    }

    #[test]
    fn the_default_overhead_is_small() {
        for (size, percent) in [(SIZE_MIN, 8), (16 << 20, 2), (1 << 30, 2)] {
            let layout = Layout::new(size, 1024, None).unwrap();
            let data = layout.stripes * layout.stripe_data_bytes();
            assert!((size - data) * 100 <= size * percent, "{layout:?}");
        }
    }

    #[test]
    fn an_impossible_shape_is_refused_with_a_reason() {
        assert_eq!(Layout::new(SIZE_MIN - 1, 1024, None), Err(Unfit::SizeTooSmall));
        for entry_bytes_max in [None, Some(1 << 30)] {
            let Err(Unfit::SizeTooLarge { most }) = Layout::new(1 << 50, 1024, entry_bytes_max) else {
                panic!("it fits")
            };
            assert!(Layout::new(most, 1024, entry_bytes_max).is_ok());
            assert_eq!(Layout::new(most + PAGE, 1024, entry_bytes_max), Err(Unfit::SizeTooLarge { most }));
        }
        let most = SIZE_MIN / 4;
        assert_eq!(Layout::new(SIZE_MIN, 1024, Some(most + 1)), Err(Unfit::EntryMax { most }));
        assert!(Layout::new(SIZE_MIN, 1024, Some(most)).is_ok());
    }
}
