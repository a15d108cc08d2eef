//! A response that would displace much is stored when it is asked for a second time. Until half of the volume has been written, each
//! is stored at once.

use std::io::{Read, Write as _};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::common::client::{Reply, connect, send};
use crate::common::command::Volume;
use crate::common::origin::{Asked, Origin, respond};
use crate::common::server::Server;

const FIELDS: &str = "Cache-Control: max-age=6000";
const ASKED_ONCE: &str = "Eyewall; fwd=uri-miss; fwd-status=200; detail=asked-once";
/// More than a thirty-second part of the volume, and less than an entry may have.
const LARGE: usize = 50_000;

fn body(length: usize) -> Vec<u8> {
    (0..=250).cycle().take(length).collect()
}

/// Large objects that are stored whole or in fragments.
fn answer(asked: &Asked) -> (u16, String, Vec<u8>) {
    let fields = |more: &str| format!("{FIELDS}\r\n{more}");
    match asked.target.trim_end_matches(|letter: char| letter.is_ascii_digit()) {
        "/tagged" => (200, fields("ETag: \"a\""), body(LARGE)),
        "/varied" => (200, fields("Vary: Accept-Language"), body(LARGE)),
        "/changing" => (200, "Cache-Control: max-age=0\r\nETag: \"a\"".to_owned(), body(LARGE)),
        "/film" => (200, fields("ETag: \"a\""), body(100_000)),
        "/stream" => (200, FIELDS.to_owned(), body(100_000)),
        _ => (200, FIELDS.to_owned(), body(LARGE)),
    }
}

fn serve(origin: &Origin) -> (Volume, Server) {
    let volume = Volume::sized("1M");
    let server = Server::spawn(&mut volume.command(["serve", "--listen", "127.0.0.1:0", "--origin", &origin.url()]));
    (volume, server)
}

/// Writes more than half of the volume. These keys aren't asked for before, so the volume remembers no request for them.
fn fill(volume: &Volume) {
    for number in 0..9 {
        volume.put(format!("page {number}"), &body(60_000));
    }
}

/// The first target of this kind whose first request doesn't store it, by these requests. Rarely, the volume takes one key for another that
/// it remembers, and then stores an object at once.
fn asked_once(kind: &str, ask: impl Fn(&str) -> Vec<Reply>) -> String {
    let is_asked_once = |target: &String| ask(target).iter().all(|reply| reply.cache() == ASKED_ONCE);
    (0..4).map(|number| format!("{kind}{number}")).find(is_asked_once).expect("most keys are asked for once")
}

#[test]
fn the_second_request_stores_it() {
    let origin = Origin::answering(answer);
    let (volume, server) = serve(&origin);
    assert!(server.get("/early").cache().contains("; stored"), "there is room");
    fill(&volume);
    for (kind, length) in [("/whole", LARGE), ("/film", 100_000), ("/stream", 100_000)] {
        let is_right = |reply: &Reply| reply.is_whole && reply.body == body(length);
        let target = asked_once(kind, |target| {
            let reply = server.get(target);
            assert!(is_right(&reply), "{target}");
            vec![reply]
        });
        let [second, third] = [(); 2].map(|()| server.get(&target));
        assert!(second.cache().contains("; stored") && is_right(&second), "{}", second.cache());
        assert!(third.is_hit() && is_right(&third), "{}", third.cache());
        assert_eq!(origin.asked().iter().filter(|asked| asked.target == target).count(), 2);
    }
}

#[test]
fn each_variant_has_requests_of_its_own() {
    let origin = Origin::answering(answer);
    let (volume, server) = serve(&origin);
    fill(&volume);
    let ask = |target: &str, language: &str| server.ask("GET", target, &[&format!("Accept-Language: {language}")]);
    let target = asked_once("/varied", |target| vec![ask(target, "de"), ask(target, "en")]);
    assert!(ask(&target, "de").cache().contains("; stored"));
    assert!(ask(&target, "de").is_hit());
    let other = ask(&target, "en");
    assert!(other.cache().contains("; stored"), "{}", other.cache());
}

#[test]
fn a_range_a_copy_at_the_client_and_an_unknown_length_are_no_reason_to_wait() {
    let origin = Origin::raw(|asked, stream| {
        if asked.target == "/endless" {
            let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n{FIELDS}\r\nConnection: close\r\n\r\n").as_bytes());
            let _ = stream.write_all(&body(LARGE));
            return;
        }
        let (status, fields, body) = answer(asked);
        respond(stream, status, &fields, body.len(), &body);
    });
    let (volume, server) = serve(&origin);
    fill(&volume);
    server.get("/endless");
    assert_eq!(server.ask("GET", "/tagged1", &["Range: bytes=0-9"]).body, body(10));
    assert_eq!(server.ask("GET", "/tagged2", &["If-None-Match: \"a\""]).status, 304);
    for target in ["/endless", "/tagged1", "/tagged2"] {
        server.get_until(target, |reply| reply.is_hit() && reply.body == body(LARGE));
        assert_eq!(origin.asked().iter().filter(|asked| asked.target == target).count(), 1, "{target}");
    }
}

#[test]
fn a_response_that_replaces_another_is_stored() {
    let origin = Origin::answering(answer);
    let (volume, server) = serve(&origin);
    assert!(server.get("/changing").cache().contains("; stored"));
    fill(&volume);
    let replaced = server.get("/changing");
    assert_eq!(replaced.cache(), "Eyewall; fwd=stale; fwd-status=200; stored; ttl=0");
}

#[test]
fn clients_that_come_meanwhile_share_it() {
    let (release, wait_for_release) = channel::<()>();
    let wait_for_release = Mutex::new(wait_for_release);
    let origin = Origin::raw(move |asked, stream| {
        let (status, fields, body) = answer(asked);
        respond(stream, status, &fields, body.len(), &body[..1]);
        let _ = wait_for_release.lock().unwrap().recv();
        let _ = stream.write_all(&body[1..]);
    });
    let (volume, server) = serve(&origin);
    fill(&volume);
    let mut clients = [(); 2].map(|()| connect(server.address));
    let heads: Vec<String> = clients
        .iter_mut()
        .map(|client| {
            send(client, "GET", "/whole", &[]);
            read_head(client)
        })
        .collect();
    release.send(()).unwrap();
    assert!(heads[0].contains(ASKED_ONCE), "{}", heads[0]);
    assert!(heads[1].contains("; collapsed") && heads[1].contains("detail=asked-once"), "{}", heads[1]);
    assert!(heads.iter().all(|head| head.contains(&format!("\r\ncontent-length: {LARGE}\r\n"))));
    for client in &mut clients {
        let mut whole = Vec::new();
        client.read_to_end(&mut whole).unwrap();
        assert!(whole == body(LARGE));
    }
    assert_eq!(origin.asked().iter().filter(|asked| asked.target == "/whole").count(), 1);
}

/// The head of a response, before an unfinished body.
fn read_head(client: &mut impl Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}
