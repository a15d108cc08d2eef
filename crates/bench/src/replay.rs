//! A trace replayed through a store by one thread.

use std::hint::black_box;

use crate::clock::now_ns;
use crate::error::{Error, Result};
use crate::hits::Hits;
use crate::load;
use crate::random;
use crate::store::{Handle, Store};
use crate::trace::Request;

/// The result of a replay.
#[derive(Debug, Clone, Copy, Default)]
pub struct Replayed {
    /// Hits, in objects and in bytes.
    pub hits: Hits,
    /// Puts that the store refused as too large.
    pub refused: u64,
    /// The time that it took, without the work that keeps the cap.
    pub seconds: f64,
}

/// After a miss it puts a value of the size in the trace, at least 8 bytes. Then it makes the store keep its cap, so
/// that all stores have equal space: a store that does this once a second would be late, since a replay of hours takes
/// about a second.
pub(crate) fn run<S: Store>(store: &S, requests: &[Request]) -> Result<Replayed> {
    let mut handle = store.handle();
    let bytes_max = requests.iter().map(|request| request.bytes).max().unwrap_or(0).max(8);
    let mut value = random::filler(1, bytes_max as usize);
    let mut found = Replayed::default();
    let mut untimed_ns = 0;
    let begin_ns = now_ns();
    for request in requests {
        let key = random::key(request.key);
        let is_hit = handle.get(&key, |value| {
            black_box(value.as_ptr());
        })?;
        found.hits.count(request.bytes, is_hit);
        if is_hit {
            continue;
        }
        load::stamp(&mut value, request.key);
        match handle.put(&key, &value[..request.bytes.max(8) as usize]) {
            Ok(()) => {}
            Err(Error::Refused { .. }) => found.refused += 1,
            Err(failure) => return Err(failure),
        }
        let put_ns = now_ns();
        store.settle()?;
        untimed_ns += now_ns() - put_ns;
    }
    found.seconds = (now_ns() - begin_ns - untimed_ns) as f64 / 1e9;
    Ok(found)
}
