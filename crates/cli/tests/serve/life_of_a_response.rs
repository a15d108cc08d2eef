//! A response of the origin from its first fetch to its last use: stored for as long as the origin allows, with Cache-Status, Age
//! and Via, and then fetched again.

use crate::common::origin::Origin;
use crate::common::server::Server;

#[test]
fn a_miss_then_a_hit() {
    let origin = Origin::counting("Cache-Control: max-age=60\r\nContent-Type: text/plain\r\nX-Own: yes");
    let server = Server::over_origin(&origin.url());
    let miss = server.get("/a?b=c");
    assert_eq!(miss.status, 200);
    assert!(miss.cache().starts_with("Eyewall; fwd=uri-miss; fwd-status=200; stored; ttl="), "{}", miss.cache());
    let hit = server.get("/a?b=c");
    assert!(hit.cache().starts_with("Eyewall; hit; ttl="), "{}", hit.cache());
    assert!(hit.field("age").parse::<u64>().unwrap() <= 60);
    for reply in [miss, hit] {
        assert_eq!((reply.text(), reply.field("content-length")), ("1", "1"));
        assert_eq!((reply.field("content-type"), reply.field("x-own")), ("text/plain", "yes"));
        assert_eq!(reply.field("via"), "1.1 eyewall");
        assert!(!reply.field("date").is_empty());
    }
    let asked = origin.asked();
    assert_eq!((asked.len(), asked[0].target.as_str()), (1, "/a?b=c"));
    assert_eq!((asked[0].field("host"), asked[0].field("via")), ("test", "1.1 eyewall"));
}

#[test]
fn each_address_is_an_entry_of_its_own() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::over_origin(&origin.url());
    for (target, text) in [("/", "1"), ("/?", "2"), ("/?a", "3"), ("/A", "4"), ("/a", "5"), ("/", "1"), ("/a", "5")] {
        assert_eq!(server.get(target).text(), text, "{target}");
    }
}

#[test]
fn an_expired_response_is_fetched_again() {
    let origin = Origin::counting("Cache-Control: max-age=1");
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").text(), "1");
    let again = server.get_until("/", |reply| reply.text() != "1");
    assert_eq!(again.text(), "2");
    assert!(!again.is_hit());
}

#[test]
fn age_and_date_of_another_cache_count() {
    let origin = Origin::counting("Cache-Control: max-age=60\r\nAge: 20\r\nCache-Status: Other; hit");
    let server = Server::over_origin(&origin.url());
    let miss = server.get("/");
    assert_eq!((miss.field("age"), miss.field("cache-status")), ("20", "Other; hit"));
    assert!(miss.cache().starts_with("Eyewall; fwd=uri-miss"), "ours comes last: {}", miss.cache());
    let hit = server.get("/");
    assert!((20..60).contains(&hit.field("age").parse::<u64>().unwrap()), "{}", hit.field("age"));
    assert!(hit.field("cache-status").starts_with("Eyewall; hit"), "the other one had no part in it");
}

#[test]
fn directives_for_shared_caches_override_those_for_browsers() {
    let origin = Origin::counting("Cache-Control: max-age=0, s-maxage=60");
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").text(), "1");
    assert_eq!(server.get("/").text(), "1");
}

#[test]
fn a_404_is_stored_too() {
    let origin = Origin::answering(|_| (404, "Cache-Control: max-age=60".to_owned(), b"gone".to_vec()));
    let server = Server::over_origin(&origin.url());
    for _ in 0..2 {
        let reply = server.get("/");
        assert_eq!((reply.status, reply.text()), (404, "gone"));
    }
    assert_eq!(origin.asked().len(), 1);
}

#[test]
fn a_response_without_a_length_is_stored_when_it_is_whole() {
    use std::io::Write as _;
    let origin = Origin::raw(|_, stream| {
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
        let _ = stream.write_all(format!("{head}5\r\nhello\r\n7\r\n, world\r\n0\r\nX-Trailer: 1\r\n\r\n").as_bytes());
    });
    let server = Server::over_origin(&origin.url());
    let miss = server.get("/");
    assert_eq!((miss.text(), miss.is_whole), ("hello, world", true));
    let hit = server.get("/");
    assert_eq!((hit.text(), hit.field("content-length"), hit.is_hit()), ("hello, world", "12", true));
}
