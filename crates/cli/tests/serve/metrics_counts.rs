//! The metrics count what clients have counted: each request once, with its verdict and status, and each byte of a body.

use std::io::{Read as _, Write as _};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;

use crate::common::admin::Socket;
use crate::common::client::{Reply, ask, connect, parse, send};
use crate::common::http2;
use crate::common::metrics::{Counts, Scrape};
use crate::common::origin::{Asked, Origin, nobody, respond};
use crate::common::server::Server;

fn note(counts: &mut Counts, site: &str, verdict: &str, reply: &Reply) {
    let (requests, bytes) = counts.entry([site, verdict, &reply.status.to_string()].map(str::to_owned)).or_default();
    *requests += 1;
    *bytes += reply.body.len() as u64;
}

/// An origin of pages with all kinds of lifetimes.
fn answer(asked: &Asked) -> (u16, String, Vec<u8>) {
    let fields = match asked.target.as_str() {
        "/page" => "Cache-Control: max-age=60\r\nETag: \"one\"",
        "/stale" => "Cache-Control: max-age=0, stale-while-revalidate=1000",
        "/checked" if asked.field("if-none-match") == "\"one\"" => {
            return (304, "Cache-Control: max-age=0\r\nETag: \"one\"".to_owned(), Vec::new());
        }
        "/checked" => "Cache-Control: max-age=0\r\nETag: \"one\"",
        "/teapot" => return (418, String::new(), b"short".to_vec()),
        _ => "Cache-Control: no-store",
    };
    (200, fields.to_owned(), vec![b'x'; 1000])
}

#[test]
fn each_request_is_counted_once_with_its_bytes() {
    let (socket, origin) = (Socket::new(), Origin::answering(answer));
    let dead = format!("http://{}", nobody());
    let server = Server::configured(&format!(
        "{}[[site]]\nhosts = [\"test\"]\norigins = [\"{}\"]\n\
         [[site]]\nhosts = [\"dead\"]\norigins = [\"{dead}\"]\n[site.cache]\nnegative_ttl = {{ 5xx = \"60s\" }}\n",
        socket.table(),
        origin.url()
    ));
    let mut counted = Counts::new();
    for (method, target, field, verdict, status) in [
        ("GET", "/page", "X-A: b", "miss", 200),
        ("GET", "/page", "X-A: b", "hit", 200),
        ("GET", "/page", "X-A: b", "hit", 200),
        ("GET", "/page", "Accept: */*", "hit", 200),
        ("HEAD", "/page", "X-A: b", "hit", 200),
        ("GET", "/page", "Range: bytes=0-9", "hit", 206),
        ("GET", "/page", "Range: bytes=2000-", "hit", 416),
        ("GET", "/page", "If-None-Match: \"one\"", "hit", 304),
        ("GET", "/stale", "X-A: b", "miss", 200),
        ("GET", "/stale", "X-A: b", "stale", 200),
        ("GET", "/checked", "X-A: b", "miss", 200),
        ("GET", "/checked", "X-A: b", "revalidated", 200),
        ("GET", "/none", "X-A: b", "pass", 200),
        ("GET", "/teapot", "X-A: b", "pass", 418),
        ("POST", "/form", "Content-Length: 0", "pass", 200),
        ("OPTIONS", "*", "X-A: b", "none", 204),
    ] {
        let reply = server.ask(method, target, &[field]);
        assert_eq!(reply.status, status, "{method} {target} {field}: {reply:?}");
        // An asterisk is for the server, not for a site. Few statuses have a series of their own.
        let reply = if status == 418 { Reply { status: 400, ..reply } } else { reply };
        note(&mut counted, if target == "*" { "-" } else { "test" }, verdict, &reply);
    }
    let rare = counted.remove(&["test", "pass", "400"].map(str::to_owned)).unwrap();
    counted.insert(["test", "pass", "4xx"].map(str::to_owned), rare);
    for (host, verdict) in [("dead", "error"), ("dead", "hit"), ("unknown", "none")] {
        let mut client = connect(server.address);
        write!(client, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).unwrap();
        note(&mut counted, if host == "dead" { host } else { "-" }, verdict, &parse(&bytes, false));
    }
    let scrape = Scrape::of(&socket);
    assert_eq!(scrape.counts(), counted, "{}", scrape.text);
    assert_eq!(scrape.sum("eyewall_remembered_failures_total", &[("site", "dead")]), 1);
    let hits = [("site", "test"), ("verdict", "hit")];
    assert_eq!(scrape.sum("eyewall_first_byte_seconds_count", &hits), scrape.sum("eyewall_requests_total", &hits));
}

#[test]
fn a_request_that_waits_for_another_one_is_told() {
    let (release, wait_for_release) = channel::<()>();
    let wait_for_release = Mutex::new(wait_for_release);
    let origin = Origin::raw(move |_, stream| {
        respond(stream, 200, "Cache-Control: max-age=60", 8, b"one ");
        let _ = wait_for_release.lock().unwrap().recv();
        let _ = stream.write_all(b"page");
    });
    let socket = Socket::new();
    let server = Server::configured(&format!("{}[[site]]\norigins = [\"{}\"]\n", socket.table(), origin.url()));
    let begin = || {
        let mut client = connect(server.address);
        send(&mut client, "GET", "/", &[]);
        let mut start = [0; 1];
        client.read_exact(&mut start).unwrap();
        client
    };
    let clients = [begin(), begin(), begin()];
    release.send(()).unwrap();
    for mut client in clients {
        client.read_to_end(&mut Vec::new()).unwrap();
    }
    let scrape = Scrape::of(&socket);
    assert_eq!(scrape.sum("eyewall_collapsed_requests_total", &[("site", "*")]), 2);
    assert_eq!(scrape.sum("eyewall_requests_total", &[("verdict", "miss")]), 3);
    assert_eq!(scrape.sum("eyewall_response_bytes_total", &[("verdict", "miss")]), 24);
}

