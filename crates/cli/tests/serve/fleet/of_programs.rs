//! Programs that share a node's volume purge it: `eyewall purge --cache`, and those that use the library. Their purges reach all nodes.

use std::path::Path;

use eyewall::{Cache, Purge};

use super::{Node, patient};
use crate::common::command::{eyewall, run};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

const FIELDS: &str = "Cache-Control: max-age=600\r\nETag: \"1\"\r\nXkey: post-7";

fn on_disk(path: &Path, fleet: &str, origin: &Origin) -> Node {
    Node::with(fleet, &origin.url(), &format!("[cache]\npath = \"{}\"\nsize = \"8M\"\n", path.display()))
}

/// Purges the volume, and waits until another node doesn't use what it has stored.
fn assert_reaches(other: &Node, why: &str, purge: impl FnOnce()) {
    other.store("/shop/a");
    purge();
    let reply = other.await_miss("/shop/a");
    assert!(reply.cache().contains(why), "{reply:?}");
}

#[test]
fn purges_of_the_library_and_of_the_command_reach_all_nodes() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (origin, folder) = (Origin::counting(FIELDS), tempfile::tempdir().unwrap());
    let (path, fleet) = (folder.path().join("volume"), patient(&redis.url()));
    let other = Node::start(&fleet, &origin.url());
    // Two servers share the volume; one of them reads its outbox.
    let sharing = [(); 2].map(|()| on_disk(&path, &fleet, &origin));
    let cache = Cache::open(&path).unwrap();
    assert_reaches(&other, "fwd=uri-miss", || cache.purge_tag("post-7", Purge::Hard).unwrap());
    assert_reaches(&other, "fwd=stale", || cache.purge_prefix("http://test/shop/", Purge::Soft).unwrap());
    assert_reaches(&other, "fwd=uri-miss", || cache.purge_all(Purge::Hard).unwrap());
    assert_reaches(&other, "fwd=stale", || {
        let mut command = eyewall();
        command.args(["purge", "--soft", "--tag", "post-7", "--cache"]).arg(&path);
        let ended = run(&mut command, b"");
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    });
    // What a node purges itself goes straight to the log, and not to the outbox, too: it becomes one line.
    let before = other.status()["line"].as_u64().unwrap();
    sharing[0].purge_and_wait(r#"{"tag": "post-7"}"#);
    assert_eq!(other.status()["line"].as_u64(), Some(before + 1));
    let [one, two] = sharing;
    drop(one);
    assert_reaches(&other, "fwd=uri-miss", || cache.purge_tag("post-7", Purge::Hard).unwrap());
    drop(two);
    other.store("/shop/a");
    cache.purge_tag("post-7", Purge::Hard).unwrap();
    // Nobody reads it yet.
    let _next = on_disk(&path, &fleet, &origin);
    other.await_miss("/shop/a");
}

#[test]
fn purges_wait_in_the_outbox_while_redis_is_gone() {
    let Some(mut redis) = Redis::start(&[]) else { return };
    let (origin, folder) = (Origin::counting(FIELDS), tempfile::tempdir().unwrap());
    let (path, fleet) = (folder.path().join("volume"), patient(&redis.url()));
    let nodes = [on_disk(&path, &fleet, &origin), Node::start(&fleet, &origin.url())];
    nodes[1].store("/shop/a");
    redis.kill();
    let cache = Cache::open(&path).unwrap();
    for number in 0..1000 {
        cache.purge_tag(&format!("post-{number}"), Purge::Hard).unwrap();
    }
    assert!(nodes[1].is_hit("/shop/a"));
    redis.restart();
    nodes[1].await_status(|status| status["line"].as_u64() >= Some(1000));
    // If the other node came back after the purges were written, it has made everything stale instead.
    assert!(!nodes[1].is_hit("/shop/a"));
}
