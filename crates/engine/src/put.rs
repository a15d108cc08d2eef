//! What goes with a put, and what an update decides.

use std::time::Duration;

/// What is stored beside key and value.
///
/// ```
/// use std::time::Duration;
/// use eyewall::{Options, PutOptions};
///
/// let cache = Options::new().heap()?;
/// let options = PutOptions::new().ttl(Duration::from_secs(60)).metadata(b"text/html");
/// cache.put_with("/", "<h1>Hello</h1>", &options)?;
/// # Ok::<(), eyewall::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct PutOptions<'a> {
    pub(crate) ttl: Option<Duration>,
    pub(crate) metadata: &'a [u8],
}

impl<'a> PutOptions<'a> {
    /// No expiry, no metadata.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long the entry is valid, by the wall clock, in whole milliseconds at the resolution of the kernel's tick (1 to
    /// 10 ms); below a millisecond the entry is stored and never found.
    ///
    /// A clock that is set back to before the put ends the entry. Set back less far, it prolongs the entry by as much.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Up to 65,535 bytes of the caller's own, stored before the value.
    pub fn metadata(mut self, metadata: &'a [u8]) -> Self {
        self.metadata = metadata;
        self
    }
}

/// What the closure of [`crate::Cache::update`] wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Leave the entry, or its absence, as it is.
    Keep,
    /// Store this value.
    Put(Vec<u8>),
    /// Remove the entry.
    Remove,
}

/// What became of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updated {
    /// The closure said [`Change::Keep`].
    Kept,
    /// Stored, under this serial.
    Stored(u64),
    /// Removed, or it was absent already.
    Removed,
    /// While the closure ran, somebody put, removed or cleared the entry without a claim: the update
    /// counts as done before that, and nothing is left of it.
    Superseded,
}
