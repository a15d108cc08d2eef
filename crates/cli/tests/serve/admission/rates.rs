//! A client that sends too many requests gets 429, and others are answered.

use super::{get_from, server, statuses};
use crate::common::client::Reply;
use crate::common::origin::Origin;

/// More than the burst and the rate allow in the time of a test.
const MANY: usize = 100;
const LIMITS: &str = "requests_per_second = 1\nrequest_burst = 3";

fn assert_limited(statuses: &[u16]) {
    assert_eq!(statuses.len(), MANY);
    assert_eq!(statuses[..3], [200; 3], "the burst is served");
    assert!(statuses.contains(&429), "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 429)), "{statuses:?}");
}

#[test]
fn hits_of_the_fast_path_count() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let server = server(&origin, LIMITS, "");
    server.get_until("/page", Reply::is_hit);
    assert_limited(&statuses(&server, "192.0.2.7", "/page", MANY));
    let refused = get_from(&server, "192.0.2.7", "/page");
    assert_eq!((refused.status, refused.field("retry-after")), (429, "1"));
    assert_eq!(get_from(&server, "192.0.2.8", "/page").status, 200, "another client has another bucket");
}

#[test]
fn other_requests_count() {
    let origin = Origin::counting("Cache-Control: no-store");
    let server = server(&origin, LIMITS, "");
    assert_limited(&statuses(&server, "192.0.2.7", "/page", MANY));
    assert!(origin.asked().len() < MANY, "the origin doesn't get what is refused");
}

#[test]
fn a_network_of_ipv6_is_one_client() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let server = server(&origin, LIMITS, "");
    statuses(&server, "2001:db8::1", "/page", MANY);
    assert_eq!(get_from(&server, "2001:db8::2", "/page").status, 429);
    assert_eq!(get_from(&server, "2001:db8:0:1::2", "/page").status, 200);
}

#[test]
fn a_site_may_have_a_rate_for_all_clients() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let server = server(&origin, "", "total_requests_per_second = 1\ntotal_request_burst = 3");
    server.get_until("/page", Reply::is_hit);
    let statuses = statuses(&server, "192.0.2.7", "/page", MANY);
    assert!(statuses.contains(&429) && statuses.iter().all(|status| matches!(status, 200 | 429)), "{statuses:?}");
    for target in ["/page", "/other"] {
        let refused = get_from(&server, "192.0.2.8", target);
        assert_eq!((refused.status, refused.field("retry-after")), (429, "1"), "{target}");
        assert!(refused.text().contains("requests for this site"), "{}", refused.text());
    }
}

#[test]
fn a_site_may_have_a_rate_of_its_own() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let server = server(&origin, "", LIMITS);
    server.get_until("/page", Reply::is_hit);
    assert_limited(&statuses(&server, "192.0.2.7", "/page", MANY));
}
