//! Purging what is stored of the responses of origins, and what is on its way to there.
//!
//! The order is the same in all of them: count ([`super::purged`]), let nobody join what is under way, then remove, or make
//! stale. A request that comes behind that finds nothing of before; a fill of before sees the count.

use eyewall::Purge;

use super::pages::Pages;
use super::signpost::Signpost;
use crate::serve::head::Kind;
use crate::serve::store::Meant;

impl Pages {
    /// Purges all responses of an address. `tag` is what they carry where an address has several keys.
    ///
    /// True: something was there under the address itself.
    ///
    /// # Errors
    /// Those of the engine. What was under way is not stored as if it were new all the same.
    pub(crate) fn purge_address(&self, address: &str, tag: Option<&str>, kind: Purge) -> eyewall::Result<bool> {
        let key = address.as_bytes();
        self.purged.note(key, kind);
        self.flights.leave(key);
        let was_there = match kind {
            Purge::Hard => self.store.try_remove(key)?,
            Purge::Soft => self.soften(key)?,
        };
        tag.map_or(Ok(()), |tag| self.store.purge(Meant::Tag(tag), kind))?;
        Ok(was_there)
    }

    /// Purges what may be the responses of many addresses.
    ///
    /// # Errors
    /// Those of the engine, for the first that has one; those behind it are not purged.
    pub(crate) fn purge_many<'a>(
        &self,
        meant: impl IntoIterator<Item = Meant<'a>>,
        kind: Purge,
    ) -> eyewall::Result<()> {
        self.purged.note_many(kind);
        self.flights.leave_all();
        meant.into_iter().try_for_each(|meant| self.store.purge(meant, kind))
    }

    /// What a purge that came while the entry of a key was stored, or renewed, makes of it.
    pub(crate) fn catch_up(&self, key: &[u8], kind: Purge) {
        match kind {
            Purge::Hard => self.store.remove(key),
            Purge::Soft => {
                self.store.told(self.soften(key));
            }
        }
    }

    /// Makes the response of a key stale, or all of its variants. False: there is none.
    fn soften(&self, key: &[u8]) -> eyewall::Result<bool> {
        let Some(found) = self.store.try_look(key)?.found() else { return Ok(false) };
        match found.head.kind {
            Kind::Response(_) | Kind::Fragmented(..) => self.store.soften(key, &found),
            // It stays as it is: it leads to what is stale.
            Kind::Signpost => {
                let Some(signpost) = Signpost::decode(found.bytes()) else { return Ok(false) };
                let mut was_there = false;
                for variant in signpost.variants() {
                    let key = signpost.key_of(key, variant);
                    if let Some(found) = self.store.try_look(&key)?.found() {
                        was_there |= self.store.soften(&key, &found)?;
                    }
                }
                Ok(was_there)
            }
            Kind::File(_) | Kind::Fragment => Ok(false),
        }
    }
}
