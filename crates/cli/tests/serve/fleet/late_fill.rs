//! Responses that were under way when purges may have been missed, and those that began later.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use super::{Node, patient};
use crate::common::client::get;
use crate::common::origin::Origin;
use crate::common::redis::Redis;

#[test]
fn only_what_began_before_a_gap_is_not_sent_while_it_is_revalidated() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (held, has_asked) = (Arc::new((Mutex::new(true), Condvar::new())), Arc::new(AtomicBool::new(false)));
    let (holding, asked) = (Arc::clone(&held), Arc::clone(&has_asked));
    let origin = Origin::answering(move |request| {
        if request.target == "/late" && !asked.swap(true, Ordering::SeqCst) {
            let (is_held, changed) = &*holding;
            drop(changed.wait_while(is_held.lock().unwrap(), |is_held| *is_held).unwrap());
        }
        (200, "Cache-Control: max-age=1, stale-while-revalidate=600\r\nETag: \"1\"".to_owned(), b"page".to_vec())
    });
    let node = Node::start(&patient(&redis.url()), &origin.url());
    node.purge_and_wait(r#"{"url": "http://test/other"}"#);
    node.store("/early");
    let server = node.server.address;
    let late = thread::spawn(move || get(server, "/late").status);
    while !has_asked.load(Ordering::SeqCst) {
        thread::yield_now();
    }
    assert_eq!(redis.command("FLUSHALL"), "+OK");
    node.await_status(|status| status["gaps"] == 1 && status["state"] == "following");
    *held.0.lock().unwrap() = false;
    held.1.notify_all();
    assert_eq!(late.join().unwrap(), 200);
    for page in ["/early", "/late"] {
        let reply = node.server.get(page);
        assert!(reply.cache().contains("fwd=stale"), "{page}: {reply:?}");
    }
    node.store("/after");
    // Once it is stale, it is sent while it is revalidated, as the origin allows.
    let fetched = || origin.asked().iter().filter(|request| request.target == "/after").count();
    let before = fetched();
    while fetched() == before {
        assert!(node.is_hit("/after"));
    }
}
