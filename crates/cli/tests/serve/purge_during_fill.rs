//! A purge during a fetch: the response that was requested before the purge is not stored after it.

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::common::admin::Socket;
use crate::common::client::ask;
use crate::common::command::Volume;
use crate::common::origin::Origin;
use crate::common::server::Server;

/// An origin that reports each request, and answers on command.
fn held() -> (Origin, Receiver<()>, Sender<()>) {
    let (arrived, wait_for_arrival) = channel();
    let (release, wait_for_release) = channel::<()>();
    let wait_for_release = Mutex::new(wait_for_release);
    let origin = Origin::raw(move |asked, stream| {
        let _ = arrived.send(());
        let _ = wait_for_release.lock().unwrap().recv();
        let fields = "Cache-Control: max-age=600\r\nETag: \"1\"\r\nXkey: page";
        if asked.field("if-none-match").is_empty() {
            // A body without a length ends for the client once it is decided whether it is stored.
            let fields = format!("{fields}\r\nTransfer-Encoding: chunked\r\nConnection: close");
            let _ = write!(stream, "HTTP/1.1 200 OK\r\n{fields}\r\n\r\n4\r\npage\r\n0\r\n\r\n");
        } else {
            let _ = write!(stream, "HTTP/1.1 304 Not Modified\r\n{fields}\r\nConnection: close\r\n\r\n");
        }
    });
    (origin, wait_for_arrival, release)
}

const PURGES: [&str; 5] = [
    r#""url": "http://test/""#,
    r#""tag": "page""#,
    r#""prefix": "http://test/""#,
    r#""host": "test""#,
    r#""everything": true"#,
];

fn server(origin: &Origin, socket: &Socket) -> Server {
    Server::configured(&format!("{}[[site]]\norigins = [\"{}\"]\n", socket.table(), origin.url()))
}

#[test]
fn a_response_in_flight_is_not_stored() {
    let (origin, wait_for_arrival, release) = held();
    let socket = Socket::new();
    let server = server(&origin, &socket);
    let address = server.address;
    for what in PURGES {
        let first = thread::spawn(move || ask(address, "GET", "/", &[]));
        wait_for_arrival.recv().unwrap();
        assert_eq!(socket.purge(&format!("{{{what}}}")).status, 200);
        // A request after the purge doesn't join a request from before it.
        let second = thread::spawn(move || ask(address, "GET", "/", &["Cache-Control: no-store"]));
        wait_for_arrival.recv().unwrap();
        release.send(()).unwrap();
        release.send(()).unwrap();
        assert_eq!(first.join().unwrap().text(), "page");
        assert_eq!(second.join().unwrap().text(), "page");
        release.send(()).unwrap();
        let third = server.get("/");
        wait_for_arrival.recv().unwrap();
        assert!(third.cache().contains("fwd=uri-miss"), "{what}: {third:?}");
        assert_eq!(socket.purge(r#"{"everything": true}"#).status, 200);
    }
}

#[test]
fn after_a_soft_one_it_is_stored_as_stale() {
    for what in PURGES {
        let (origin, wait_for_arrival, release) = held();
        let socket = Socket::new();
        let server = server(&origin, &socket);
        let address = server.address;
        let first = thread::spawn(move || ask(address, "GET", "/", &[]));
        wait_for_arrival.recv().unwrap();
        assert_eq!(socket.purge(&format!("{{{what}, \"soft\": true}}")).status, 200);
        release.send(()).unwrap();
        assert_eq!(first.join().unwrap().text(), "page");
        release.send(()).unwrap();
        let second = server.get("/");
        wait_for_arrival.recv().unwrap();
        assert!(second.cache().contains("fwd=stale; fwd-status=304"), "{what}: {second:?}");

        // The same during revalidation.
        assert_eq!(socket.purge(&format!("{{{what}, \"soft\": true}}")).status, 200);
        let third = thread::spawn(move || ask(address, "GET", "/", &[]));
        wait_for_arrival.recv().unwrap();
        assert_eq!(socket.purge(&format!("{{{what}, \"soft\": true}}")).status, 200);
        release.send(()).unwrap();
        assert_eq!(third.join().unwrap().text(), "page");
        release.send(()).unwrap();
        let fourth = server.get("/");
        wait_for_arrival.recv().unwrap();
        assert!(fourth.cache().contains("fwd=stale; fwd-status=304"), "{what}: {fourth:?}");
    }
}

/// The arguments of `eyewall purge --cache`, by which another process purges the server's volume.
const BY_ANOTHER_PROCESS: [&[&str]; 3] = [&["--tag", "page"], &["--prefix", "http://test/"], &["--all"]];

fn over_volume(volume: &Volume, origin: &Origin) -> Server {
    Server::spawn(&mut volume.command(["serve", "--listen", "127.0.0.1:0", "--origin", &origin.url()]))
}

fn purge_by_another_process(volume: &Volume, words: &[&str], soft: &[&str]) {
    let ended = volume.run([&["purge"], words, soft].concat());
    assert_eq!(ended.code, 0, "{words:?}: {}", ended.stderr);
}

#[test]
fn one_by_another_process_wins_too() {
    for words in BY_ANOTHER_PROCESS {
        let (origin, wait_for_arrival, release) = held();
        let volume = Volume::new();
        let server = over_volume(&volume, &origin);
        let address = server.address;
        let asking = || thread::spawn(move || ask(address, "GET", "/", &[]));
        let first = asking();
        wait_for_arrival.recv().unwrap();
        purge_by_another_process(&volume, words, &[]);
        release.send(()).unwrap();
        assert_eq!(first.join().unwrap().text(), "page");

        let second = asking();
        wait_for_arrival.recv().unwrap();
        purge_by_another_process(&volume, words, &[]);
        // A request after the purge doesn't join a request from before it, and isn't superseded by it.
        let third = asking();
        wait_for_arrival.recv().unwrap();
        release.send(()).unwrap();
        release.send(()).unwrap();
        for asked in [second, third] {
            let reply = asked.join().unwrap();
            assert!(reply.cache().contains("fwd=uri-miss"), "{words:?}: {reply:?}");
        }
        assert!(server.get("/").is_hit(), "{words:?}");
    }
}

#[test]
fn after_a_soft_one_by_another_process_it_is_stored_as_stale() {
    for words in BY_ANOTHER_PROCESS {
        let (origin, wait_for_arrival, release) = held();
        let volume = Volume::new();
        let server = over_volume(&volume, &origin);
        let address = server.address;
        for round in 0..3 {
            // It is fetched first, then revalidated.
            let asked = thread::spawn(move || ask(address, "GET", "/", &[]));
            wait_for_arrival.recv().unwrap();
            purge_by_another_process(&volume, words, &["--soft"]);
            release.send(()).unwrap();
            let reply = asked.join().unwrap();
            assert_eq!(reply.text(), "page");
            let expected = if round == 0 { "fwd=uri-miss" } else { "fwd=stale; fwd-status=304" };
            assert!(reply.cache().contains(expected), "{words:?}: {reply:?}");
        }
    }
}
