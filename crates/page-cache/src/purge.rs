//! Purging what is stored, and what is on its way to there.
//!
//! An address: count ([`crate::recent_purges`]), let nobody join what is under way, then remove, or make stale. A request that comes behind
//! that finds nothing of before; a fill of before sees the count. All else the volume notes by itself, for fills
//! and for those who would join them: by its epochs.

use eyewall::Purge;
use eyewall_http::vary_index::VaryIndex;

use crate::head::Kind;
use crate::pages::Pages;
use crate::query::queries_of;
use crate::recent_purges::Mark;
use crate::store::PurgeTarget;

impl<C> Pages<C> {
    /// Purges all responses of an address. `tag` is what they carry where an address has several keys.
    ///
    /// Answers to QUERY are gone in either case: nobody knows how many there are, but where they begin.
    ///
    /// True: something was there under the address itself.
    ///
    /// # Errors
    /// Those of the engine. What was under way is not stored as if it were new all the same.
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

    /// Purges what may be the responses of many addresses.
    ///
    /// # Errors
    /// Those of the engine, for the first that has one; those behind it are not purged.
    pub fn purge_many<'a>(&self, meant: impl IntoIterator<Item = PurgeTarget<'a>>, kind: Purge) -> eyewall::Result<()> {
        meant.into_iter().try_for_each(|meant| self.store.purge(meant, kind))
    }

    /// What was purged up to now.
    pub fn mark(&self, address: impl AsRef<[u8]>) -> Mark {
        self.recent_purges.mark(address.as_ref(), self.store.epoch())
    }

    /// Whether anything was purged since that may mean the address.
    pub fn may_be_purged_since(&self, mark: Mark) -> bool {
        self.recent_purges.since(mark).is_some() || self.store.epoch() != mark.epoch
    }

    /// What a purge of the address that came while an entry of it was stored makes of it. False: it is gone.
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
    /// Those of the engine.
    pub fn soften(&self, key: &[u8]) -> eyewall::Result<bool> {
        let Some(found) = self.store.try_look(key)?.found() else { return Ok(false) };
        match found.head.kind {
            Kind::Response(_) | Kind::Fragmented(..) => self.store.soften(key, &found),
            // It stays as it is: it leads to what is stale.
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
            Kind::Fragment => Ok(false),
        }
    }
}
