//! For event loops: whether a hit can be read without waiting for storage, and reading it in elsewhere.

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
    /// Whether the entry of `key` lies in memory, so that a look-up of it and its bytes don't wait for storage; `None` if
    /// there is no valid entry. Waits for nothing itself, and leaves no trace: neither in the entry's frequency nor in
    /// the counters. It costs a few system calls (`mincore`), so that a thread that may wait does without.
    ///
    /// A tier isn't asked: it may have a copy of what the volume would have to read.
    ///
    /// *No* can also mean that what would tell whether there is an entry isn't in memory itself.
    ///
    /// The answer is about a moment: the kernel may take pages away at any time, which it rarely does with what was just
    /// used. A volume in shared memory (tmpfs, or without a name) is in memory unless the machine swaps; one in the heap
    /// always counts as if it were. Of a file that this user neither owns nor may write, Linux says that all of it is in
    /// memory, since 5.2, so that users can't watch each other: there a *yes* means nothing.
    ///
    /// An event loop asks first, and has a worker thread wait where it must:
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
    ///             // A real loop goes on with other clients, and hears of the worker's end.
    ///             worker.join().expect("a worker doesn't panic")?;
    ///             respond(cache, key)
    ///         }
    ///         None => Ok(println!("make it anew")),
    ///     }
    /// }
    ///
    /// fn respond(cache: &Cache, key: &str) -> eyewall::Result<()> {
    ///     // The loop may have been late: a miss is possible here, too.
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
    /// The key's errors; [`Io`](Error::Io), [`Failed`](Error::Failed), [`Busy`](Error::Busy) as for [`Cache::get`].
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

    /// [`Cache::is_resident`] for each request of an event loop: what was in memory less than a second ago is taken to be there yet,
    /// without asking the kernel, which takes pages that were just used last of all. True also where there is no entry, and where
    /// the kernel doesn't say.
    ///
    /// The first call takes 128 KiB to remember keys by.
    pub fn is_likely_resident(&self, key: impl AsRef<[u8]>) -> bool {
        let key = key.as_ref();
        !self.is_on_storage()
            || self
                .volume()
                .recently_resident
                .get_or_init(RecentlyResident::default)
                .get_or_ask(key, || self.is_resident(key).is_ok_and(|is_resident| is_resident != Some(false)))
    }

    /// Whether reading from this volume may wait for storage: it is a file, and not one of a file system in memory (tmpfs, ramfs,
    /// hugetlbfs). Where not, [`Cache::is_resident`] needn't be asked, swapping aside. Costs nothing.
    pub fn is_on_storage(&self) -> bool {
        self.volume().region.is_stored()
    }

    /// Reads the entry of `key` into memory as far as it isn't there; false if there is no valid one. Waits for storage: it
    /// is for a worker thread, after [`Cache::is_resident`] said no. Leaves no trace, as that.
    ///
    /// # Errors
    /// The key's errors; [`Io`](Error::Io): the storage's error, or a truncated file; [`Failed`](Error::Failed),
    /// [`Busy`](Error::Busy) as for [`Cache::get`].
    pub fn prefault(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        write::check_key(self.volume(), key)?;
        self.vouched(|volume| {
            let read_in = |offset: usize, bytes: usize| {
                volume.region.prefault(offset, bytes).map_err(|error| failed(volume, "reading in", error))
            };
            // Both buckets: a look-up that finds the entry in the first doesn't touch the second.
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
    /// Whether the hit's bytes lie in memory, so that reading them doesn't wait for storage; see [`Cache::is_resident`] for
    /// what the answer is worth. A copy's always do.
    ///
    /// # Errors
    /// [`Io`](Error::Io).
    pub fn is_resident(&self) -> Result<bool> {
        let Some((offset, bytes)) = self.span() else { return Ok(true) };
        is_resident(self.volume(), offset, bytes)
    }
}

/// What a look-up would meet.
enum Look {
    /// It would wait for storage.
    Cold,
    /// No slot has the key's fingerprint.
    Nothing,
    /// All that it would read is in memory.
    Warm,
}

/// Touches no page that it hasn't asked about. What every call touches (superblock, tables, the words of the stripes) is
/// taken to be in memory.
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
            // Without a pin, so that the entry may be another one by now: its lengths are one that fits its ring.
            let Some((_, lengths, _)) = entry_at(volume, place.stripe, seen.position()) else { continue };
            if !is_resident(volume, offset, lengths.record_bytes() as usize)? {
                return Ok(Look::Cold);
            }
            any = true;
        }
    }
    // After a step it may be in another bucket, which may be cold: said by the next look.
    Ok(if any || !volume.has_still(place.stripe, buckets) { Look::Warm } else { Look::Nothing })
}

fn is_resident(volume: &Volume, offset: usize, bytes: usize) -> Result<bool> {
    volume.region.is_resident(offset, bytes).map_err(|error| failed(volume, "asking what is in memory of", error))
}

fn failed(volume: &Volume, what: &'static str, error: std::io::Error) -> Error {
    Error::io(what, volume.membership.path().unwrap_or_else(|| Path::new("an anonymous volume")), error)
}
