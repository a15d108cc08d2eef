//! Stored responses in a volume. The volume serves the server, not the other way round: when it fails, everything is a
//! miss, and requests are answered all the same.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use eyewall::{Cache, Hit, OwnedHit, PutOptions};

use super::head::Head;

/// The smallest page of any kernel that Eyewall runs on.
const PAGE_BYTES: usize = 4096;

/// A response found in the volume.
pub(crate) struct Found {
    pub(crate) head: Head,
    hit: OwnedHit,
}

impl Found {
    /// The pinned value itself, without a copy; the pin goes with the last of its clones.
    pub(crate) fn value(self) -> Bytes {
        Bytes::from_owner(self.hit)
    }

    /// How old the response is, the time before it was stored included.
    pub(crate) fn age(&self) -> Duration {
        Duration::from_secs(self.head.age_seconds.into()) + self.hit.age()
    }

    pub(crate) fn ttl_left(&self) -> Option<Duration> {
        self.hit.ttl_left()
    }
}

/// The volume as the server uses it.
pub(crate) struct Store {
    cache: Cache,
    /// Whether a failure was told already: one line is news, one line a request is none. A race tells it twice.
    has_warned: AtomicBool,
    /// The same of its end: what was told before may be of less weight.
    has_told_the_end: AtomicBool,
}

impl Store {
    pub(crate) fn new(cache: Cache) -> Self {
        Self { cache, has_warned: AtomicBool::new(false), has_told_the_end: AtomicBool::new(false) }
    }

    pub(crate) fn entry_bytes_max(&self) -> u64 {
        self.cache.entry_bytes_max()
    }

    /// Whether bytes of the volume were lost under its map. It is of no more use then: requests go past it.
    pub(crate) fn has_failed(&self) -> bool {
        self.cache.is_failed()
    }

    pub(crate) fn find(&self, key: &[u8]) -> Option<Found> {
        self.found(self.cache.get(key))
    }

    /// As [`Store::find`], but leaves no trace in the volume.
    pub(crate) fn peek(&self, key: &[u8]) -> Option<Found> {
        self.found(self.cache.peek(key))
    }

    fn found(&self, answer: eyewall::Result<Option<Hit<'_>>>) -> Option<Found> {
        match answer {
            Ok(hit) => {
                let found =
                    hit.and_then(|hit| Some(Found { head: Head::decode(hit.metadata())?, hit: hit.into_owned() }))?;
                // The kernel, which copies the value to the socket, would cut the connection where bytes are lost, and
                // tell nobody else.
                touch(&found.hit);
                // Another look says why.
                if found.hit.is_intact() { Some(found) } else { self.peek(b"any") }
            }
            Err(eyewall::Error::KeyTooLong { .. }) => None,
            Err(error) => {
                self.warn(&error, "reading");
                None
            }
        }
    }

    /// Stores a response; it can wait for other writers, so that it has no place on a thread that serves clients.
    pub(crate) fn keep(&self, key: &[u8], head: &Head, value: &[u8], ttl: Option<Duration>) {
        let Some(metadata) = head.encode() else { return };
        let mut options = PutOptions::new().metadata(&metadata);
        if let Some(ttl) = ttl {
            options = options.ttl(ttl);
        }
        match self.cache.put_with(key, value, &options) {
            Ok(_) => {}
            Err(error @ (eyewall::Error::EntryTooLarge { .. } | eyewall::Error::KeyTooLong { .. })) => {
                tracing::debug!(%error, "a response was not stored");
            }
            Err(error) => self.warn(&error, "writing"),
        }
    }

    fn warn(&self, error: &eyewall::Error, doing: &str) {
        if matches!(error, eyewall::Error::Failed { .. }) {
            if !self.has_told_the_end.swap(true, Ordering::Relaxed) {
                tracing::error!(%error, "answering without the volume until this server is started again (told once)");
            }
        } else if self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::debug!(%error, "{doing} the volume failed");
        } else {
            tracing::warn!(%error, "{doing} the volume failed; answering without it (told once)");
        }
    }
}

/// Reads a byte of each page.
fn touch(value: &[u8]) {
    let bytes = value.iter().step_by(PAGE_BYTES).chain(value.last());
    std::hint::black_box(bytes.fold(0, |sum, byte| sum ^ byte));
}
