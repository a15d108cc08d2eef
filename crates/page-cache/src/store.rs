//! Stored responses in a volume. When the volume fails, every request is a miss, and requests are still answered.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use eyewall::{
    Cache, Change, Committed, Epoch, FillOptions, Filling, Hit, Lookup, OwnedHit, Purge, PutOptions, Scrub, ScrubTurn,
    Touch, Writer,
};
use http::StatusCode;

use crate::blocking::Blocking;
use crate::head::{Head, Kind};
use crate::sweeper::Sweeper;

/// The smallest page of any kernel that Eyewall runs on.
const PAGE_BYTES: usize = 4096;
/// Pieces of at most this many bytes together are joined: a copy costs less than to write an entry piece by piece.
const JOINED_BYTES_MAX: usize = 64 << 10;
/// After this many purges by prefix the volume is swept before the next one. It remembers 64 of them, including those of other
/// processes. Beyond that, it would purge more than was asked for.
const PREFIXES_MAX: u32 = 32;
/// The bytes of an entry without key, metadata and value, with a margin.
const ENTRY_BYTES: usize = 64;
/// The bytes of a tag without its name.
const TAG_BYTES: usize = 9;

/// A response found in the volume.
#[derive(Debug)]
pub struct Found {
    /// The head as it was stored, or renewed since.
    pub head: Head,
    /// Its time to live has passed, or a soft purge has made it stale.
    pub is_stale: bool,
    hit: OwnedHit,
}

impl Found {
    /// The pinned value itself, without a copy. The pin is released with the last clone.
    pub fn value(self) -> Bytes {
        Bytes::from_owner(self.hit)
    }

    /// How much longer it may be used, fresh or stale. `None`: until it is evicted.
    pub fn usable_left(&self) -> Option<Duration> {
        self.hit.usable_left()
    }

    /// Whether no byte of it was lost up to now.
    pub(crate) fn is_intact(&self) -> bool {
        self.hit.is_intact()
    }

    /// The value in place.
    pub fn bytes(&self) -> &[u8] {
        self.hit.value()
    }

    /// The tags by which it is purged together with others.
    pub fn tags(&self) -> Vec<String> {
        self.hit.tags().map(str::to_owned).collect()
    }
}

/// The result of a look-up.
#[derive(Debug)]
pub enum LookupResult {
    /// A response, or a vary index that leads to several.
    Found(Found),
    /// The origin failed with this status. The failure is remembered for this much longer.
    Failure(StatusCode, Duration),
    /// Nothing, or an entry without a head of this version.
    Nothing,
}

impl LookupResult {
    fn of(found: Option<Found>) -> Self {
        found.map_or(Self::Nothing, Self::Found)
    }

    /// The entry, unless it is a remembered failure.
    pub fn found(self) -> Option<Found> {
        match self {
            Self::Found(found) => Some(found),
            Self::Failure(..) | Self::Nothing => None,
        }
    }
}

/// How long an entry is kept.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// It is fresh for this long. `None`: until it is evicted.
    pub fresh: Option<Duration>,
    /// It is kept stale for this long after that.
    pub stale: Duration,
}

impl Times {
    /// Fresh until it is evicted.
    pub const FOR_GOOD: Self = Self { fresh: None, stale: Duration::ZERO };
}

