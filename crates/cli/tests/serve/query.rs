//! QUERY (RFC 10008) is a GET with content: the content is part of the key, and otherwise its responses are stored like those of a GET.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::client::{Reply, connect, parse, send};
use crate::common::origin::{Asked, Origin, respond};
use crate::common::server::{Server, Site};

/// The content of a request whose head the origin has read.
fn content(asked: &Asked, stream: &mut TcpStream) -> Vec<u8> {
    let mut content = vec![0; asked.field("content-length").parse().unwrap_or(0)];
    stream.read_exact(&mut content).unwrap();
    content
}

/// Answers each QUERY with its content and the number of requests so far, and any other request with the number alone.
fn answering(fields: &'static str) -> Origin {
    let count = AtomicUsize::new(0);
    Origin::raw(move |asked, stream| {
        let content = String::from_utf8(content(asked, stream)).unwrap();
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        let text = format!("{content}{number}");
        let has_it = !asked.field("if-none-match").is_empty();
        respond(stream, if has_it { 304 } else { 200 }, fields, text.len(), if has_it { b"" } else { text.as_bytes() });
    })
}

fn begin(server: SocketAddr, target: &str, fields: &[&str]) -> TcpStream {
    let mut stream = connect(server);
    send(&mut stream, "QUERY", target, fields);
    stream
}

fn reply(mut stream: TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    parse(&bytes, false)
}

fn query_with(server: SocketAddr, target: &str, fields: &[&str], content: &str) -> Reply {
    let length = format!("Content-Length: {}", content.len());
    let mut stream = begin(server, target, &[fields, &[&length]].concat());
    // A server that refuses it may not read it all.
    let _ = stream.write_all(content.as_bytes());
    reply(stream)
}

const TEXT: &str = "Content-Type: text/plain";

fn query(server: &Server, content: &str) -> Reply {
    query_with(server.address, "/", &[TEXT], content)
}

/// Repeats it until it is stored.
fn stored(server: &Server, content: &str) -> Reply {
    loop {
        let reply = query(server, content);
        if reply.is_hit() {
            return reply;
        }
    }
}

#[test]
fn equal_queries_share_a_response() {
    let origin = answering("Cache-Control: max-age=60\r\nAccept-Query: \"text/plain\"");
    let server = Server::over_origin(&origin.url());
    let first = query(&server, "a");
    assert!(first.cache().contains("fwd=uri-miss") && first.cache().contains("stored"), "{first:?}");
    let second = stored(&server, "a");
    for reply in [&first, &second] {
        assert_eq!((reply.text(), reply.field("accept-query")), ("a1", "\"text/plain\""));
    }
    let asked = &origin.asked()[0];
    assert_eq!((asked.method.as_str(), asked.field("content-type")), ("QUERY", "text/plain"));
    // The same in chunks, and without content.
    let mut stream = begin(server.address, "/", &[TEXT, "Transfer-Encoding: chunked"]);
    stream.write_all(b"1\r\na\r\n0\r\n\r\n").unwrap();
    assert_eq!(reply(stream).text(), "a1");
    assert_eq!(query(&server, "").text(), "2");
    assert_eq!(stored(&server, "").text(), "2");
}

#[test]
fn different_queries_do_not() {
    let origin = answering("Cache-Control: max-age=60");
    let server = Server::over_origin(&origin.url());
    stored(&server, "a");
    let address = server.address;
    for (number, reply) in [
        query(&server, "b"),
        query_with(address, "/", &["Content-Type: text/html"], "a"),
        query_with(address, "/", &[TEXT, "Content-Encoding: none"], "a"),
        query_with(address, "/", &[TEXT, "Content-Language: de"], "a"),
        query_with(address, "/?", &[TEXT], "a"),
        server.get("/"),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(!reply.is_hit() && reply.text().ends_with(&(number + 2).to_string()), "{number}: {reply:?}");
    }
    assert_eq!(query(&server, "a").text(), "a1");
    assert!(server.get_until("/", Reply::is_hit).text().starts_with('7'));
}

/// An origin that reports each request, and answers with its content on command.
fn held() -> (Origin, Receiver<()>, Sender<()>) {
    let (arrived, wait_for_arrival) = channel();
    let (release, wait_for_release) = channel::<()>();
    let wait_for_release = Mutex::new(wait_for_release);
    let origin = Origin::raw(move |asked, stream| {
        let content = content(asked, stream);
        let _ = arrived.send(());
        let _ = wait_for_release.lock().unwrap().recv();
        respond(stream, 200, "Cache-Control: max-age=60", content.len(), &content);
    });
    (origin, wait_for_arrival, release)
}

