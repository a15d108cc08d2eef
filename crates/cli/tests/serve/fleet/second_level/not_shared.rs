//! What doesn't belong into a store that others read, or isn't worth its space.

use super::{is_shared, node};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

#[test]
fn what_was_asked_for_once_or_is_private_large_or_failed_stays_at_its_node() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::answering(|asked| {
        let public = "Cache-Control: max-age=600\r\nETag: \"1\"".to_owned();
        match asked.target.as_str() {
            "/private" => (200, "Cache-Control: private, max-age=600".to_owned(), b"mine".to_vec()),
            "/cookie" => (200, format!("{public}\r\nSet-Cookie: a=b"), b"mine".to_vec()),
            "/large" => (200, public, vec![b'x'; 600_000]),
            "/broken" => (503, String::new(), Vec::new()),
            _ => (200, public, b"page".to_vec()),
        }
    });
    let (maker, other) = (node(&redis.url(), &origin.url()), node(&redis.url(), &origin.url()));
    let targets = ["/private", "/cookie", "/large", "/broken", "/once"];
    for target in targets {
        for _ in 0..3 {
            maker.server.get(target);
            if target == "/once" {
                break;
            }
        }
    }
    // Offers come in their order: whatever was worth one has been stored when this is.
    maker.share("/twice");
    assert!(is_shared(&other.server.get("/twice")));
    for target in targets {
        let reply = other.server.get(target);
        assert!(!is_shared(&reply), "{target}: {reply:?}");
    }
}

#[test]
fn a_client_that_demands_a_new_response_gets_one() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let (maker, other) = (node(&redis.url(), &origin.url()), node(&redis.url(), &origin.url()));
    maker.share("/a");
    let reply = other.server.ask("GET", "/a", &["Cache-Control: no-cache"]);
    assert!(!is_shared(&reply) && reply.text() == "2", "{reply:?}");
}
