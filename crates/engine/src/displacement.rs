//! What a put would push out, for callers that may leave a value unstored: gateways and file servers.

use crate::cache::Cache;
use crate::error::Result;
use crate::read::{self, Use, Wanted};
use crate::sketch;
use crate::stats;
use crate::stripe::Stripe;
use crate::volume::Volume;
use crate::write::check_key;

/// A value above this part of the volume displaces much.
const MUCH: u64 = 32;
/// A volume displaces little before so much of its size has been written.
const WRITTEN: u64 = 2;

impl Cache {
    /// Whether a put of this value would displace much for a key that was asked for only once.
    ///
    /// A put stores what it is given, and evicts other entries for it. A caller that needn't store each value, such as a gateway, may
    /// ask this first. If the answer is yes, it doesn't store the value, and calls [`Cache::note_request`]: the next request for
    /// the key is then its second one.
    ///
    /// True if all of this holds:
    ///
    /// - The value takes more than 1/32 of the volume.
    /// - Half as many bytes as the volume has were put into it since it was created, or resized.
    /// - No entry of the key exists, fresh or stale.
    /// - The volume remembers no earlier request for the key: no put after a miss, no request that was noted, and no
    ///   eviction of its entry. It remembers some requests for each entry that it has, and forgets the others.
    ///
    /// False also if the volume remembers nothing because it can't be written or has failed, or if the key is none.
    ///
    /// For smaller values, the call costs a comparison. For larger ones, it reads two words for each stripe, and some
    /// cache lines of the index. It takes no lock and leaves no trace.
    ///
    /// ```
    /// use eyewall::Options;
    ///
    /// let cache = Options::new().size(1 << 20).heap()?;
    /// assert!(!cache.displaces_much("/film", 40_000), "there is room");
    /// for page in 0..80 {
    ///     cache.put(format!("/page/{page}"), [0; 8000])?;
    /// }
    /// assert!(cache.displaces_much("/film", 40_000));
    /// cache.note_request("/film");
    /// assert!(!cache.displaces_much("/film", 40_000), "this is the second request");
    /// # Ok::<(), eyewall::Error>(())
    /// ```
    pub fn displaces_much(&self, key: impl AsRef<[u8]>, value_bytes: u64) -> bool {
        let key = key.as_ref();
        if value_bytes <= self.volume().layout.size / MUCH {
            return false;
        }
        self.vouched(|volume| displaces_much(volume, key)).unwrap_or(false)
    }

    /// Counts a request for a key whose value isn't put ([`Cache::displaces_much`]). Writes a cache line, and takes no
    /// lock. Does nothing if the volume can't be written or has failed, or if the key is none.
    pub fn note_request(&self, key: impl AsRef<[u8]>) {
        let key = key.as_ref();
        let noted = self.vouched(|volume| {
            check_key(volume, key)?;
            volume.check_writable()?;
            sketch::note(volume, &volume.place(key));
            Ok(())
        });
        // A lost note costs one more request.
        drop(noted);
    }
}

fn displaces_much(volume: &Volume, key: &[u8]) -> Result<bool> {
    check_key(volume, key)?;
    volume.check_writable()?;
    if stats::written(volume).bytes < volume.layout.size / WRITTEN {
        return Ok(false);
    }
    let place = volume.place(key);
    let was_asked_for = sketch::requests(volume, &place).is_none_or(|requests| requests > 0);
    // A ghost that changes meanwhile is seen as it was before or after.
    if was_asked_for || Stripe::unlocked(volume, place.stripe).is_remembered(&place) {
        return Ok(false);
    }
    Ok(read::get_checked(volume, key, Use::Peeks, Wanted::Any)?.is_none())
}
