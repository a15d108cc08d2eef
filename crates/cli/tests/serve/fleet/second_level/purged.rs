//! Purged responses don't come back from the second level.

use super::{FIELDS, is_shared, node, node_beside};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

#[test]
fn a_purge_of_each_kind_covers_what_is_shared() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let [maker, other] = [(); 2].map(|()| node(&redis.url(), &origin.url()));
    for (number, subject) in [
        r#""url": "http://test/shop/0""#,
        r#""tag": "post-7""#,
        r#""tag": "post-7", "host": "test""#,
        r#""prefix": "http://test/shop/""#,
        r#""host": "test""#,
        r#""everything": true"#,
    ]
    .into_iter()
    .enumerate()
    {
        let target = format!("/shop/{number}");
        for soft in ["", r#", "soft": true"#] {
            maker.share(&target);
            let before = origin.asked().len();
            maker.purge_and_wait(&format!("{{{subject}{soft}}}"));
            for node in [&other, &maker] {
                // It may be shared, if the other node has made it since.
                let reply = node.server.get(&target);
                let is_new = reply.text().parse::<usize>().unwrap() > before;
                assert!(is_new && !reply.is_hit(), "{subject}{soft}: {reply:?}");
            }
            maker.purge_and_wait(&format!(r#"{{"url": "http://test{target}"}}"#));
        }
    }
}

#[test]
fn a_purge_while_the_object_is_on_its_way_covers_it() {
    let (Some(log), Some(level)) = (Redis::start(&[]), Redis::start(&[])) else { return };
    let origin = Origin::counting(FIELDS);
    let [maker, other] = [(); 2].map(|()| node_beside(&log.url(), &level.url(), &origin.url()));
    maker.share("/first");
    level.hang();
    maker.store("/a");
    maker.await_level(|level| level["waiting"] == 1);
    maker.purge_and_wait(r#"{"url": "http://test/a"}"#);
    level.wake();
    maker.await_level(|level| level["stored"] == 2);
    assert!(!is_shared(&other.server.get("/a")));
    assert_eq!(other.level()["outdated"], 1);
}
