//! For event loops: whether a hit can be read without waiting for storage, and reading it in on another thread.

use std::path::Path;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::format::hash::Place;
use crate::format::layout::BUCKET_BYTES;
use crate::format::record::HEADER_BYTES;
use crate::format::slot::Slot;
use crate::hit::Hit;
use crate::read::{self, Use, Wanted};
use crate::recently_resident::RecentlyResident;
use crate::stripe::{entry_at, locate};
use crate::volume::Volume;
use crate::write;

impl Cache {
    /// Whether the entry of `key` is in memory, so that a look-up and a read of its bytes don't wait for storage.
    /// `None` if there is no valid entry.
    ///
    /// The call itself waits for nothing, and leaves no trace in the entry's frequency or in the counters. It makes a
    /// few system calls (`mincore`), so a thread that may wait does better without it. It doesn't ask a tier, which
    /// may have a copy of an entry that the volume would have to read.
    ///
    /// *False* can also mean that the part of the index that knows whether there is an entry isn't in memory.
    ///
    /// The answer holds for a moment. The kernel may take pages away at any time, but rarely takes those that were
    /// just used. A volume in shared memory (tmpfs, or without a name) is in memory unless the machine swaps. A
    /// volume on the heap always counts as in memory. For a file that this user neither owns nor may write, Linux has
    /// reported everything as in memory since 5.2, so that users can't watch each other; there a *true* means
    /// nothing.
    ///
    /// An event loop asks first. If the answer is *false*, it lets a worker thread wait:
    ///
    /// ```
    /// use eyewall::{Cache, Options};
    ///
    /// fn answer(cache: &Cache, key: &str) -> eyewall::Result<()> {
    ///     match cache.is_resident(key)? {
    ///         Some(true) => respond(cache, key),
    ///         Some(false) => {
    ///             let (its, same) = (cache.clone(), key.to_owned());
    ///             let worker = std::thread::spawn(move || its.prefault(same).map(drop));
    ///             // A real loop serves other clients until the worker is done.
    ///             worker.join().expect("a worker doesn't panic")?;
    ///             respond(cache, key)
    ///         }
    ///         None => Ok(println!("make the answer")),
    ///     }
    /// }
    ///
    /// fn respond(cache: &Cache, key: &str) -> eyewall::Result<()> {
    ///     // A miss is still possible here: the entry may have gone meanwhile.
    ///     if let Some(hit) = cache.get(key)? {
    ///         println!("{} bytes", hit.len());
    ///     }
    ///     Ok(())
    /// }
    /// # let cache = Options::new().heap()?;
    /// # cache.put("/", "<h1>Hello</h1>")?;
    /// # answer(&cache, "/")?;
    /// # answer(&cache, "/absent")?;
    /// # Ok::<(), eyewall::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors about keys; [`Io`](Error::Io), [`Failed`](Error::Failed), [`Busy`](Error::Busy) as for
    /// [`Cache::get`].
    pub fn is_resident(&self, key: impl AsRef<[u8]>) -> Result<Option<bool>> {
        let key = key.as_ref();
        write::check_key(self.volume(), key)?;
        self.vouched(|volume| {
            let place = volume.place(key);
            match look(volume, &place)? {
                Look::Cold => Ok(Some(false)),
                Look::Nothing => Ok(None),
                Look::Warm => Ok(read::get(volume, key, Use::Peeks, Wanted::Any)?.map(|_| true)),
            }
        })
    }

    /// Like [`Cache::is_resident`], but cheap enough for each request of an event loop. An entry that was in memory
    /// less than a second ago is assumed to be there still, without asking the kernel, which takes pages last that
    /// were just used. Also true if there is no entry, and for files about which the kernel doesn't tell.
    ///
    /// The first call allocates 128 KiB to remember keys.
    pub fn is_likely_resident(&self, key: impl AsRef<[u8]>) -> bool {
        let key = key.as_ref();
        !self.is_on_storage()
            || self
                .volume()
                .recently_resident
                .get_or_init(RecentlyResident::default)
                .get_or_ask(key, || self.is_resident(key).is_ok_and(|is_resident| is_resident != Some(false)))
    }

