//! Eyewall passes on responses that the origin or the client keeps from shared caches, and never stores them.

use crate::common::client::Reply;
use crate::common::origin::Origin;
use crate::common::server::Server;

/// Asks twice, and sees the origin answer twice.
fn is_passed(fields: &'static str, why: &str) {
    let origin = Origin::counting(fields);
    let server = Server::over_origin(&origin.url());
    for text in ["1", "2"] {
        let reply = server.get("/");
        assert_eq!(reply.text(), text, "{fields}");
        assert_eq!(reply.cache(), format!("Eyewall; fwd=uri-miss; fwd-status=200; detail={why}"), "{fields}");
    }
}

#[test]
fn by_cache_control() {
    is_passed("Cache-Control: no-store", "no-store");
    is_passed("Cache-Control: max-age=60, No-Store", "no-store");
    is_passed("Cache-Control: max-age=60\r\nCache-Control: no-store", "no-store");
    is_passed("Cache-Control: private, max-age=60", "private");
    is_passed("Cache-Control: no-cache, max-age=60", "no-cache");
    is_passed("Cache-Control: max-age=0", "stale");
    is_passed("Cache-Control: max-age=60, s-maxage=0", "stale");
    is_passed("Cache-Control: max-age=60\r\nAge: 60", "stale");
}

#[test]
fn without_a_lifetime() {
    is_passed("Cache-Control: public", "no-lifetime");
    is_passed("Expires: 0", "stale");
}

#[test]
fn with_a_cookie() {
    is_passed("Cache-Control: max-age=60\r\nSet-Cookie: id=1", "set-cookie");
    let origin = Origin::counting("Cache-Control: max-age=60\r\nSet-Cookie: id=1");
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").field("set-cookie"), "id=1", "the one for whom it is gets it");
}

#[test]
fn when_it_varies_by_something_unknown() {
    is_passed("Cache-Control: max-age=60\r\nVary: *", "vary");
    is_passed("Cache-Control: max-age=60\r\nVary: Cookie, *", "vary");
}

#[test]
fn when_it_is_an_error_without_a_lifetime() {
    for (status, why) in [(500, "no-lifetime"), (503, "no-lifetime"), (403, "status")] {
        let origin = Origin::answering(move |_| (status, String::new(), b"no".to_vec()));
        let server = Server::over_origin(&origin.url());
        for _ in 0..2 {
            let reply = server.get("/");
            assert_eq!((reply.status, reply.text()), (status, "no"));
            assert_eq!(reply.cache(), format!("Eyewall; fwd=uri-miss; fwd-status={status}; detail={why}"));
        }
    }
}

#[test]
fn when_the_client_asks_for_that() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::over_origin(&origin.url());
    let reply = server.ask("GET", "/", &["Cache-Control: no-store"]);
    assert_eq!(reply.cache(), "Eyewall; fwd=uri-miss; fwd-status=200; detail=request-no-store");
    assert_eq!(server.get("/").text(), "2");
}

#[test]
fn a_range_that_the_origin_chooses_itself() {
    let origin = Origin::answering(|asked| {
        assert!(asked.field("range").starts_with("bytes=-"));
        (206, "Cache-Control: max-age=60\r\nContent-Range: bytes 3-4/5".to_owned(), b"lo".to_vec())
    });
    let server = Server::over_origin(&origin.url());
    for _ in 0..2 {
        let reply = server.ask("GET", "/", &["Range: bytes=-2"]);
        assert_eq!((reply.status, reply.text()), (206, "lo"));
        assert_eq!(reply.cache(), "Eyewall; fwd=uri-miss; fwd-status=206; detail=range");
    }
}

#[test]
fn a_part_that_no_client_asked_for() {
    let origin = Origin::answering(|_| {
        (206, "Cache-Control: max-age=60\r\nContent-Range: bytes 0-1/5".to_owned(), b"he".to_vec())
    });
    let server = Server::over_origin(&origin.url());
    for _ in 0..2 {
        let reply = server.get("/");
        assert_eq!((reply.status, reply.text()), (206, "he"));
        assert_eq!(reply.cache(), "Eyewall; fwd=uri-miss; fwd-status=206; detail=partial");
    }
}

#[test]
fn fields_for_one_user_are_not_stored() {
    let origin = Origin::counting("Cache-Control: max-age=60, private=\"x-user\"\r\nX-User: me\r\nX-All: yes");
    let server = Server::over_origin(&origin.url());
    let first = server.get("/");
    assert_eq!((first.field("x-user"), first.field("x-all")), ("me", "yes"));
    let hit = server.get_until("/", Reply::is_hit);
    assert_eq!((hit.field("x-user"), hit.field("x-all")), ("", "yes"));
}
