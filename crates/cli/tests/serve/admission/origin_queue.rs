//! The origins of a site get no more than a number of requests at once. The others wait, and not without end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::server;
use crate::common::client::{Reply, get};
use crate::common::origin::Origin;

/// An origin that answers a request for `/slow...` when the test says so.
struct Held {
    origin: Origin,
    /// Each message releases one request.
    release: Sender<()>,
    most_at_once: Arc<AtomicUsize>,
}

fn held(fields: &'static str) -> Held {
    let (release, released): (Sender<()>, Receiver<()>) = channel();
    let released = Mutex::new(released);
    let (now, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let most_at_once = Arc::clone(&most);
    let origin = Origin::answering(move |asked| {
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        if asked.target.starts_with("/slow") {
            released.lock().unwrap().recv().unwrap();
        }
        now.fetch_sub(1, Ordering::SeqCst);
        (200, fields.to_owned(), b"page".to_vec())
    });
    Held { origin, release, most_at_once }
}

impl Held {
    /// Waits until the origin has got this many requests.
    fn wait_for(&self, count: usize) {
        while self.origin.asked().len() < count {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn one_waits_and_the_next_is_refused() {
    let held = held("Cache-Control: no-store");
    let server = server(&held.origin, "", "origin_requests = 1\norigin_queue = 1\norigin_wait = \"1h\"");
    let address = server.address;
    let first = thread::spawn(move || get(address, "/slow/1"));
    held.wait_for(1);
    let (answered, answers) = channel();
    for target in ["/slow/2", "/slow/3"] {
        let answered = answered.clone();
        thread::spawn(move || answered.send(get(address, target)).unwrap());
    }
    let refused: Reply = answers.recv().unwrap();
    assert_eq!((refused.status, refused.field("retry-after")), (503, "3600"));
    assert!(refused.cache().contains("origin-busy"), "{}", refused.cache());
    for _ in 0..2 {
        held.release.send(()).unwrap();
    }
    assert_eq!((first.join().unwrap().status, answers.recv().unwrap().status), (200, 200));
    assert_eq!(held.most_at_once.load(Ordering::SeqCst), 1);
}

#[test]
fn the_wait_is_bounded() {
    let held = held("Cache-Control: no-store");
    let server = server(&held.origin, "", "origin_requests = 1\norigin_wait = \"50ms\"");
    let address = server.address;
    let first = thread::spawn(move || get(address, "/slow"));
    held.wait_for(1);
    assert_eq!(server.get("/other").status, 503);
    assert_eq!(server.ask("POST", "/other", &["Content-Length: 0"]).status, 503);
    held.release.send(()).unwrap();
    assert_eq!(first.join().unwrap().status, 200);
    assert_eq!(server.get_until("/other", |reply| reply.status == 200).text(), "page");
    assert_eq!(held.origin.asked().len(), 2);
}

#[test]
fn a_stale_response_is_better_than_a_refusal() {
    let held = held("Cache-Control: max-age=0\r\nETag: \"1\"");
    let server = server(&held.origin, "", "origin_requests = 1\norigin_wait = \"50ms\"");
    assert_eq!(server.get("/page").status, 200);
    let address = server.address;
    let first = thread::spawn(move || get(address, "/slow"));
    held.wait_for(2);
    let stale = server.get("/page");
    assert_eq!(stale.status, 200);
    assert!(stale.is_hit() && stale.cache().contains("origin-busy"), "{}", stale.cache());
    held.release.send(()).unwrap();
    first.join().unwrap();
}

#[test]
fn requests_that_are_collapsed_need_no_place() {
    let held = held("Cache-Control: max-age=600");
    let server = server(&held.origin, "", "origin_requests = 1\norigin_queue = 0");
    let address = server.address;
    let first = thread::spawn(move || get(address, "/slow"));
    held.wait_for(1);
    let others: Vec<_> = (0..5).map(|_| thread::spawn(move || get(address, "/slow"))).collect();
    assert_eq!(server.get("/other").status, 503, "there is no queue");
    held.release.send(()).unwrap();
    assert_eq!(first.join().unwrap().status, 200);
    for other in others {
        assert_eq!(other.join().unwrap().status, 200);
    }
    assert_eq!(held.origin.asked().len(), 1);
}