#[test]
fn equal_concurrent_queries_cost_the_origin_one_request() {
    let (origin, wait_for_arrival, release) = held();
    let server = Server::over_origin(&origin.url());
    let address = server.address;
    let ask = move || query_with(address, "/", &[TEXT], "once");
    let clients: Vec<_> = (0..8).map(|_| thread::spawn(ask)).collect();
    wait_for_arrival.recv().unwrap();
    release.send(()).unwrap();
    assert!(clients.into_iter().all(|client| client.join().unwrap().text() == "once"));
    assert_eq!(origin.asked().len(), 1);
}

#[test]
fn it_is_revalidated_with_its_content_and_may_be_conditional() {
    let origin = answering("Cache-Control: max-age=0\r\nETag: \"e\"");
    let server = Server::over_origin(&origin.url());
    assert_eq!(query(&server, "a").text(), "a1");
    let mut validated = query(&server, "a");
    while !validated.cache().contains("fwd=stale; fwd-status=304") {
        validated = query(&server, "a");
    }
    assert!(validated.text().starts_with('a'), "{validated:?}");
    let asked = origin.asked();
    let last = asked.last().unwrap();
    assert_eq!(
        (last.method.as_str(), last.field("if-none-match"), last.field("content-length")),
        ("QUERY", "\"e\"", "1")
    );
    let conditional = query_with(server.address, "/", &[TEXT, "If-None-Match: \"e\""], "a");
    assert_eq!((conditional.status, conditional.text()), (304, ""));
    let ranged = query_with(server.address, "/", &[TEXT, "Range: bytes=0-0"], "a");
    assert_eq!(ranged.status, 200, "a cache may ignore ranges, and these are of a method that it knows none of");
}

#[test]
fn it_is_sent_again_with_its_content() {
    let count = AtomicUsize::new(0);
    let origin = Origin::raw(move |asked, stream| {
        let content = content(asked, stream);
        if count.fetch_add(1, Ordering::SeqCst) > 0 {
            respond(stream, 200, "", content.len(), &content);
        }
    });
    let server = Server::over_origin(&origin.url());
    assert_eq!(query(&server, "again").text(), "again");
    assert_eq!(origin.asked().len(), 2);
}

#[test]
fn a_purge_of_the_address_also_purges_its_query_responses() {
    let origin = answering("Cache-Control: max-age=60\r\nXkey: page");
    let server = Server::over_origin(&origin.url());
    for (method, fields) in [
        ("PURGE", &[][..]),
        ("PURGE", &["X-Soft-Purge: 1"]),
        ("PURGE", &["Xkey: page"]),
        ("POST", &["Content-Length: 0"]),
    ] {
        for content in ["a", "b"] {
            stored(&server, content);
        }
        assert_eq!(server.ask(method, "/", fields).status, 200, "{method} {fields:?}");
        for content in ["a", "b"] {
            assert!(!query(&server, content).is_hit(), "{method} {fields:?}");
        }
    }
    stored(&server, "a");
    assert_eq!(server.ask("PURGE", "/other", &[]).status, 200);
    assert!(query(&server, "a").is_hit(), "of another address");
}

#[test]
fn a_purge_supersedes_a_query_in_flight() {
    let (origin, wait_for_arrival, release) = held();
    let server = Server::over_origin(&origin.url());
    let address = server.address;
    let ask = move || query_with(address, "/", &[TEXT], "a");
    let first = thread::spawn(ask);
    wait_for_arrival.recv().unwrap();
    assert_eq!(server.ask("PURGE", "/", &[]).status, 200);
    let second = thread::spawn(ask);
    wait_for_arrival.recv().unwrap();
    release.send(()).unwrap();
    release.send(()).unwrap();
    for asked in [first, second] {
        assert!(asked.join().unwrap().cache().contains("fwd=uri-miss"));
    }
}

#[test]
fn it_invalidates_nothing() {
    let origin = answering("Cache-Control: max-age=60\r\nLocation: /\r\nContent-Location: /");
    let server = Server::over_origin(&origin.url());
    server.get_until("/", Reply::is_hit);
    query(&server, "a");
    assert!(server.get("/").is_hit());
}

