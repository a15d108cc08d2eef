//! Stored responses in a volume. The volume serves the layer, not the other way round: when it fails, everything is a miss, and
//! requests are answered all the same.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use eyewall::{
    Cache, Change, Committed, Epoch, FillOptions, Filling, Hit, Lookup, OwnedHit, Purge, PutOptions, Touch, Writer,
};
use eyewall_page_cache::blocking::Blocking;

use super::head::Head;

/// The smallest page of any kernel that Eyewall runs on.
const PAGE_BYTES: usize = 4096;
/// Pieces of so many bytes together are joined: a copy costs less than writing an entry piece by piece.
const JOINED_BYTES_MAX: usize = 64 << 10;
/// After so many purges by prefix the volume is swept before the next one. It remembers 64 of them, those of other programs
/// among them; what it is to remember beyond that purges more than was asked for.
const PREFIXES_MAX: u32 = 32;
/// What an entry takes beside key, metadata, tags and value, and each tag beside its own bytes, at most.
const ENTRY_BYTES: usize = 128;
const TAG_BYTES: usize = 16;

/// A response found in the volume.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) head: Head,
    /// Its time to live is over, or a soft purge meant it.
    pub(crate) is_stale: bool,
    hit: OwnedHit,
}

impl Found {
    /// The pinned value itself, without a copy; the pin goes with the last of its clones.
    pub(crate) fn value(self) -> Bytes {
        Bytes::from_owner(self.hit)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.hit.value()
    }
}

/// For how long an entry is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// It is fresh for this long; `None`: until it is evicted.
    pub(crate) fresh: Option<Duration>,
    /// It is of use for this long after that.
    pub(crate) stale: Duration,
}

impl Times {
    const FOR_GOOD: Self = Self { fresh: None, stale: Duration::ZERO };
}

/// The volume as the layer uses it.
#[derive(Debug)]
pub(crate) struct Store {
    cache: Cache,
    blocking: Blocking,
    /// Prefixes purged since the last sweep. Held while one is purged, so that no two come in for the last place.
    prefixes: Mutex<u32>,
}

impl Store {
    pub(crate) fn new(cache: Cache) -> Self {
        // Of those who used the volume before, nothing is known.
        Self { cache, blocking: Blocking::default(), prefixes: Mutex::new(PREFIXES_MAX) }
    }

