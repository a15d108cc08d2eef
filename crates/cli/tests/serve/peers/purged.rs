//! A purged response comes back from no other node.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use eyewall::{Cache, Purge};

use super::{Node, Peers, is_of_peer};
use crate::common::client::Reply;
use crate::common::origin::Origin;
use crate::common::redis::Redis;

const FIELDS: &str = "Cache-Control: max-age=600, stale-while-revalidate=600\r\nETag: \"1\"\r\nXkey: news";

#[test]
fn each_kind_of_purge_holds_at_all_nodes_at_once() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let peers = Peers::start(&redis, 3, &format!("origins = [\"{}\"]", origin.url()));
    for round in 0..3 {
        for subject in [
            r#""url": "http://test/shop/a""#,
            r#""tag": "news""#,
            r#""prefix": "http://test/shop/""#,
            r#""host": "test""#,
            r#""everything": true"#,
        ] {
            // Kept at every node.
            for node in peers.nodes.iter().chain(&peers.nodes) {
                node.get("/shop/a");
            }
            let before = origin.asked().len();
            // Without a wait for the others: they judge what they get from each other.
            let purger = &peers.nodes[round % 3];
            assert_eq!(purger.admin.purge(&format!("{{{subject}}}")).status, 200);
            let reply = purger.get("/shop/a");
            assert!(reply.text().parse::<usize>().unwrap() > before, "{subject}: {reply:?} after {before}");
        }
    }
}

/// An origin whose first answer for a target waits until it is let go.
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