/// What a purge covers.
#[derive(Debug, Clone, Copy)]
pub enum PurgeTarget<'a> {
    /// Entries with this tag.
    Tag(&'a str),
    /// Keys with this prefix.
    Prefix(&'a [u8]),
    /// All entries of the volume, including those of other programs.
    Everything,
}

/// The volume as a page cache uses it.
#[derive(Debug)]
pub struct Store {
    cache: Cache,
    blocking: Blocking,
    /// Prefixes purged since the last sweep. The lock is held during a purge, so that no two purges take the last place.
    prefixes: Mutex<u32>,
    /// Told when there are so many purges that the volume should be swept.
    sweeper: Sweeper,
    /// Whether a failure has been logged. One line is enough; a race logs two.
    has_warned: AtomicBool,
    /// Whether the end of the volume has been logged. An earlier line may be of less weight.
    has_told_the_end: AtomicBool,
}

impl Store {
    /// A store on this volume, which other programs may use, too.
    pub fn new(cache: Cache) -> Self {
        Self {
            cache,
            blocking: Blocking::default(),
            // The purges before this process are unknown, so the first purge by prefix sweeps.
            prefixes: Mutex::new(PREFIXES_MAX),
            sweeper: Sweeper::default(),
            has_warned: AtomicBool::new(false),
            has_told_the_end: AtomicBool::new(false),
        }
    }

    /// The greatest length of an entry, including key and head.
    pub fn entry_bytes_max(&self) -> u64 {
        self.cache.entry_bytes_max()
    }

    /// The greatest length of a value with this key, head and tags. None: these are already too long.
    pub fn value_bytes_max(&self, key: &[u8], head: &Head, tags: &[String]) -> Option<u64> {
        let beside = key.len() + head.encode()?.len() + ENTRY_BYTES;
        let beside = beside + tags.iter().map(|tag| tag.len() + TAG_BYTES).sum::<usize>();
        self.cache.entry_bytes_max().checked_sub(beside as u64)
    }

    /// Whether a body of this length would displace much for a key that was asked for only once. Notes that request.
    pub fn is_asked_once(&self, key: &[u8], bytes: u64) -> bool {
        let is_asked_once = self.cache.displaces_much(key, bytes);
        if is_asked_once {
            self.cache.note_request(key);
        }
        is_asked_once
    }

    /// The present epoch of the volume's purges, from any process. Ask for it before the upstream is asked: an entry that is stored
    /// later loses to every purge from here on. None: the volume has failed, and stores nothing.
    pub fn epoch(&self) -> Option<Epoch> {
        self.cache.epoch().ok()
    }

    /// The size of the volume.
    pub fn size(&self) -> u64 {
        self.cache.size()
    }

    /// Whether a look-up of this key takes no wait for storage.
    #[inline]
    pub fn is_likely_resident(&self, key: &[u8]) -> bool {
        self.cache.is_likely_resident(key)
    }

    /// Whether a thread that serves clients may make short writes itself, through [`Store::write_inline`].
    pub fn allows_inline_writes(&self) -> bool {
        self.blocking.allows_inline_writes()
    }

    /// Writes on a thread that serves clients, and notes whether it had to wait.
    pub fn write_inline<T>(&self, write: impl FnOnce() -> T) -> T {
        self.blocking.time(write)
    }

    /// The entry of a key if it is fresh and `takes` accepts it. Otherwise the look-up is not counted.
    pub fn hit_if(&self, key: &[u8], takes: impl Fn(&Hit<'_>) -> bool) -> Option<Hit<'_>> {
        self.cache.get_if(key, takes).ok().flatten()
    }

    /// Reads bytes of the volume that the kernel could not read. Only a process that reads lost bytes learns that they are lost.
    pub fn notice_loss(&self, value: &[u8]) {
        read(value);
        if let Err(error) = self.cache.peek(b"any") {
            self.warn(&error, "reading");
        }
    }

    /// Checks that the volume's header is intact.
    pub fn check_header(&self) {
        self.logged(self.cache.check_header());
    }

    /// The turn to scrub the volume in the background, unless another process has it.
    pub fn scrub_turn(&self) -> Option<ScrubTurn> {
        self.logged(self.cache.scrub_turn()).flatten()
    }

    /// Continues a pass over the volume. `None`: it can't continue now.
    pub fn scrub(&self, pass: &mut Scrub) -> Option<bool> {
        self.logged(self.cache.scrub(pass))
    }

    /// Whether the volume has failed: bytes under its map were lost, or its header was overwritten. Then requests bypass it.
    pub fn has_failed(&self) -> bool {
        self.cache.is_failed()
    }

    /// How many volumes of this store have failed so far, those before a resize included. If the count grows while bytes are read, the bytes
    /// may be wrong.
    pub fn failures(&self) -> usize {
        self.cache.failures()
    }

    /// The entry of a key, fresh or stale.
    pub fn find(&self, key: &[u8]) -> Option<Found> {
        self.look(key).found()
    }

    /// The entry of a key, fresh or stale, or a remembered failure.
    pub fn look(&self, key: &[u8]) -> LookupResult {
        match self.try_look(key) {
            Ok(looked) => looked,
            Err(eyewall::Error::KeyTooLong { .. }) => LookupResult::Nothing,
            Err(error) => {
                self.warn(&error, "reading");
                LookupResult::Nothing
            }
        }
    }

    /// The same, with the reason if there is nothing.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn try_look(&self, key: &[u8]) -> eyewall::Result<LookupResult> {
        Ok(self.result_of(self.cache.lookup(key)?))
    }

    fn result_of(&self, looked: Lookup<'_>) -> LookupResult {
        match looked {
            Lookup::Fresh(hit) => LookupResult::of(self.found(hit, false)),
            Lookup::Stale(hit) => LookupResult::of(self.found(hit, true)),
            Lookup::Negative(hit) => {
                let status = hit.reason().and_then(|reason| StatusCode::from_u16(reason).ok());
                status.map_or(LookupResult::Nothing, |status| {
                    LookupResult::Failure(status, hit.ttl_left().unwrap_or_default())
                })
            }
            Lookup::Miss => LookupResult::Nothing,
        }
    }

    /// Whether a key has an entry, fresh or stale, whose head satisfies `is_so`. Doesn't read the value.
    pub fn has(&self, key: &[u8], is_so: impl FnOnce(&Head) -> bool) -> bool {
        let hit = match self.cache.peek_any(key) {
            Ok(Lookup::Fresh(hit) | Lookup::Stale(hit)) => Some(hit),
            _ => None,
        };
        hit.and_then(|hit| Head::decode(hit.metadata())).is_some_and(|head| is_so(&head))
    }

    /// Remembers a failure in a few bytes. As [`Store::keep`] does, it can wait for other writers, and returns the entry's serial.
    pub fn keep_failure(
        &self,
        key: &[u8],
        status: StatusCode,
        ttl: Duration,
        tags: &[&str],
        begun: Option<Epoch>,
    ) -> Option<u64> {
        let options = begun_in(PutOptions::new().ttl(ttl).tags(tags), begun);
        self.logged(self.cache.put_negative(key, status.as_u16(), &options))
    }

    /// The fresh entry of a key. The look-up leaves no trace in the volume.
    pub fn peek(&self, key: &[u8]) -> LookupResult {
        LookupResult::of(self.cache.peek(key).ok().flatten().and_then(|hit| self.found(hit, false)))
    }

    /// How often the fresh entry of a key was asked for, as [`Cache::uses`] counts. The look-up leaves no trace.
    pub fn uses(&self, key: &[u8]) -> Option<u8> {
        self.cache.uses(key).ok().flatten()
    }

    /// How often a key was asked for and then stored, as [`Cache::remembered_requests`] says. The look-up leaves no trace.
    pub fn remembered_requests(&self, key: &[u8]) -> Option<u64> {
        self.cache.remembered_requests(key).ok().flatten()
    }

    /// The entry of a key, fresh or stale, or a remembered failure. The look-up leaves no trace.
    pub fn glance(&self, key: &[u8]) -> LookupResult {
        self.cache.peek_any(key).map_or(LookupResult::Nothing, |looked| self.result_of(looked))
    }

    /// The pinned value of an entry. None: bytes of it were lost.
    pub(crate) fn intact(&self, hit: Hit<'_>) -> Option<Bytes> {
        let hit = hit.into_owned();
        read(hit.value());
        if hit.is_intact() {
            return Some(Bytes::from_owner(hit));
        }
        self.notice_loss(&[]);
        None
    }

    fn found(&self, hit: Hit<'_>, is_stale: bool) -> Option<Found> {
        let found = Found { head: Head::decode(hit.metadata())?, is_stale, hit: hit.into_owned() };
        // The kernel copies the value to the socket. If bytes were lost, it would close the connection and report that to nobody
        // else.
        read(found.bytes());
        if found.hit.is_intact() {
            return Some(found);
        }
        self.notice_loss(&[]);
        None
    }

    /// Stores a response in pieces; the upstream was asked at `begun`. It can wait for other writers. So a thread that serves
    /// clients calls it only for a short response and a fast volume ([`Store::write_inline`]). Returns the serial of the entry;
    /// `None` if it could not be stored, or has been purged since.
    pub fn keep(
        &self,
        key: &[u8],
        head: &Head,
        pieces: &[Bytes],
        times: Times,
        tags: &[&str],
        begun: Option<Epoch>,
    ) -> Option<u64> {
        let metadata = head.encode()?;
        let options = begun_in(options(&metadata, times, tags), begun);
        let length: usize = pieces.iter().map(Bytes::len).sum();
        let written = match pieces {
            [piece] => self.cache.put_with(key, piece, &options).map(Some),
            _ if length <= JOINED_BYTES_MAX => self.cache.put_with(key, pieces.concat(), &options).map(Some),
            _ => self.write(key, &options, pieces, length as u64),
        };
        // A put doesn't report that it lost to a purge.
        self.logged(written)?.filter(|_| self.epoch() == begun || self.has(key, |_| true))
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
                // Its commit returns the error.
                break;
            }
        }
        writer.commit().map(|committed| match committed {
            Committed::Stored(serial) => Some(serial),
            Committed::Superseded => None,
        })
    }

    /// Claims a key across all threads and processes. The claim lasts as long as the writer. It waits for another claim's end for
    /// up to `wait`, while `is_wanted` holds. None: another one still has the claim, or the volume has no place for it.
    pub fn claim(&self, key: &[u8], wait: Duration, is_wanted: &(dyn Fn() -> bool + Sync)) -> Option<Writer> {
        let claimed = match self.cache.begin_fill(key, wait, &FillOptions::new().wait_while(is_wanted)) {
            // The writer is never committed. It only holds the claim.
            Ok(Filling::Ours(fill)) => fill.into_writer(&PutOptions::new(), Some(0)),
            Ok(Filling::Found(_)) => return None,
            Err(error) => Err(error),
        };
        match claimed {
            Ok(writer) => return Some(writer),
            Err(error @ eyewall::Error::Failed { .. }) => self.warn(&error, "writing"),
            Err(error) => tracing::debug!(%error, "a request didn't wait for those of other processes"),
        }
        None
    }

    /// Changes the vary index of a key. Concurrent changes come one after the other, and `change` gets the present index.
    pub fn change(&self, key: &[u8], tags: &[&str], change: impl FnOnce(Option<&[u8]>) -> Vec<u8>) -> bool {
        let is_vary_index =
            |hit: &Hit<'_>| Head::decode(hit.metadata()).is_some_and(|head| head.kind == Kind::VaryIndex);
        let Some(metadata) = Head::bare(Kind::VaryIndex).encode() else { return false };
        // A soft purge has made the vary index stale, too. It is still right, and its responses stay stale.
        if self.cache.peek(key).is_ok_and(|hit| hit.is_none())
            && let Ok(Lookup::Stale(hit)) = self.cache.lookup(key)
            && is_vary_index(&hit)
        {
            let touch = Touch::new().ttl(None, Duration::ZERO).if_serial(hit.serial());
            self.logged(self.cache.touch(key, &touch));
        }
        let changed = self.cache.update(key, &options(&metadata, Times::FOR_GOOD, tags), |hit| {
            Change::Put(change(hit.filter(|hit| is_vary_index(hit)).map(Hit::value)))
        });
        self.logged(changed).is_some()
    }

    /// Gives the entry that was found for a key the present head of `found`, and other times. The value stays. The upstream was
    /// asked at `begun`. False: the entry is gone, and a later one keeps its own head.
    pub fn renew(&self, key: &[u8], found: &Found, times: Times, begun: Option<Epoch>) -> bool {
        let Some(metadata) = found.head.encode() else { return false };
        let mut touch = Touch::new().metadata(&metadata).ttl(times.fresh, times.stale).if_serial(found.hit.serial());
        if let Some(begun) = begun {
            touch = touch.begun_in(begun);
        }
        self.logged(self.cache.touch(key, &touch)).unwrap_or(false)
    }

    /// Removes the entry that was found for a key, unless another one has taken its place.
    pub fn remove_found(&self, key: &[u8], found: &Found) {
        self.remove_version(key, found.hit.serial());
    }

    /// Removes the entry of this serial.
    pub fn remove_version(&self, key: &[u8], serial: u64) {
        self.logged(self.cache.remove_if(key, serial));
    }

    /// Removes the entry of a key. True: there was a usable one.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn try_remove(&self, key: &[u8]) -> eyewall::Result<bool> {
        self.cache.remove(key)
    }

    /// Makes the entry that was found for a key stale. It may be used for as long as before. False: it is gone.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn soften(&self, key: &[u8], found: &Found) -> eyewall::Result<bool> {
        if found.is_stale {
            return Ok(true);
        }
        let stale = found.hit.usable_left().unwrap_or(Duration::MAX);
        self.cache.touch(key, &Touch::new().ttl(Some(Duration::ZERO), stale))
    }

    /// Purges the target. This can take seconds if it has to sweep the volume.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn purge(&self, meant: PurgeTarget<'_>, kind: Purge) -> eyewall::Result<()> {
        match meant {
            PurgeTarget::Tag(tag) => {
                self.cache.purge_tag(tag, kind)?;
                self.look_for_many_purges();
                Ok(())
            }
            PurgeTarget::Prefix(prefix) => {
                let mut prefixes = self.prefixes.lock().unwrap_or_else(PoisonError::into_inner);
                if *prefixes >= PREFIXES_MAX {
                    self.cache.sweep()?;
                    *prefixes = 0;
                }
                *prefixes += 1;
                self.cache.purge_prefix(prefix, kind)
            }
            PurgeTarget::Everything => self.cache.purge_all(kind),
        }
    }

    /// From now on, `wanted` is called when so much was purged that [`Store::sweep_while`] should be called soon: otherwise the volume would
    /// begin to purge more than was asked for. It must not wait.
    pub fn tell_of_many_purges(&self, wanted: impl Fn() + Send + Sync + 'static) {
        self.sweeper.is(wanted);
    }

    /// Looks whether there are many purges. Each purge by tag does this. Other processes, and those of before, may have purged, too.
    pub fn look_for_many_purges(&self) {
        if self.cache.wants_sweep() {
            self.sweeper.tell();
        }
    }

    /// Drops what was purged, and forgets the purges, unless `goes_on` says no before. It may take seconds. Errors are logged.
    pub fn sweep_while(&self, goes_on: impl Fn() -> bool) {
        self.logged(self.cache.sweep_while(goes_on));
        self.sweeper.has_swept();
    }

    /// All entries, including stale ones.
    pub fn entries(&self) -> impl Iterator<Item = Hit<'_>> {
        self.cache.iter_all()
    }

    /// How often the volume's tables have been too small for its purges, since the volume was made.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn purge_overflows(&self) -> eyewall::Result<u64> {
        Ok(self.cache.stats()?.purge_overflows)
    }

    /// The value of an outcome. Logs an error.
    pub fn logged<T>(&self, outcome: eyewall::Result<T>) -> Option<T> {
        match outcome {
            Ok(done) => return Some(done),
            Err(error @ (eyewall::Error::EntryTooLarge { .. } | eyewall::Error::KeyTooLong { .. })) => {
                tracing::debug!(%error, "a response was not stored");
            }
            Err(error) => self.warn(&error, "writing"),
        }
        None
    }

    fn warn(&self, error: &eyewall::Error, doing: &str) {
        if matches!(error, eyewall::Error::Failed { .. }) {
            if !self.has_told_the_end.swap(true, Ordering::Relaxed) {
                tracing::error!(%error, "answering without the volume until this process is started again (logged once)");
            }
        } else if self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::debug!(%error, "{doing} the volume failed");
        } else {
            tracing::warn!(%error, "{doing} the volume failed; answering without it (logged once)");
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

fn begun_in(options: PutOptions<'_>, begun: Option<Epoch>) -> PutOptions<'_> {
    match begun {
        Some(begun) => options.begun_in(begun),
        None => options,
    }
}

/// Reads a byte of each page.
fn read(value: &[u8]) {
    let bytes = value.iter().step_by(PAGE_BYTES).chain(value.last());
    std::hint::black_box(bytes.fold(0, |sum, byte| sum ^ byte));
}

#[cfg(test)]
mod tests {
    use eyewall::Options;
    use eyewall_http::terms::{TERMS_BYTES, Terms};
    use http::HeaderMap;

    use super::*;

    fn head(kind: Kind) -> Head {
        Head::new(kind, StatusCode::OK, HeaderMap::new())
    }

    #[test]
    fn a_softly_purged_response_stays_stale_when_a_vary_index_replaces_it() {
        let store = Store::new(Options::new().size(4 << 20).heap().unwrap());
        let response = head(Kind::Response(Terms::from_bytes([0; TERMS_BYTES]).unwrap()));
        let times = Times { fresh: Some(Duration::from_mins(1)), stale: Duration::from_mins(1) };
        store.keep(b"key", &response, &[Bytes::from_static(b"old")], times, &["tag"], store.epoch()).unwrap();
        store.purge(PurgeTarget::Tag("tag"), Purge::Soft).unwrap();
        let is_stale = || store.find(b"key").is_some_and(|found| found.is_stale);
        assert!(is_stale());
        let is_changed = store.change(b"key", &[], |present| {
            assert!(present.is_none() && is_stale(), "others find it until the vary_index is there");
            b"generation".to_vec()
        });
        assert!(is_changed && store.find(b"key").is_some_and(|found| found.head.kind == Kind::VaryIndex));
        // A vary index that the purge also covered is still right.
        assert!(store.change(b"key", &["tag"], |_| b"generation".to_vec()));
        store.purge(PurgeTarget::Tag("tag"), Purge::Soft).unwrap();
        assert!(store.change(b"key", &["tag"], |present| present.unwrap().to_vec()));
    }
}
