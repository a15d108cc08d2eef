//! Each policy is walked through a trace short enough to be followed by hand.

use eyewall_bench::simulate::{Hits, Lru, Policy, S3Fifo, S3FifoOptions, replay};
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
    assert_eq!(lru.written_bytes(), 4);
}

#[test]
fn lru_counts_bytes_and_refuses_what_exceeds_its_cap() {
    let mut lru = Lru::new(10);
    let trace = [(1, 6), (2, 4), (3, 11), (1, 6), (4, 5), (2, 4)].map(|(key, bytes)| Request { key, bytes });
    // 4 needs 5 bytes: 2, then used longest ago, leaves with its 4 bytes, and 1 with its 6.
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
    // 1 left the small queue unhit and is remembered: asked for again it enters main and outlives a scan.
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
