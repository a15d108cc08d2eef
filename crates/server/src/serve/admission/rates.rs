//! The rate of each client's requests: token buckets in a table of fixed size.
//!
//! The table has [`ROWS`] rows, and a client has one place in each, by a hash with a secret. Places are shared by chance, and the
//! earliest of a client's times counts. So no client gets more than its rate, and the memory doesn't grow with the clients: 2 MiB.
//! A client may get less if each of its places is shared with a busy client. Among 10,000 clients that use all of their rate, that
//! concerns one of 2,500; among 50,000, one of 12.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::client::Client;
use super::rate::Rate;

const ROWS: usize = 4;
/// The places of a row: a row is chosen by 16 bits of the hash.
const PLACES: usize = 1 << 16;
/// Enough that workers hardly ever want the same one for two clients.
const TURNS: usize = 256;

/// The buckets of all clients.
pub(super) struct Rates {
    rate: Rate,
    began: Instant,
    secret: RandomState,
    /// Row after row: nanoseconds from the beginning to when a bucket is full. Each is a number of its own, so they need no
    /// ordering.
    full_at: Box<[AtomicU64]>,
    /// The requests of a client take tokens one after another. Otherwise two workers could take the same token from two of its places.
    turns: Box<[Mutex<()>]>,
}

fn turns() -> Box<[Mutex<()>]> {
    (0..TURNS).map(|_| Mutex::new(())).collect()
}

impl Rates {
    pub(super) fn new(rate: Rate) -> Self {
        let full_at = (0..ROWS * PLACES).map(|_| AtomicU64::new(0)).collect();
        Self { rate, began: Instant::now(), secret: RandomState::new(), full_at, turns: turns() }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// The same buckets for another rate.
    pub(super) fn renewed(&self, rate: Rate) -> Self {
        let now = nanoseconds(self.began.elapsed());
        let converted = |place: &AtomicU64| {
            let full_at = place.load(Ordering::Relaxed);
            // Most are unused.
            AtomicU64::new(if full_at <= now { 0 } else { self.rate.converted(rate, full_at, now) })
        };
        let full_at = self.full_at.iter().map(converted).collect();
        Self { rate, began: self.began, secret: self.secret.clone(), full_at, turns: turns() }
    }

    /// Whether this client has a token.
    ///
    /// # Errors
    /// The seconds until it has one.
    pub(super) fn check(&self, address: IpAddr) -> Result<(), u64> {
        self.rate.check(earliest(self.places(self.hash(address))), nanoseconds(self.began.elapsed()))
    }

    /// Takes a token of this client.
    ///
    /// # Errors
    /// The seconds until there is another one.
    pub(super) fn take(&self, address: IpAddr) -> Result<(), u64> {
        self.take_at(address, self.began.elapsed())
    }

    fn take_at(&self, address: IpAddr, now: Duration) -> Result<(), u64> {
        let now = nanoseconds(now);
        let hash = self.hash(address);
        let places = self.places(hash);
        let _turn = self.turns[hash as usize % TURNS].lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = earliest(places);
        self.rate.check(full_at, now)?;
        let next = self.rate.without_one(full_at, now);
        for place in places {
            place.fetch_max(next, Ordering::Relaxed);
        }
        Ok(())
    }

    fn hash(&self, address: IpAddr) -> u64 {
        self.secret.hash_one(Client::from(address))
    }

    fn places(&self, hash: u64) -> [&AtomicU64; ROWS] {
        let hash = hash.to_le_bytes();
        std::array::from_fn(|row| {
            let place = usize::from(u16::from_le_bytes([hash[2 * row], hash[2 * row + 1]]));
            &self.full_at[row * PLACES + place]
        })
    }
}

fn earliest(places: [&AtomicU64; ROWS]) -> u64 {
    places.map(|place| place.load(Ordering::Relaxed)).into_iter().min().unwrap_or_default()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(per_second: u64, burst: u64) -> Rates {
        Rates::new(Rate { per_second, burst })
    }

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    #[test]
    fn a_client_has_its_burst_and_then_its_rate() {
        let rates = rates(10, 3);
        let take = |milliseconds| rates.take_at(address(1), Duration::from_millis(milliseconds));
        for (milliseconds, expected) in [
            (0, Ok(())),
            (0, Ok(())),
            (0, Ok(())),
            (0, Err(1)),
            (99, Err(1)),
            (100, Ok(())),
            (100, Err(1)),
            (250, Ok(())),
            (300, Ok(())),
            (10_000, Ok(())),
            (10_000, Ok(())),
            (10_000, Ok(())),
            (10_000, Err(1)),
        ] {
            assert_eq!(take(milliseconds), expected, "at {milliseconds} ms");
        }
        assert_eq!(rates.take_at(address(2), Duration::ZERO), Ok(()), "another client has another bucket");
    }

    #[test]
    fn a_refusal_says_when_to_come_back() {
        let rates = Rates::new(Rate { per_second: 1, burst: 1 });
        assert_eq!(rates.take_at(address(1), Duration::ZERO), Ok(()));
        assert_eq!(rates.take_at(address(1), Duration::from_millis(1)), Err(1));
        let slow = Rates { rate: Rate { per_second: 1, burst: 5 }, ..rates };
        assert_eq!((0..5).filter(|_| slow.take_at(address(9), Duration::ZERO).is_ok()).count(), 5);
    }

    #[test]
    fn many_clients_hardly_ever_take_the_tokens_of_another() {
        let rates = rates(1, 1);
        let refused = (0..10_000).filter(|number| rates.take_at(address(*number), Duration::ZERO).is_err()).count();
        assert!(refused < 100, "{refused} of 10,000 have four busy places");
    }

    #[test]
    fn threads_together_get_no_more_than_one() {
        let rates = rates(1, 1000);
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| (0..1000).filter(|_| rates.take_at(address(7), Duration::ZERO).is_ok()).count())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 1000);
    }
}