#[test]
fn a_fill_of_the_home_from_before_a_purge_is_not_taken_after_it() {
    let Some(redis) = Redis::start(&[]) else { return };
    let gate = Gate(Arc::default());
    let (waits, count) = (Arc::clone(&gate.0), Mutex::new(0));
    let origin = Origin::answering(move |asked| {
        let number = {
            let mut count = count.lock().unwrap();
            *count += 1;
            *count
        };
        if asked.field("x-slow") == "yes" {
            let is_open = waits.0.lock().unwrap();
            drop(waits.1.wait_while(is_open, |is_open| !*is_open).unwrap());
        }
        (200, FIELDS.to_owned(), number.to_string().into_bytes())
    });
    let peers = Peers::start(&redis, 2, &format!("origins = [\"{}\"]", origin.url()));
    let target = peers.cold(0, "slow");
    let (home, other): (&Node, &Node) = (&peers.nodes[0], &peers.nodes[1]);
    let before = origin.asked().len();
    std::thread::scope(|scope| {
        // A client of the other node, whose request the home sends to the origin.
        let early = scope.spawn(|| other.server.ask("GET", &target, &["X-Slow: yes"]));
        while origin.asked().len() == before {
            std::thread::sleep(Duration::from_millis(1));
        }
        let version = before + 1;
        other.purge_and_wait(r#"{"tag": "news"}"#);
        for node in [other, home, other, home] {
            let reply = node.get(&target);
            assert!(reply.text().parse::<usize>().unwrap() > version, "{reply:?} is not newer than {version}");
        }
        gate.open();
        early.join().unwrap();
        for node in [other, home, other, home] {
            let reply = node.get(&target);
            assert!(reply.text().parse::<usize>().unwrap() > version, "{reply:?} is not newer than {version}");
        }
    });
}

/// The purge has no line, so no other node can know of it.
#[test]
fn a_purge_of_a_program_holds_at_its_node_while_the_log_is_gone() {
    let Some(mut redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let peers = Peers::start(&redis, 2, &format!("origins = [\"{}\"]", origin.url()));
    let target = peers.cold(0, "page");
    let (home, other) = (&peers.nodes[0], &peers.nodes[1]);
    home.get(&target);
    assert!(is_of_peer(&other.get(&target)));
    redis.kill();
    Cache::open(other.volume()).unwrap().purge_tag("news", Purge::Hard).unwrap();
    let before = origin.asked().len();
    let reply = other.get(&target);
    assert!(reply.text().parse::<usize>().unwrap() > before, "{reply:?} after {before}");
}

/// A user sees his own comment, and soon at every node.
#[test]
fn what_a_post_changes_is_taken_from_no_other_node() {
    let Some(mut redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting(FIELDS);
    let peers = Peers::start(&redis, 2, &format!("origins = [\"{}\"]", origin.url()));
    let (home, other) = (&peers.nodes[0], &peers.nodes[1]);
    let (first, second) = (peers.cold(0, "first"), peers.cold(0, "second"));
    let post = |target: &str| {
        home.get(target);
        assert!(is_of_peer(&other.get(target)));
        assert_eq!(other.server.ask("POST", target, &["Content-Length: 0"]).status, 200);
        let before = origin.asked().len();
        let is_new = move |reply: &Reply| reply.text().parse::<usize>().unwrap() > before;
        let reply = other.get(target);
        assert!(is_new(&reply), "{reply:?} after {before}");
        is_new
    };
    home.server.get_until(&first, post(&first));
    redis.kill();
    let _is_new = post(&second);
}

#[test]
fn a_softly_purged_response_is_validated_once_for_all() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::answering(|asked| {
        let status = if asked.field("if-none-match") == "\"1\"" { 304 } else { 200 };
        (status, FIELDS.to_owned(), if status == 304 { Vec::new() } else { b"the news".to_vec() })
    });
    let peers = Peers::start(&redis, 2, &format!("origins = [\"{}\"]", origin.url()));
    let target = peers.cold(0, "soft");
    let (home, other) = (&peers.nodes[0], &peers.nodes[1]);
    for node in [home, other, other] {
        node.get(&target);
    }
    assert!(other.get(&target).is_hit());
    let before = origin.asked().len();
    other.purge_and_wait(r#"{"tag": "news", "soft": true}"#);
    let reply = other.server.ask("GET", &target, &["Cache-Control: max-stale=0, max-age=600"]);
    assert_eq!(reply.text(), "the news");
    assert!(reply.cache().contains("fwd=stale; fwd-status=304"), "{reply:?}");
    for node in [home, other] {
        assert!(node.get(&target).is_hit());
    }
    assert_eq!(origin.asked().len(), before + 1);
}

#[test]
fn purges_hold_while_all_nodes_ask_each_other() {
    let Some(redis) = Redis::start(&[]) else { return };
    let version = Arc::new(AtomicUsize::new(0));
    let present = Arc::clone(&version);
    let origin = Origin::answering(move |_| {
        let number = present.load(Ordering::SeqCst);
        // So that a purge finds fills under way.
        std::thread::sleep(Duration::from_millis(2));
        (200, FIELDS.to_owned(), number.to_string().into_bytes())
    });
    let peers = Peers::start(&redis, 3, &format!("origins = [\"{}\"]", origin.url()));
    let (nodes, is_over) = (&peers.nodes, AtomicBool::new(false));
    let number = |node: &Node, target: &str| node.get(target).text().parse::<usize>().unwrap();
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let is_over = &is_over;
            scope.spawn(move || {
                for turn in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    number(&nodes[(turn + reader) % 3], &format!("/{}", turn % 4));
                }
            });
        }
        for round in 0..45 {
            let newest = version.fetch_add(1, Ordering::SeqCst) + 1;
            let (purger, target) = (&nodes[round % 3], format!("/{}", round % 4));
            let subject = if round % 2 == 0 {
                "{\"tag\": \"news\"}".to_owned()
            } else {
                format!("{{\"url\": \"http://test{target}\"}}")
            };
            assert_eq!(purger.admin.purge(&subject).status, 200);
            let found = number(purger, &target);
            assert!(found >= newest, "round {round}: {found} is older than {newest}");
            purger.purge_and_wait(&subject);
            for node in nodes {
                let found = number(node, &target);
                assert!(found >= newest, "round {round}: {found} is older than {newest}");
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
