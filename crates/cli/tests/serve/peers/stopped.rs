//! A node that stops ends the answers that it gives to other nodes, as those to its own clients.

use std::io::Write as _;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::Peers;
use crate::common::origin::Origin;
use crate::common::redis::Redis;

#[test]
fn a_home_that_stops_gives_the_rest_of_a_body() {
    let Some(redis) = Redis::start(&[]) else { return };
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let origin = Origin::raw(move |asked, stream| {
        let is_slow = asked.target.starts_with("/slow") && asked.field("x-slow") == "yes";
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 6\r\nConnection: close\r\n\r\nfir";
        stream.write_all(head.as_bytes()).unwrap();
        if is_slow {
            gate.lock().unwrap().recv().unwrap();
        }
        stream.write_all(b"st!").unwrap();
    });
    let mut peers = Peers::start(&redis, 2, &format!("origins = [\"{}\"]", origin.url()));
    let target = peers.cold(0, "slow");
    let (before, other) = (origin.asked().len(), &peers.nodes[1]);
    thread::scope(|scope| {
        let asking = scope.spawn(|| other.server.ask("GET", &target, &["X-Slow: yes"]));
        while origin.asked().len() == before {
            thread::sleep(Duration::from_millis(1));
        }
        peers.nodes[0].signal(Signal::TERM);
        // It accepts no more connections.
        while std::net::TcpStream::connect(peers.nodes[0].server.address).is_ok() {
            thread::sleep(Duration::from_millis(1));
        }
        open.send(()).unwrap();
        let reply = asking.join().unwrap();
        assert_eq!((reply.status, reply.text()), (200, "first!"), "{reply:?}");
        assert_eq!(origin.asked().len(), before + 1, "the home has made it");
    });
    assert!(peers.nodes[0].server.child.wait().unwrap().success());
}
