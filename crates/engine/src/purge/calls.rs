//! The calls that purge.

use super::outbox::{self, PurgeOf};
use crate::cache::Cache;
use crate::error::Result;
use crate::format::purges::Purge;
use crate::volume::Volume;

impl Cache {
    /// Purges all entries that carry `tag` ([`PutOptions::tags`](crate::PutOptions::tags)). Takes the time of a few stores, however many
    /// entries there are.
    ///
    /// This also purges what is being put or filled, if that work began before the purge. Later puts give the bytes
    /// back, and so does [`Cache::sweep`].
    ///
    /// The volume remembers some thousands of purged tags (seven for each 64 KiB of its size, in groups of seven).
    /// Beyond that it purges too much, never too little: see [`Stats::purge_overflows`](crate::Stats::purge_overflows).
    ///
    /// # Errors
    /// [`TagLength`](crate::Error::TagLength), [`ReadOnly`](crate::Error::ReadOnly), [`Busy`](crate::Error::Busy),
    /// [`Io`](crate::Error::Io): nothing was purged. [`Outbox`](crate::Error::Outbox): it was purged here, but other machines don't hear of it.
    ///
    /// ```
    /// use eyewall::{Options, Purge, PutOptions};
    ///
    /// let cache = Options::new().heap()?;
    /// cache.put_with("/shop/7", "<h1>Teapot</h1>", &PutOptions::new().tags(&["product:7", "shop"]))?;
    /// cache.purge_tag("product:7", Purge::Hard)?;
    /// assert!(cache.get("/shop/7")?.is_none());
    /// # Ok::<(), eyewall::Error>(())
    /// ```
    pub fn purge_tag(&self, tag: &str, kind: Purge) -> Result<()> {
        self.purge(kind, |volume| super::purge_tag(volume, tag, kind), || PurgeOf::Tag(tag.to_owned()))
    }

    /// Whether the volume notes so many purges, of any process, that a [`Cache::sweep`] should make room: an eighth of the tags that it can
    /// note. Notes of tags lie in small groups. After a third of them, a purge begins to remove more than was asked for.
    pub fn wants_sweep(&self) -> bool {
        self.vouched(|volume| Ok(super::wants_sweep(volume))).unwrap_or(false)
    }

    /// Does the same as [`Cache::sweep`], but ends early, without an error, once `goes_on` says no. It is asked after each short step. Only
    /// the write to storage at the end isn't cut short.
    ///
    /// # Errors
    /// Those of [`Cache::sweep`].
    pub fn sweep_while(&self, goes_on: impl Fn() -> bool) -> Result<u64> {
        self.vouched(|volume| super::sweep(volume, &goes_on))
    }

    /// Purges all entries whose key begins with `prefix`; the empty prefix purges all entries.
    ///
    /// Works like [`Cache::purge_tag`], except that the volume remembers at most 64 prefixes at a time. One more also
    /// purges everything older than the oldest of them. [`Cache::sweep`] lets the volume forget prefixes.
    ///
    /// # Errors
    /// [`KeyTooLong`](crate::Error::KeyTooLong), and those of [`Cache::purge_tag`].
    pub fn purge_prefix(&self, prefix: impl AsRef<[u8]>, kind: Purge) -> Result<()> {
        let prefix = prefix.as_ref();
        let what = || if prefix.is_empty() { PurgeOf::Everything } else { PurgeOf::Prefix(prefix.to_vec()) };
        self.purge(kind, |volume| super::purge_prefix(volume, prefix, kind), what)
    }

    /// Purges all entries, in the time of a few stores.
    ///
    /// # Errors
    /// Those of [`Cache::purge_tag`].
    pub fn purge_all(&self, kind: Purge) -> Result<()> {
        self.purge(kind, |volume| super::purge_all(volume, kind), || PurgeOf::Everything)
    }

    /// Notes a purge in the volume, and passes it on if there is an outbox.
    fn purge(&self, kind: Purge, note: impl Fn(&Volume) -> Result<()>, what: impl FnOnce() -> PurgeOf) -> Result<()> {
        self.vouched(&note)?;
        if self.keeps_purges() || !outbox::pass_on(self.volume(), &what(), kind)? {
            return Ok(());
        }
        // A fill that began before the outbox had the purge may have got its object from a machine that has not heard of it (P7).
        self.vouched(&note)
    }
}
