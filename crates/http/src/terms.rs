//! The part of a stored response that decides about its reuse: a few fixed bytes, so that a hit parses no field.

use std::ops::BitOr;
use std::time::{Duration, SystemTime};

use crate::age;

/// The length of [`Terms`] as bytes.
pub const TERMS_BYTES: usize = 36;

/// The terms of a stored response's reuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// When the response was received, in milliseconds since 1970.
    pub received_ms: u64,
    /// Its age at that time, in milliseconds.
    pub initial_age_ms: u64,
    /// The age up to which it is fresh.
    pub lifetime_seconds: u32,
    /// How long it was stale already when the origin made it.
    pub overdue_seconds: u32,
    /// How long it may have been stale while the cache revalidates it in the background; 0: not at all.
    pub stale_while_revalidate_seconds: u32,
    /// How long it may have been stale if the origin fails; 0: not at all.
    pub stale_if_error_seconds: u32,
    /// Further conditions.
    pub marks: Marks,
}

/// A set of properties of a stored response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks(u32);

impl Marks {
    /// No property.
    pub const NONE: Self = Self(0);
    /// It is never sent without validation.
    pub const NO_CACHE: Self = Self(1);
    /// It is never sent when stale.
    pub const FORBIDS_STALE: Self = Self(1 << 1);
    /// It doesn't change while it is fresh (RFC 8246).
    pub const IMMUTABLE: Self = Self(1 << 2);
    /// It has an `ETag` or a `Last-Modified`, so the cache can revalidate it.
    pub const HAS_VALIDATOR: Self = Self(1 << 3);
    /// It is part of a representation (206).
    pub const PARTIAL: Self = Self(1 << 4);

    const ALL: u32 = (1 << 5) - 1;

    /// Whether all of `marks` are in the set.
    pub fn contains(self, marks: Self) -> bool {
        self.0 & marks.0 == marks.0
    }

    /// These marks if `condition` is true, else none.
    pub fn when(self, condition: bool) -> Self {
        if condition { self } else { Self::NONE }
    }
}

impl BitOr for Marks {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Terms {
    /// `current_age` (RFC 9111, section 4.2.3). A clock that went back counts as stopped.
    pub fn age(&self, now: SystemTime) -> Duration {
        let resident = milliseconds(now).saturating_sub(self.received_ms);
        age::current(Duration::from_millis(self.initial_age_ms), Duration::from_millis(resident))
    }

    /// How long it stays fresh from `now` on; zero if it is stale.
    pub fn fresh_for(&self, now: SystemTime) -> Duration {
        Duration::from_secs(self.lifetime_seconds.into()).saturating_sub(self.age(now))
    }

    /// How long it has been stale at `now`; zero while it is fresh.
    pub fn stale_for(&self, now: SystemTime) -> Duration {
        let lifetime = Duration::from_secs(self.lifetime_seconds.into());
        self.age(now).saturating_sub(lifetime).saturating_add(Duration::from_secs(self.overdue_seconds.into()))
    }

    /// Little-endian: time of receipt, initial age, lifetime, overdue, the two windows, the marks.
    pub fn to_bytes(&self) -> [u8; TERMS_BYTES] {
        let mut bytes = [0; TERMS_BYTES];
        bytes[..8].copy_from_slice(&self.received_ms.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.initial_age_ms.to_le_bytes());
        let words = [
            self.lifetime_seconds,
            self.overdue_seconds,
            self.stale_while_revalidate_seconds,
            self.stale_if_error_seconds,
            self.marks.0,
        ];
        for (place, word) in bytes[16..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// `None` for bytes with marks that this version doesn't know.
    pub fn from_bytes(bytes: [u8; TERMS_BYTES]) -> Option<Self> {
        let (longs, words) = bytes.split_at(16);
        let (longs, _) = longs.as_chunks::<8>();
        let (words, _) = words.as_chunks::<4>();
        let [received, initial_age] = longs else { return None };
        let [lifetime, overdue, stale_while_revalidate, stale_if_error, marks] = words else { return None };
        let marks = u32::from_le_bytes(*marks);
        (marks & !Marks::ALL == 0).then(|| Self {
            received_ms: u64::from_le_bytes(*received),
            initial_age_ms: u64::from_le_bytes(*initial_age),
            lifetime_seconds: u32::from_le_bytes(*lifetime),
            overdue_seconds: u32::from_le_bytes(*overdue),
            stale_while_revalidate_seconds: u32::from_le_bytes(*stale_while_revalidate),
            stale_if_error_seconds: u32::from_le_bytes(*stale_if_error),
            marks: Marks(marks),
        })
    }
}

/// Milliseconds since 1970, 0 for times before.
pub(crate) fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