#[test]
fn a_query_with_long_content_bypasses_the_cache() {
    let origin = answering("Cache-Control: max-age=60");
    let server = Server::over_origin(&origin.url());
    for (length, is_kept) in [(64 << 10, true), ((64 << 10) + 1, false)] {
        let content = "x".repeat(length);
        for fields in [&[TEXT][..], &[TEXT, "Trailer: X-Sum"]] {
            let first = query_with(server.address, "/", fields, &content);
            assert!(first.text().starts_with(&content), "{length} {fields:?}: {}", first.cache());
            let is_kept = is_kept && fields.len() == 1;
            assert_eq!(first.cache().contains("stored"), is_kept, "{length} {fields:?}: {}", first.cache());
            assert_eq!(first.cache().contains("fwd=method"), !is_kept);
        }
    }
    // Content of unknown length.
    let mut stream = begin(server.address, "/", &[TEXT, "Transfer-Encoding: chunked", "X-Length: none"]);
    let chunk = format!("{:x}\r\n{}\r\n", 50_000, "x".repeat(50_000));
    thread::scope(|scope| {
        let mut writing = stream.try_clone().unwrap();
        scope.spawn(move || writing.write_all(format!("{chunk}{chunk}0\r\n\r\n").as_bytes()));
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        assert!(parse(&bytes, false).cache().contains("fwd=method"));
    });
}

#[test]
fn incomplete_content_is_the_clients_fault() {
    let origin = answering("Cache-Control: max-age=60");
    let server = Server::over_site(&origin.url(), "[site.origin]\ntimeout = \"300ms\"\n");
    let mut stream = begin(server.address, "/", &[TEXT, "Content-Length: 9"]);
    stream.write_all(b"half").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    drop(reply_if_any(stream));
    let mut stream = begin(server.address, "/", &[TEXT, "Content-Length: 9"]);
    stream.write_all(b"half").unwrap();
    let late = reply(stream);
    assert_eq!((late.status, late.cache()), (408, "Eyewall; fwd=method; detail=client-late"));
    assert!(origin.asked().is_empty());
}

/// The server may send nothing to a client that has closed.
fn reply_if_any(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

#[test]
fn rules_match_it_by_its_name() {
    let origin = answering("X-None: 1");
    let server = Server::over_site(
        &origin.url(),
        "[[site.rule]]\nmethod = [\"QUERY\"]\ndefault_ttl = \"600s\"\n\
         [[site.rule]]\nmethod = [\"QUERY\"]\npath = [\"/past\"]\nbypass = true\n",
    );
    assert_eq!(stored(&server, "a").text(), "a1");
    assert!(server.get("/").cache().contains("no-lifetime"));
    let past = query_with(server.address, "/past", &[TEXT], "a");
    assert!(past.text().starts_with('a') && past.cache().contains("fwd=bypass"), "{past:?}");
}

#[test]
fn variants_and_key_parts_apply_to_it_too() {
    let origin = Origin::raw(|asked, stream| {
        let content = content(asked, stream);
        let text = [asked.field("accept-language"), asked.field("cookie")].concat();
        let body = [&content, text.as_bytes()].concat();
        respond(stream, 200, "Cache-Control: max-age=60\r\nVary: Accept-Language", body.len(), &body);
    });
    let server = Server::over_site(&origin.url(), "[site.key]\ncookies = [\"c\"]\n");
    for _ in 0..2 {
        for language in ["de", "en"] {
            for cookie in ["c=1", "c=2"] {
                let (language_line, cookie_line) =
                    (format!("Accept-Language: {language}"), format!("Cookie: {cookie}"));
                let fields = [language_line.as_str(), cookie_line.as_str()];
                let reply = query_with(server.address, "/", &fields, "q");
                assert_eq!(reply.text(), format!("q{language}{cookie}"));
            }
        }
    }
    assert_eq!(origin.asked().len(), 4);
    assert_eq!(server.ask("PURGE", "/", &[]).status, 200);
    let fields = ["Accept-Language: de", "Cookie: c=1"];
    assert!(!query_with(server.address, "/", &fields, "q").is_hit());
}

#[test]
fn files_do_not_support_it() {
    let site = Site::new();
    site.write("page.txt", "page");
    let server = Server::over_folder(site.path());
    let refused = query_with(server.address, "/page.txt", &[TEXT], "a");
    assert_eq!((refused.status, refused.field("allow")), (405, "GET, HEAD"));
}

#[test]
fn a_large_response_is_completed_by_an_equal_query() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let origin = Origin::raw(move |asked, stream| {
        let content = content(asked, stream);
        counted.fetch_add(1, Ordering::SeqCst);
        let body = content.repeat(3 << 20);
        respond(stream, 200, "Cache-Control: max-age=60\r\nETag: \"e\"", body.len(), &body);
    });
    let server = Server::configured(&format!("[cache]\nsize = \"64M\"\n[[site]]\norigins = [\"{}\"]\n", origin.url()));
    for content in ["a", "b", "a", "b"] {
        let reply = query(&server, content);
        assert!(reply.is_whole && reply.body == content.repeat(3 << 20).as_bytes(), "{content}: {}", reply.cache());
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
}
