//! [`SecondLevel`]: a store that several machines share, behind the volumes of each.
//!
//! ```text
//! look up: nothing -> claim -> ask the second level --has it--> stored in the volume, found
//!                                      | has nothing
//!                                      v
//!                                  the caller fills -> stored in the volume -> offered
//! ```
//! Only the caller that holds the claim of a key asks, so one question serves all callers of a machine. Look-ups and puts know nothing of it.

use std::fmt;
use std::time::Duration;

use super::Flight;
use crate::cache::Cache;
use crate::purge::Epoch;
use crate::put::PutOptions;

/// A store that several machines share ([`Cache::with_second_level`]). It decides itself what it keeps, and whether an object is still right:
/// one that a purge covers must not come back.
pub trait SecondLevel: Send + Sync + fmt::Debug {
    /// The value that another machine has made for this key. `None`: none is known. Other callers of the key wait meanwhile.
    fn ask(&self, key: &[u8]) -> Option<Foreign>;

    /// Says that a fill has made and stored a value. It should not wait.
    fn offer(&self, made: &Made<'_>);
}

/// A value of another machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Foreign {
    /// The value.
    pub value: Vec<u8>,
    /// The caller's own metadata.
    pub metadata: Vec<u8>,
    /// The tags.
    pub tags: Vec<String>,
    /// For how long it is still fresh. `None`: until it is evicted.
    pub ttl: Option<Duration>,
    /// For how long it may be used as a stale one after that.
    pub stale: Duration,
}

/// A value that a fill has made.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Made<'a> {
    /// The file that has the entry: a number that no other volume has, and that a resize changes ([`Cache::identity`]).
    pub volume: u64,
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The caller's own metadata.
    pub metadata: &'a [u8],
    /// The tags.
    pub tags: &'a [&'a str],
    /// For how long it is fresh.
    pub ttl: Option<Duration>,
    /// For how long it may be used as a stale one after that.
    pub stale: Duration,
    /// When the work on it began. All purges of earlier epochs were known then.
    pub begun: Epoch,
}

impl Cache {
    /// The same cache with a second level: a fill asks it before the caller has to make the value, and offers it what the caller has made
    /// ([`Flight::store`], [`Cache::get_or_fill`]).
    #[must_use]
    pub fn with_second_level(&self, second_level: std::sync::Arc<dyn SecondLevel>) -> Self {
        self.beside(second_level)
    }
}

impl Cache {
    /// A number that no other volume has. A resize changes it.
    pub fn identity(&self) -> u64 {
        self.volume().identity()
    }
}

/// Asks for the key of a flight, and stores the answer by it. `Err`: the flight goes on without.
pub(super) fn ask(flight: Flight<'_>) -> Result<(), Flight<'_>> {
    let Some(foreign) = flight.cache.second_level().and_then(|second_level| second_level.ask(&flight.key)) else {
        return Err(flight);
    };
    let tags: Vec<&str> = foreign.tags.iter().map(String::as_str).collect();
    let mut options = PutOptions::new().stale(foreign.stale).metadata(&foreign.metadata).tags(&tags);
    options.ttl = foreign.ttl;
    // A purge that came since the flight began covers the value, too. Then the flight is void, and the caller begins again.
    let _ = flight.store_quietly(&foreign.value, &options);
    Ok(())
}

/// Offers what a flight has made and stored.
pub(super) fn offer(flight: &Flight<'_>, value: &[u8], options: &PutOptions<'_>) {
    let Some(second_level) = flight.cache.second_level() else { return };
    let begun = options.begun.unwrap_or(flight.begun());
    let PutOptions { ttl, stale, metadata, tags, .. } = *options;
    let volume = flight.cache.volume().identity();
    second_level.offer(&Made { volume, key: &flight.key, value, metadata, tags, ttl, stale, begun });
}