    /// Now, as the volume's purges count, whoever makes them: what is stored later of what is asked for now loses to those that
    /// come from here on. None: the volume has failed, and nothing is stored in it.
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        self.cache.epoch().ok()
    }

    /// How long a value may be, beside such a key, head and tags. None: these are too long themselves.
    pub(crate) fn value_bytes_max(&self, key: &[u8], head: &Head, tags: &[String]) -> Option<u64> {
        let beside = key.len() + head.encode()?.len() + ENTRY_BYTES;
        let beside = beside + tags.iter().map(|tag| tag.len() + TAG_BYTES).sum::<usize>();
        self.cache.entry_bytes_max().checked_sub(beside as u64)
    }

    /// Whether a look-up of this key doesn't wait for storage.
    pub(crate) fn is_at_hand(&self, key: &[u8]) -> bool {
        self.cache.is_at_hand(key)
    }

    /// Whether a thread of the event loop may write what is short by itself, through [`Store::promptly`].
    pub(crate) fn is_prompt(&self) -> bool {
        self.blocking.is_prompt()
    }

    /// Writes on a thread of the event loop, and takes note of whether it had to wait.
    pub(crate) fn promptly<T>(&self, write: impl FnOnce() -> T) -> T {
        self.blocking.time(write)
    }

    /// Whether bytes of the volume were lost under its map. It is of no more use then: requests go past it.
    pub(crate) fn has_failed(&self) -> bool {
        self.cache.is_failed()
    }

    /// What is there for a key, fresh or stale.
    pub(crate) fn look(&self, key: &[u8]) -> Option<Found> {
        told(self.try_look(key)).flatten()
    }

    /// The same for who wants to know why there is nothing.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn try_look(&self, key: &[u8]) -> eyewall::Result<Option<Found>> {
        Ok(match self.cache.lookup(key)? {
            Lookup::Fresh(hit) => Self::found(hit, false),
            Lookup::Stale(hit) => Self::found(hit, true),
            Lookup::Negative(_) | Lookup::Miss => None,
        })
    }

    /// What is fresh for a key, without a trace in the volume.
    pub(crate) fn peek(&self, key: &[u8]) -> Option<Found> {
        self.cache.peek(key).ok().flatten().and_then(|hit| Self::found(hit, false))
    }

    /// What is there for a key, fresh or stale. Nothing is counted of what is fresh.
    pub(crate) fn glance(&self, key: &[u8]) -> Option<Found> {
        self.peek(key).or_else(|| self.look(key))
    }

    fn found(hit: Hit<'_>, is_stale: bool) -> Option<Found> {
        let found = Found { head: Head::decode(hit.metadata())?, is_stale, hit: hit.into_owned() };
        // The kernel, which copies the value to the socket, would cut the connection where bytes are lost, and tell nobody
        // else.
        let pages = found.bytes().iter().step_by(PAGE_BYTES).chain(found.bytes().last());
        std::hint::black_box(pages.fold(0, |sum, byte| sum ^ byte));
        found.hit.is_intact().then_some(found)
    }

    /// Stores a response that was asked for at `begun`, in pieces; it can wait for other writers, so that it has no place on an
    /// event loop, unless it is short and the volume prompt ([`Store::promptly`]). The serial of its entry; `None` if it couldn't
    /// be stored, or was purged since.
    pub(crate) fn keep(
        &self,
        key: &[u8],
        head: &Head,
        pieces: &[Bytes],
        times: Times,
        tags: &[&str],
        begun: Option<Epoch>,
    ) -> Option<u64> {
        let metadata = head.encode()?;
        let options = options(&metadata, times, tags).begun_in(begun?);
        let length: usize = pieces.iter().map(Bytes::len).sum();
        let written = match pieces {
            [piece] => self.cache.put_with(key, piece, &options).map(Some),
            _ if length <= JOINED_BYTES_MAX => self.cache.put_with(key, pieces.concat(), &options).map(Some),
            _ => self.write(key, &options, pieces, length as u64),
        };
        // A put doesn't say that it lost to a purge.
        told(written)?.filter(|_| self.epoch() == begun || self.has(key))
    }

    fn has(&self, key: &[u8]) -> bool {
        matches!(self.cache.lookup(key), Ok(Lookup::Fresh(_) | Lookup::Stale(_)))
    }

    fn write(
        &self,
        key: &[u8],
        options: &PutOptions<'_>,
        pieces: &[Bytes],
        length: u64,
    ) -> eyewall::Result<Option<u64>> {
        let mut writer = self.cache.writer(key, options, Some(length))?;
        for piece in pieces {
            if writer.write_all(piece).is_err() {
                // Its commit says why.
                break;
            }
        }
        writer.commit().map(|committed| match committed {
            Committed::Stored(serial) => Some(serial),
            Committed::Superseded => None,
        })
    }

    /// The right to a key, which one has at a time over all threads and processes, as long as what comes is held. For up to `wait`, and
    /// while it is wanted, it waits for who has it.
    ///
    /// # Errors
    /// [`Busy`](eyewall::Error::Busy): somebody has it still. Those of the engine.
    pub(crate) fn claim(
        &self,
        key: &[u8],
        wait: Duration,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> eyewall::Result<Option<Writer>> {
        match self.cache.begin_fill(key, wait, &FillOptions::new().wait_while(is_wanted))? {
            // It is never committed, and so only holds the claim.
            Filling::Ours(flight) => flight.into_writer(&PutOptions::new(), Some(0)).map(Some),
            Filling::Found(_) => Ok(None),
        }
    }

    /// Changes the signpost of a key, one after the other of all who do; `change` gets the present one.
    pub(crate) fn change(&self, key: &[u8], tags: &[&str], change: impl FnOnce(Option<&[u8]>) -> Vec<u8>) -> bool {
        let head = Head::of_signpost();
        let Some(metadata) = head.encode() else { return false };
        // A soft purge has meant it, too. What it says is right all the same; a response stays stale.
        if self.cache.peek(key).is_ok_and(|hit| hit.is_none())
            && let Ok(Lookup::Stale(hit)) = self.cache.lookup(key)
            && Head::decode(hit.metadata()).as_ref() == Some(&head)
        {
            told(self.cache.touch(key, &Touch::new().ttl(None, Duration::ZERO).if_serial(hit.serial())));
        }
        let changed = self.cache.update(key, &options(&metadata, Times::FOR_GOOD, tags), |hit| {
            let present = hit.filter(|hit| Head::decode(hit.metadata()).as_ref() == Some(&head));
            Change::Put(change(present.map(Hit::value)))
        });
        told(changed).is_some()
    }

    /// Gives the entry that was found for a key the head that `found` has by now, and other times; its value stays. That they
    /// are right was learnt at `begun`. False: it isn't there any more, and what is in its place has a head of its own.
    pub(crate) fn renew(&self, key: &[u8], found: &Found, times: Times, begun: Option<Epoch>) -> bool {
        let (Some(metadata), Some(begun)) = (found.head.encode(), begun) else { return false };
        let touch = Touch::new().metadata(&metadata).ttl(times.fresh, times.stale).if_serial(found.hit.serial());
        told(self.cache.touch(key, &touch.begun_in(begun))).unwrap_or(false)
    }

    /// Removes what was found for a key, and nothing that has taken its place.
    pub(crate) fn remove_found(&self, key: &[u8], found: &Found) {
        self.remove_version(key, found.hit.serial());
    }

    /// Removes the entry of this serial.
    pub(crate) fn remove_version(&self, key: &[u8], serial: u64) {
        told(self.cache.remove_if(key, serial));
    }

    /// True: there was a usable one.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn try_remove(&self, key: &[u8]) -> eyewall::Result<bool> {
        self.cache.remove(key)
    }

    /// Makes what was found for a key stale; it may be used for as long as before. False: it isn't there any more.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn soften(&self, key: &[u8], found: &Found) -> eyewall::Result<bool> {
        if found.is_stale {
            return Ok(true);
        }
        let stale = found.hit.usable_left().unwrap_or(Duration::MAX);
        self.cache.touch(key, &Touch::new().ttl(Some(Duration::ZERO), stale))
    }

    /// Purges what carries a tag.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn purge_tag(&self, tag: &str, kind: Purge) -> eyewall::Result<()> {
        self.cache.purge_tag(tag, kind)
    }

    /// Purges keys that begin so. It can take seconds, where the volume has to be swept for it.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn purge_prefix(&self, prefix: &str, kind: Purge) -> eyewall::Result<()> {
        let mut prefixes = self.prefixes.lock().unwrap_or_else(PoisonError::into_inner);
        if *prefixes >= PREFIXES_MAX {
            self.cache.sweep()?;
            *prefixes = 0;
        }
        *prefixes += 1;
        self.cache.purge_prefix(prefix, kind)
    }
}

