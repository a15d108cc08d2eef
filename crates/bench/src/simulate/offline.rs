//! The hit ratios of a policy that knows the future.

use std::collections::{BTreeSet, HashMap};

use crate::trace::Request;

/// Object and byte hit ratio, in percent, that no cache of `cap_bytes` exceeds.
///
/// If all objects have one size, this is the optimum itself: Belady's MIN, which may also refuse an object. Otherwise
/// it is the bound PFOO-L of Berger, Beckmann and Harchol-Balter ("Practical Bounds on Optimal Caching with Variable
/// Object Sizes", 2018), computed for each of the two ratios by itself. Keeping an object from one request to the next
/// costs its bytes times the requests between. The cheapest hits count, until their costs make up the whole cap over
/// the whole trace. The bound is above the optimum, and no cache reaches it.
pub fn offline(cap_bytes: u64, requests: &[Request]) -> (f64, f64) {
    let bytes = requests.first().map_or(1, |request| request.bytes).max(1);
    let asked: u64 = requests.iter().map(|request| request.bytes).sum();
    if requests.iter().all(|request| request.bytes == bytes) {
        let percent = percent(min(cap_bytes / bytes, requests), requests.len() as u64);
        return (percent, percent);
    }
    let intervals = intervals(cap_bytes, requests);
    let room = u128::from(cap_bytes) * requests.len() as u128;
    let objects =
        cheapest(&intervals, room, |interval| u128::from(interval.bytes) * u128::from(interval.length), |_| 1);
    let hit_bytes = cheapest(&intervals, room, |interval| u128::from(interval.length), |interval| interval.bytes);
    (percent(objects, requests.len() as u64), percent(hit_bytes, asked))
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// For each request, the position of the next request for the same object; `usize::MAX` if there is none.
fn next_uses(requests: &[Request]) -> Vec<usize> {
    let mut seen = HashMap::new();
    let mut next = vec![usize::MAX; requests.len()];
    for (place, request) in requests.iter().enumerate().rev() {
        if let Some(later) = seen.insert(request.key, place) {
            next[place] = later;
        }
    }
    next
}

/// Hits of MIN among `capacity` objects of one size.
fn min(capacity: u64, requests: &[Request]) -> u64 {
    let mut held: BTreeSet<(usize, u64)> = BTreeSet::new();
    let mut hits = 0;
    for (place, (request, next)) in requests.iter().zip(next_uses(requests)).enumerate() {
        hits += u64::from(held.remove(&(place, request.key)));
        if next == usize::MAX {
            continue;
        }
        held.insert((next, request.key));
        if held.len() as u64 > capacity {
            held.pop_last();
        }
    }
    hits
}

/// A possible hit: an object that is kept from one request to the next.
struct Interval {
    bytes: u64,
    length: u64,
}

fn intervals(cap_bytes: u64, requests: &[Request]) -> Vec<Interval> {
    let next = next_uses(requests);
    let of = |(place, (request, next)): (usize, (&Request, usize))| {
        let is_one = next != usize::MAX && request.bytes <= cap_bytes;
        is_one.then(|| Interval { bytes: request.bytes, length: (next - place) as u64 })
    };
    requests.iter().zip(next).enumerate().filter_map(of).collect()
}

/// The gain of the first intervals by `rank`, as many as fit; the last one counts whole.
fn cheapest(
    intervals: &[Interval],
    room: u128,
    rank: impl Fn(&Interval) -> u128,
    gain: impl Fn(&Interval) -> u64,
) -> u64 {
    let mut order: Vec<&Interval> = intervals.iter().collect();
    order.sort_unstable_by_key(|interval| rank(interval));
    let (mut used, mut gained) = (0_u128, 0);
    for interval in order {
        if used >= room {
            break;
        }
        used += u128::from(interval.bytes) * u128::from(interval.length);
        gained += gain(interval);
    }
    gained
}
