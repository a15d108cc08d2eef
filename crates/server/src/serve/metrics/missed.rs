//! The addresses that miss most, counted in little space (Space-Saving; Metwally, Agrawal, El Abbadi 2005).
//!
//! Each worker has a table of [`KEYS_MAX`] addresses. A miss of another address takes the place of the rarest one, and inherits its
//! count. So a count may be too large by as much, and an address with more misses than all of that is never lost.
//!
//! Only requests that an origin is asked for get here, and only if the server has an administration. The worker takes a lock that nobody
//! else wants, except for a moment when somebody looks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Mutex;

use http::header::HOST;
use http::{HeaderValue, Request, Uri};
use serde::Serialize;

use super::lock;
use crate::key::Scheme;

/// The number of addresses of a worker.
const KEYS_MAX: usize = 64;
/// The longest address; longer ones are left out.
const KEY_BYTES_MAX: usize = 1024;

/// The address that a request asks for.
pub(crate) struct Asked {
    scheme: Scheme,
    uri: Uri,
    host: Option<HeaderValue>,
}

/// The addresses that missed most in one worker.
#[derive(Default)]
pub(super) struct Missed(Mutex<Sketch>);

#[derive(Default)]
struct Sketch {
    hasher: RandomState,
    hashes: Vec<u64>,
    counts: Vec<u64>,
    keys: Vec<String>,
    /// The address at hand, which keeps its memory.
    key: String,
}

/// An address, and how often it missed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct MissedKey {
    pub(crate) key: String,
    pub(crate) count: u64,
}

impl Asked {
    pub(crate) fn of<B>(request: &Request<B>, scheme: Scheme) -> Self {
        Self { scheme, uri: request.uri().clone(), host: request.headers().get(HOST).cloned() }
    }

    /// `None` without a host, and for what is no address.
    fn write(&self, key: &mut String) -> Option<()> {
        key.clear();
        let host = match self.uri.authority() {
            Some(authority) => authority.as_str(),
            None => self.host.as_ref()?.to_str().ok()?,
        };
        let host = host.rsplit('@').next().unwrap_or(host);
        let target = self.uri.path_and_query()?.as_str();
        (host.len() + target.len() <= KEY_BYTES_MAX).then_some(())?;
        // Never fails on a string.
        let _ = write!(key, "{}://{host}{target}", self.scheme.as_str());
        Some(())
    }
}

impl Missed {
    pub(super) fn count(&self, asked: &Asked) {
        let mut sketch = lock(&self.0);
        let mut key = std::mem::take(&mut sketch.key);
        if asked.write(&mut key).is_some() {
            sketch.count(&key);
        }
        sketch.key = key;
    }

    pub(super) fn add_to(&self, sums: &mut BTreeMap<String, u64>) {
        let sketch = lock(&self.0);
        for (key, count) in sketch.keys.iter().zip(&sketch.counts).filter(|(_, count)| **count > 0) {
            *sums.entry(key.clone()).or_default() += count;
        }
    }

    /// Halves all counts, so that addresses of long ago make room.
    pub(super) fn age(&self) {
        lock(&self.0).counts.iter_mut().for_each(|count| *count /= 2);
    }
}

impl Sketch {
    fn count(&mut self, key: &str) {
        let hash = self.hasher.hash_one(key);
        if let Some(place) = self.hashes.iter().position(|known| *known == hash) {
            self.counts[place] += 1;
        } else if self.keys.len() < KEYS_MAX {
            self.hashes.push(hash);
            self.counts.push(1);
            self.keys.push(key.to_owned());
        } else if let Some((place, count)) = self.counts.iter_mut().enumerate().min_by_key(|(_, count)| **count) {
            *count += 1;
            self.hashes[place] = hash;
            self.keys[place].clear();
            self.keys[place].push_str(key);
        }
    }
}

/// The most frequent ones of these, in their order.
pub(super) fn most(sums: BTreeMap<String, u64>, limit: usize) -> Vec<MissedKey> {
    let mut all: Vec<_> = sums.into_iter().map(|(key, count)| MissedKey { key, count }).collect();
    all.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.key.cmp(&other.key)));
    all.truncate(limit);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(target: &str) -> Asked {
        let request = Request::builder().uri(target).header(HOST, "a.example").body(()).unwrap();
        Asked::of(&request, Scheme::Https)
    }

    fn counts(missed: &Missed) -> Vec<MissedKey> {
        let mut sums = BTreeMap::new();
        missed.add_to(&mut sums);
        most(sums, 2)
    }

    #[test]
    fn frequent_addresses_stay_although_thousands_come_once() {
        let missed = Missed::default();
        for number in 0..5000 {
            missed.count(&asked(&format!("/{number}")));
            if number % 10 == 0 {
                missed.count(&asked("/often"));
            }
        }
        let found = counts(&missed);
        assert_eq!(found[0].key, "https://a.example/often");
        assert!((500..=500 + 5500 / KEYS_MAX as u64).contains(&found[0].count), "{found:?}");
        missed.age();
        assert!(counts(&missed)[0].count < 300);
    }

    #[test]
    fn an_address_without_host_or_too_long_is_left_out() {
        let missed = Missed::default();
        missed.count(&asked(&format!("/{}", "a".repeat(KEY_BYTES_MAX))));
        missed.count(&Asked { host: None, ..asked("/") });
        missed.count(&asked("http://b.example/?c"));
        assert_eq!(counts(&missed), [MissedKey { key: "https://b.example/?c".to_owned(), count: 1 }]);
    }
}