#[test]
fn a_client_that_does_not_wait_is_counted_as_gone() {
    let (arrived, wait_for_arrival) = channel();
    let (release, wait_for_release) = channel::<()>();
    let wait_for_release = Mutex::new(wait_for_release);
    let origin = Origin::raw(move |_, _| {
        let _ = arrived.send(());
        let _ = wait_for_release.lock().unwrap().recv();
    });
    let socket = Socket::new();
    let server = Server::configured(&format!("{}[[site]]\norigins = [\"{}\"]\n", socket.table(), origin.url()));
    let mut client = connect(server.address);
    send(&mut client, "GET", "/", &[]);
    wait_for_arrival.recv().unwrap();
    drop(client);
    let gone = [("site", "*"), ("verdict", "none"), ("status", "499")];
    // The server learns it from its socket.
    Scrape::until(&socket, |scrape| scrape.sum("eyewall_requests_total", &gone) >= 1);
    drop(release);
    assert_eq!(Scrape::of(&socket).sum("eyewall_requests_total", &gone), 1);
}

#[test]
fn a_reload_keeps_all_counts_and_knows_new_sites() {
    let (socket, origin) = (Socket::new(), Origin::answering(answer));
    let site = |host: &str| format!("[[site]]\nhosts = [\"{host}\"]\norigins = [\"{}\"]\n", origin.url());
    let server = Server::configured(&format!("{}{}", socket.table(), site("test")));
    let mut kept = connect(server.address);
    let on_kept = |kept: &mut std::net::TcpStream| {
        kept.write_all(b"GET /page HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
        let mut bytes = Vec::new();
        while !bytes.ends_with(&[b'x'; 1000]) {
            let mut piece = [0; 4096];
            let count = kept.read(&mut piece).unwrap();
            bytes.extend(&piece[..count]);
        }
    };
    on_kept(&mut kept);
    on_kept(&mut kept);
    server.change(|text| format!("{text}{}", site("other")));
    socket.reload();
    on_kept(&mut kept);
    let of = |site: &str| {
        let scrape = Scrape::of(&socket);
        let sum = |verdict: &str| scrape.sum("eyewall_requests_total", &[("site", site), ("verdict", verdict)]);
        (sum("miss"), sum("hit"), scrape.samples("eyewall_requests_total").any(|(labels, _)| labels["site"] == site))
    };
    let hits = [("site", "test"), ("verdict", "hit")];
    Scrape::until(&socket, |scrape| scrape.sum("eyewall_requests_total", &hits) >= 2);
    assert_eq!((of("test"), of("other")), ((1, 2, true), (0, 0, true)));
    server.change(|text| text.replace("\"test\"", "\"third\""));
    socket.reload();
    assert_eq!((of("test"), of("third")), ((1, 2, true), (0, 0, true)), "the site is gone, its counts are not");
    server.change(|text| text.replace("\"third\"", "\"test\""));
    socket.reload();
    server.get("/page");
    assert_eq!(of("test"), (1, 3, true), "it goes on where it was");
}

/// Requests `/page` on a connection of its own, and reads the response to its end.
fn get_by_http2(server: &Server) {
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const END_STREAM: u8 = 1;
    let mut client = connect(server.address);
    let request = http2::frame(HEADERS, END_STREAM | 4, 1, http2::GET_PAGE);
    client.write_all(&[http2::PREFACE, &http2::frame(SETTINGS, 0, 0, b""), &request].concat()).unwrap();
    let mut head = [0; 9];
    loop {
        client.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        client.read_exact(&mut vec![0; length as usize]).unwrap();
        if head[3] != SETTINGS && head[8] == 1 && head[4] & END_STREAM != 0 {
            return;
        }
    }
}

#[test]
fn requests_over_http2_are_counted_too() {
    let (socket, origin) = (Socket::new(), Origin::answering(answer));
    let server = Server::configured(&format!("{}[[site]]\norigins = [\"{}\"]\n", socket.table(), origin.url()));
    for _ in 0..3 {
        get_by_http2(&server);
    }
    let bytes = |scrape: &Scrape| scrape.sum("eyewall_response_bytes_total", &[("status", "200")]);
    let scrape = Scrape::until(&socket, |scrape| bytes(scrape) >= 3000);
    assert_eq!((scrape.sum("eyewall_requests_total", &[("verdict", "hit")]), bytes(&scrape)), (2, 3000));
}

#[test]
fn scrapes_beside_load_never_see_a_number_shrink() {
    let (socket, origin) = (Socket::new(), Origin::answering(answer));
    let server = Server::configured(&format!("{}[[site]]\norigins = [\"{}\"]\n", socket.table(), origin.url()));
    let address = server.address;
    let clients: Vec<_> = (0..4)
        .map(|_| thread::spawn(move || (0..100).map(|_| ask(address, "GET", "/page", &[]).body.len()).sum::<usize>()))
        .collect();
    let mut before = Scrape::of(&socket);
    while !clients.iter().all(thread::JoinHandle::is_finished) {
        let now = Scrape::of(&socket);
        let growing = now.growing();
        for (series, value) in before.growing() {
            assert!(growing.get(&series).is_some_and(|now| *now >= value), "{series:?}");
        }
        drop(growing);
        before = now;
    }
    let bytes: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
    let scrape = Scrape::of(&socket);
    assert_eq!(scrape.sum("eyewall_requests_total", &[]), 400);
    assert_eq!(scrape.sum("eyewall_response_bytes_total", &[]), bytes as u64);
}
