//! A server that was away catches up before it answers, and keeps the rest.

use std::path::Path;

use super::{Node, patient};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

const FIELDS: &str = "Cache-Control: max-age=600\r\nETag: \"1\"";

fn on_disk(path: &Path, fleet: &str, origin: &Origin) -> Node {
    Node::with(fleet, &origin.url(), &format!("[cache]\npath = \"{}\"\nsize = \"8M\"\n", path.display()))
}

#[test]
fn purges_of_an_absence_are_caught_up_and_nothing_else_is_lost() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (origin, folder) = (Origin::counting(FIELDS), tempfile::tempdir().unwrap());
    let (path, fleet) = (folder.path().join("volume"), patient(&redis.url()));
    let stayed = Node::start(&fleet, &origin.url());
    let away = on_disk(&path, &fleet, &origin);
    stayed.purge_and_wait(r#"{"url": "http://test/other"}"#);
    away.store("/a");
    away.store("/b");
    drop(away);
    for _ in 0..300 {
        assert_eq!(stayed.admin.purge(r#"{"url": "http://test/a"}"#).status, 200);
    }
    let back = on_disk(&path, &fleet, &origin);
    assert!(back.server.get("/a").cache().contains("fwd=uri-miss"));
    assert!(back.is_hit("/b"));
    assert_eq!(back.status()["gaps"], 0);
}

#[test]
fn a_copy_of_a_volume_may_lack_purges_so_it_revalidates_everything() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (origin, folder) = (Origin::counting(FIELDS), tempfile::tempdir().unwrap());
    let [path, copy] = ["volume", "copy"].map(|name| folder.path().join(name));
    let fleet = patient(&redis.url());
    let node = on_disk(&path, &fleet, &origin);
    node.purge_and_wait(r#"{"url": "http://test/other"}"#);
    node.store("/b");
    drop(node);
    // After a power loss, too, parts of the file are of different ages.
    std::fs::copy(&path, &copy).unwrap();
    let copied = on_disk(&copy, &fleet, &origin);
    assert!(copied.server.get("/b").cache().contains("fwd=stale"));
    drop(copied);
    let again = on_disk(&copy, &fleet, &origin);
    again.store("/b");
    drop(again);
    assert!(on_disk(&copy, &fleet, &origin).is_hit("/b"), "its place counts again");
}

#[test]
fn a_node_that_missed_more_than_the_log_keeps_revalidates_everything() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (origin, folder) = (Origin::counting(FIELDS), tempfile::tempdir().unwrap());
    let (path, fleet) = (folder.path().join("volume"), format!("{}lines = 100\n", patient(&redis.url())));
    let stayed = Node::start(&fleet, &origin.url());
    let away = on_disk(&path, &fleet, &origin);
    away.store("/b");
    drop(away);
    for _ in 0..400 {
        assert_eq!(stayed.admin.purge(r#"{"url": "http://test/a"}"#).status, 200);
    }
    let back = on_disk(&path, &fleet, &origin);
    assert!(back.server.get("/b").cache().contains("fwd=stale"));
    assert_eq!(back.status()["gaps"], 1);
}