    /// Whether reading from this volume may wait for storage: it is a file, and not on a file system in memory
    /// (tmpfs, ramfs, hugetlbfs). If false, there is no need to call [`Cache::is_resident`], except on a machine that
    /// swaps. Costs nothing.
    pub fn is_on_storage(&self) -> bool {
        self.volume().region.is_stored()
    }

    /// Reads the entry of `key` into memory, as far as it isn't there. Returns false if there is no valid one. It
    /// waits for storage: call it from a worker thread, after [`Cache::is_resident`] returned false. Leaves no trace,
    /// like that call.
    ///
    /// # Errors
    /// The errors about keys. [`Io`](Error::Io): an error of the storage, or a truncated file.
    /// [`Failed`](Error::Failed), [`Busy`](Error::Busy) as for [`Cache::get`].
    pub fn prefault(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        write::check_key(self.volume(), key)?;
        self.vouched(|volume| {
            let read_in = |offset: usize, bytes: usize| {
                volume.region.prefault(offset, bytes).map_err(|error| failed(volume, "reading into memory", error))
            };
            // Both buckets: a look-up that finds the entry in the first one doesn't touch the second.
            let place = volume.place(key);
            let buckets = volume.buckets(place.stripe);
            for pick in place.picks {
                read_in(volume.layout.bucket_at(place.stripe, buckets.of(pick)), BUCKET_BYTES as usize)?;
            }
            let Some(hit) = read::get(volume, key, Use::Peeks, Wanted::Any)? else { return Ok(false) };
            if let Some((offset, bytes)) = hit.span() {
                read_in(offset, bytes)?;
            }
            Ok(true)
        })
    }
}

impl Hit<'_> {
    /// Whether the bytes of the hit are in memory, so that reading them doesn't wait for storage.
    /// [`Cache::is_resident`] says what the answer is worth. Always true for a copy.
    ///
    /// # Errors
    /// [`Io`](Error::Io).
    pub fn is_resident(&self) -> Result<bool> {
        let Some((offset, bytes)) = self.span() else { return Ok(true) };
        is_resident(self.volume(), offset, bytes)
    }
}

/// What a look-up would find.
enum Look {
    /// A page that isn't in memory.
    Cold,
    /// No slot has the key's fingerprint.
    Nothing,
    /// Only pages that are in memory.
    Warm,
}

/// Touches no page before asking about it. The pages that every call touches (superblock, tables, the words of the
/// stripes) are assumed to be in memory.
fn look(volume: &Volume, place: &Place) -> Result<Look> {
    let buckets = volume.buckets(place.stripe);
    for pick in place.picks {
        if !is_resident(volume, volume.layout.bucket_at(place.stripe, buckets.of(pick)), BUCKET_BYTES as usize)? {
            return Ok(Look::Cold);
        }
    }
    let mut any = false;
    for which in 0..2 {
        for slot in volume.bucket(place, which, buckets) {
            let seen = Slot(slot.load(std::sync::atomic::Ordering::Acquire));
            let spot = seen.may_hold(place).then(|| locate(volume, place.stripe, seen.position())).flatten();
            let Some((offset, _)) = spot else { continue };
            if !is_resident(volume, offset, HEADER_BYTES as usize)? {
                return Ok(Look::Cold);
            }
            // The entry isn't pinned, so it may be another one by now; its lengths fit its ring in any case.
            let Some((_, lengths, _)) = entry_at(volume, place.stripe, seen.position()) else { continue };
            if !is_resident(volume, offset, lengths.record_bytes() as usize)? {
                return Ok(Look::Cold);
            }
            any = true;
        }
    }
    // After a step, the entry may be in another bucket, which may be cold; the next look tells.
    Ok(if any || !volume.has_still(place.stripe, buckets) { Look::Warm } else { Look::Nothing })
}

fn is_resident(volume: &Volume, offset: usize, bytes: usize) -> Result<bool> {
    volume.region.is_resident(offset, bytes).map_err(|error| failed(volume, "checking what is in memory of", error))
}

fn failed(volume: &Volume, what: &'static str, error: std::io::Error) -> Error {
    Error::io(what, volume.membership.path().unwrap_or_else(|| Path::new("an anonymous volume")), error)
}
