//! Purges of stored responses and of those on their way into the volume.
//!
//! The purge of an address does three things in this order. It counts ([`crate::recent_purges`]). It lets no request join those
//! under way. Then it removes the entry, or makes it stale. A later request finds nothing from before, and a fill from before sees
//! the count. The volume itself remembers all other purges: fills and requests that want to join compare its epochs.

use eyewall::Purge;
use eyewall_http::vary_index::VaryIndex;

use crate::head::Kind;
use crate::pages::Pages;
use crate::query::queries_of;
use crate::recent_purges::Mark;
use crate::store::PurgeTarget;

impl Pages {
    /// Purges all responses of an address. `tag` is the tag that they carry if an address has several keys.
    ///
    /// It removes answers to QUERY by either kind of purge: their number is unknown, but not their prefix.
    ///
    /// True: there was an entry under the address itself.
    ///
    /// # Errors
    /// Errors of the engine. Even then, a response on its way into the volume is not stored as if it were new.
    pub fn purge_address(&self, address: &str, tag: Option<&str>, kind: Purge) -> eyewall::Result<bool> {
        let key = address.as_bytes();
        self.recent_purges.note(key, kind);
        self.in_flight.leave(key);
        let was_there = match kind {
            Purge::Hard => self.store.try_remove(key)?,
            Purge::Soft => self.soften(key)?,
        };
        let had_queries = self.store.try_remove(&queries_of(key))?;
        tag.map_or(Ok(()), |tag| self.store.purge(PurgeTarget::Tag(tag), kind))?;
        Ok(was_there || had_queries)
    }

    /// Purges several targets, each of which may cover many addresses.
    ///
    /// # Errors
    /// The first error of the engine. Later targets are not purged.
    pub fn purge_many<'a>(&self, meant: impl IntoIterator<Item = PurgeTarget<'a>>, kind: Purge) -> eyewall::Result<()> {
        meant.into_iter().try_for_each(|meant| self.store.purge(meant, kind))
    }

    /// The mark of all purges up to now.
    pub fn mark(&self, address: impl AsRef<[u8]>) -> Mark {
        self.recent_purges.mark(address.as_ref(), self.store.epoch())
    }

    /// Whether any purge since `mark` may cover the address.
    pub fn may_be_purged_since(&self, mark: Mark) -> bool {
        self.recent_purges.since(mark).is_some() || self.store.epoch() != mark.epoch
    }

    /// Applies to a new entry a purge of its address that came while it was stored. False: the entry is gone.
    pub fn catch_up(&self, key: &[u8], serial: u64, mark: Mark) -> bool {
        match self.recent_purges.since(mark) {
            None => true,
            Some(Purge::Hard) => {
                self.store.remove_version(key, serial);
                false
            }
            Some(Purge::Soft) => {
                self.store.logged(self.soften(key));
                true
            }
        }
    }

    /// Makes the response of a key stale, or all of its variants. False: there is none.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn soften(&self, key: &[u8]) -> eyewall::Result<bool> {
        let Some(found) = self.store.try_look(key)?.found() else { return Ok(false) };
        match found.head.kind {
            Kind::Response(_) | Kind::Fragmented(..) => self.store.soften(key, &found),
            // The vary index stays as it is: it leads to stale responses.
            Kind::VaryIndex => {
                let Some(vary_index) = VaryIndex::decode(found.bytes()) else { return Ok(false) };
                let mut was_there = false;
                for variant in vary_index.variants() {
                    let key = vary_index.key_of(key, variant);
                    if let Some(found) = self.store.try_look(&key)?.found() {
                        was_there |= self.store.soften(&key, &found)?;
                    }
                }
                Ok(was_there)
            }
            Kind::Fragment | Kind::Form(_) => Ok(false),
        }
    }
}
