//! Each policy replays a trace that is short enough to follow by hand.

use eyewall_bench::hits::Hits;
use eyewall_bench::simulate::{Gdsf, Lru, Policy, REFERENCES, S3Fifo, S3FifoOptions, hits_of, offline, replay};
use eyewall_bench::trace::Request;

fn requests(keys: &[u64]) -> Vec<Request> {
    keys.iter().map(|&key| Request { key, bytes: 1 }).collect()
}

fn hits(policy: &mut impl Policy, keys: &[u64]) -> Vec<bool> {
    requests(keys).into_iter().map(|request| policy.request(request)).collect()
}

#[test]
fn lru_evicts_what_was_used_longest_ago() {
    let mut lru = Lru::new(2);
    assert_eq!(hits(&mut lru, &[1, 2, 1, 3, 1, 2]), [false, false, true, false, true, false]);
}

#[test]
fn lru_counts_bytes_and_refuses_what_exceeds_its_cap() {
    let mut lru = Lru::new(10);
    let trace = [(1, 6), (2, 4), (3, 11), (1, 6), (4, 5), (2, 4)].map(|(key, bytes)| Request { key, bytes });
    // 4 needs 5 bytes. So 2, the object used longest ago, leaves with its 4 bytes, and then 1 with its 6.
    let found = replay(&mut lru, &trace);
    assert_eq!(found, Hits { requests: 6, hits: 1, bytes: 36, hit_bytes: 6 });
}

#[test]
fn s3_fifo_keeps_what_was_hit_through_a_scan() {
    let mut policy = S3Fifo::new(S3FifoOptions::plain(10));
    assert_eq!(hits(&mut policy, &[1, 1]), [false, true]);
    let scan: Vec<u64> = (100..150).collect();
    assert!(!hits(&mut policy, &scan).contains(&true));
    assert_eq!(hits(&mut policy, &[1]), [true]);

    let mut lru = Lru::new(10);
    hits(&mut lru, &[1, 1]);
    hits(&mut lru, &scan);
    assert_eq!(hits(&mut lru, &[1]), [false], "the scan would have flushed an LRU");
}

#[test]
fn s3_fifo_takes_a_remembered_newcomer_into_main() {
    let mut policy = S3Fifo::new(S3FifoOptions::plain(10));
    let first: Vec<u64> = (1..=11).collect();
    hits(&mut policy, &first);
    // 1 left the small queue without a hit, and is remembered. When it is requested again, it enters main and survives
    // a scan.
    assert_eq!(hits(&mut policy, &[1]), [false]);
    let scan: Vec<u64> = (100..150).collect();
    hits(&mut policy, &scan);
    assert_eq!(hits(&mut policy, &[1]), [true]);
}

#[test]
fn sized_s3_fifo_refuses_objects_above_a_sixteenth_of_its_cap() {
    let mut policy = S3Fifo::new(S3FifoOptions::sized(160));
    let ask = |policy: &mut S3Fifo, bytes| {
        let request = Request { key: bytes, bytes };
        policy.request(request) || policy.request(request)
    };
    assert!(ask(&mut policy, 10));
    assert!(!ask(&mut policy, 11));
}

#[test]
fn sized_s3_fifo_asks_more_hits_of_larger_objects() {
    let mut policy = S3Fifo::new(S3FifoOptions::sized(1_000));
    let large = Request { key: 1, bytes: 50 };
    policy.request(large);
    policy.request(large);
    for key in 100..2_000 {
        policy.request(Request { key, bytes: 1 });
    }
    assert!(!policy.request(large), "one hit does not keep an object of many times the mean");
}

#[test]
fn gdsf_drops_the_large_before_the_small_and_the_old_before_the_new() {
    let mut policy = Gdsf::new(10);
    let mut ask = |key, bytes| policy.request(Request { key, bytes });
    assert!(!ask(1, 2) && !ask(2, 8));
    // 3 needs room, and 2 has the fewest uses per byte.
    assert!(!ask(3, 4) && ask(1, 2) && ask(3, 4) && !ask(4, 11));
    // Later entries start above the priority that was evicted last, so that old uses don't count forever.
    for key in 10..40 {
        assert!(!ask(key, 4));
    }
    assert!(!ask(3, 4));
}

#[test]
fn min_keeps_what_is_asked_for_soonest() {
    let percent = |keys: &[u64], cap| offline(cap, &requests(keys)).0;
    // A loop over three objects, with room for two: LRU would never hit.
    assert!((percent(&[1, 2, 3, 1, 2, 3, 1, 2, 3], 2) - 100.0 * 4.0 / 9.0).abs() < 1e-9);
    assert!((percent(&[1, 2, 3, 1, 2, 3, 1, 2, 3], 3) - 100.0 * 6.0 / 9.0).abs() < 1e-9);
    assert!((percent(&[1, 2, 1, 2], 1) - 25.0).abs() < 1e-9);
    assert!((percent(&[1, 2, 3, 4], 4)).abs() < 1e-9);
}

#[test]
fn the_bound_for_sizes_takes_the_cheapest_hits() {
    let sized =
        |trace: &[(u64, u64)]| -> Vec<Request> { trace.iter().map(|&(key, bytes)| Request { key, bytes }).collect() };
    // Room for 2 bytes over 6 requests, 12 in all. The small object costs 1 x 2 twice.
    let trace = sized(&[(1, 1), (2, 2), (1, 1), (3, 9), (1, 1), (2, 2)]);
    let (objects, bytes) = offline(2, &trace);
    // The interval of the large object is 4 long, and costs 8. All three fit into 12.
    assert!((objects - 50.0).abs() < 1e-9 && (bytes - 100.0 * 4.0 / 16.0).abs() < 1e-9, "{objects} {bytes}");
    // With room for 1 byte, the large object doesn't fit.
    assert!((offline(1, &trace).0 - 100.0 * 2.0 / 6.0).abs() < 1e-9);
}

#[test]
fn no_reference_is_above_the_offline_one() {
    let mut random = eyewall_bench::random::Random::new(7);
    for bytes_max in [1, 50] {
        let trace: Vec<Request> = (0..2_000)
            .map(|_| {
                let key = random.below(10) * random.below(10);
                Request { key, bytes: 1 + key * 7 % bytes_max }
            })
            .collect();
        for cap in [5, 60, 200] {
            let [policies @ .., best] = &REFERENCES;
            let (objects, bytes) = hits_of(best.name, cap, &trace).unwrap();
            for peer in policies {
                let found = hits_of(peer.name, cap, &trace).unwrap();
                assert!(found.0 <= objects + 1e-9 && found.1 <= bytes + 1e-9, "{}: {found:?}", peer.name);
            }
        }
    }
    assert_eq!(hits_of("eyewall", 1, &[]), None);
}