/// The outcome, without the error, which is told to who reads the log.
pub(crate) fn told<T>(outcome: eyewall::Result<T>) -> Option<T> {
    match outcome {
        Ok(done) => Some(done),
        Err(error) => {
            tracing::debug!(%error, "the cache of responses did without its volume");
            None
        }
    }
}

fn options<'a>(metadata: &'a [u8], times: Times, tags: &'a [&'a str]) -> PutOptions<'a> {
    let options = PutOptions::new().metadata(metadata).tags(tags);
    match times.fresh {
        Some(fresh) => options.ttl(fresh).stale(times.stale),
        None => options,
    }
}

#[cfg(test)]
mod tests {
    use eyewall::Options;
    use eyewall_http::terms::{TERMS_BYTES, Terms};
    use http::{HeaderMap, StatusCode};

    use super::super::head::Kind;
    use super::*;

    #[test]
    fn a_response_that_was_purged_softly_stays_stale_where_a_signpost_takes_its_place() {
        let store = Store::new(Options::new().size(4 << 20).heap().unwrap());
        let kind = Kind::Response(Terms::from_bytes([0; TERMS_BYTES]).unwrap(), HeaderMap::new());
        let head = Head { kind, status: StatusCode::OK, fields: HeaderMap::new() };
        let times = Times { fresh: Some(Duration::from_mins(1)), stale: Duration::from_mins(1) };
        store.keep(b"key", &head, &[Bytes::from_static(b"old")], times, &["tag"], store.epoch()).unwrap();
        store.purge_tag("tag", Purge::Soft).unwrap();
        let is_stale = || store.look(b"key").is_some_and(|found| found.is_stale);
        assert!(is_stale());
        let is_changed = store.change(b"key", &[], |present| {
            assert!(present.is_none() && is_stale(), "others find it until the signpost is there");
            b"generation".to_vec()
        });
        assert!(is_changed && store.look(b"key").is_some_and(|found| found.head == Head::of_signpost()));
        // A signpost that was meant, too, is still right.
        assert!(store.change(b"key", &["tag"], |_| b"generation".to_vec()));
        store.purge_tag("tag", Purge::Soft).unwrap();
        assert!(store.change(b"key", &["tag"], |present| present.unwrap().to_vec()));
    }
}
