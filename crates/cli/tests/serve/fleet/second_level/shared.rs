//! What one node has made and was asked for again, another one gets without the origin.

use super::{FIELDS, is_shared, node};
use crate::common::command::{eyewall, run};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

#[test]
fn a_response_is_made_once_for_all_nodes() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let maker = node(&redis.url(), &origin.url());
    maker.share("/a");
    let other = node(&redis.url(), &origin.url());
    let reply = other.server.get("/a");
    assert!(is_shared(&reply) && reply.cache().contains("fwd=uri-miss"), "{reply:?}");
    assert!(reply.cache().contains("stored"), "{reply:?}");
    assert_eq!((reply.status, reply.text(), reply.field("etag")), (200, "1", "\"1\""));
    assert!(!reply.field("age").is_empty() && reply.field("xkey") == "post-7", "{reply:?}");
    assert!(other.is_hit("/a"));
    assert_eq!(origin.asked().len(), 1);
    let level = other.level();
    assert_eq!((&level["kind"], &level["state"], &level["hits"]), (&"redis".into(), &"closed".into(), &1.into()));
    assert_eq!(other.status()["second_level"], level);
    let shown = run(eyewall().args(["fleet", "--server"]).arg(other.admin.path()), b"").text().to_owned();
    assert!(shown.contains("\nsecond level (redis): misses ask it, 1 hit, "), "{shown}");
    // It comes from the second level, so it isn't offered again.
    assert!(other.is_hit("/a"));
    maker.share("/b");
    assert_eq!(other.level()["stored"], 0);
    // Its tags came along.
    other.purge_and_wait(r#"{"tag": "post-7"}"#);
    assert!(!other.is_hit("/a"));
}

#[test]
fn variants_are_shared_each_for_itself() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::answering(|asked| {
        let language = asked.field("accept-language").to_owned();
        (200, format!("{FIELDS}\r\nVary: Accept-Language"), language.into_bytes())
    });
    let (maker, other) = (node(&redis.url(), &origin.url()), node(&redis.url(), &origin.url()));
    for language in ["de", "en"] {
        let field = format!("Accept-Language: {language}");
        let before = maker.level()["stored"].as_u64().unwrap();
        while !maker.server.ask("GET", "/a", &[&field]).is_hit() {}
        // The response, and the fields that its address varies by.
        maker.await_level(|level| level["stored"].as_u64().unwrap() >= before + 2);
    }
    for language in ["en", "de"] {
        let reply = other.server.ask("GET", "/a", &[&format!("Accept-Language: {language}")]);
        assert!(is_shared(&reply) && reply.text() == language, "{reply:?}");
    }
    let reply = other.server.ask("GET", "/a", &["Accept-Language: fr"]);
    assert!(!is_shared(&reply) && reply.text() == "fr", "{reply:?}");
    assert_eq!(origin.asked().len(), 3);
}

#[test]
fn a_node_that_starts_after_many_purges_gets_what_they_spared() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let maker = node(&redis.url(), &origin.url());
    for target in ["/a", "/b", "/shop/c"] {
        maker.share(target);
    }
    for number in 0..300 {
        let reply = maker.server.ask("PURGE", &format!("/other/{number}"), &[]);
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    maker.purge_and_wait(r#"{"url": "http://test/a"}"#);
    maker.purge_and_wait(r#"{"prefix": "http://test/shop/"}"#);
    let other = node(&redis.url(), &origin.url());
    let level = |target: &str| is_shared(&other.server.get(target));
    assert!(level("/b"));
    assert!(!level("/a") && !level("/shop/c"));
    assert_eq!(other.level()["outdated"], 2);
}

#[test]
fn a_reload_keeps_what_is_known_of_earlier_purges() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let (maker, other) = (node(&redis.url(), &origin.url()), node(&redis.url(), &origin.url()));
    let targets: Vec<String> = (0..20).map(|number| format!("/{number}")).collect();
    for target in targets.iter().chain([&"/purged".to_owned()]) {
        maker.share(target);
    }
    maker.purge_and_wait(r#"{"url": "http://test/purged"}"#);
    other.admin.reload();
    assert!(is_shared(&other.server.get(&targets[0])));
    // With other keys, earlier lines mean something else, so they are read again.
    other.server.change(|text| text.replace("key = {", "key = { strip_query = [\"ref\"],"));
    other.admin.reload();
    assert!(targets[1..].iter().any(|target| is_shared(&other.server.get(target))), "{}", other.level());
    assert!(!is_shared(&other.server.get("/purged")));
}
