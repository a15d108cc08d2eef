//! Request lines that are odd, long, or of a later version.

use std::io::{Read as _, Write as _};

use crate::common::client::{Reply, connect, parse};
use crate::common::origin::Origin;
use crate::common::server::Server;

const FRESH: &str = "Cache-Control: max-age=600";
const FIELDS: &str = "\r\nHost: test\r\nConnection: close\r\n\r\n";

/// The server's response to these bytes, until it closes.
fn exchange(server: &Server, bytes: &str) -> String {
    let mut stream = connect(server.address);
    // A server that refuses the beginning doesn't read the rest.
    let _ = stream.write_all(bytes.as_bytes());
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    String::from_utf8(said).unwrap()
}

fn ask(server: &Server, line: &str) -> Reply {
    parse(exchange(server, &format!("{line}{FIELDS}")).as_bytes(), false)
}

#[test]
fn a_fragment_is_refused() {
    let origin = Origin::counting(FRESH);
    let server = Server::over_origin(&origin.url());
    server.get_until("/a", Reply::is_hit);
    for line in [
        "GET /a#b HTTP/1.1",
        "GET /#?x HTTP/1.1",
        "HEAD /a# HTTP/1.1",
        "GET http://test/a#b HTTP/1.1",
        "POST /a#b HTTP/1.0",
    ] {
        let reply = ask(&server, line);
        assert_eq!(reply.status, 400, "{line}");
        assert!(line.starts_with("HEAD") || reply.text().contains("fragment"), "{}", reply.text());
        assert_eq!(reply.body.is_empty(), line.starts_with("HEAD"), "{line}");
        assert_eq!((reply.field("connection"), reply.field("date").len()), ("close", 29), "{line}");
    }
    // The same after a request that is answered from the volume.
    let said = exchange(
        &server,
        &format!("GET /a HTTP/1.1\r\nHost: test\r\n\r\nGET /a#b HTTP/1.1{FIELDS}GET /a HTTP/1.1{FIELDS}"),
    );
    let statuses: Vec<&str> = said.split("HTTP/1.1 ").skip(1).filter_map(|reply| reply.get(..3)).collect();
    assert_eq!(statuses, ["200", "400"], "nothing is answered behind it: {said}");
    assert_eq!(origin.asked().len(), 1);
}

#[test]
fn a_later_minor_version_counts_as_1_1() {
    let origin = Origin::counting(FRESH);
    let server = Server::over_origin(&origin.url());
    for version in ["1.2", "1.9"] {
        for target in ["/a", "/b?c"] {
            assert_eq!(ask(&server, &format!("GET {target} HTTP/{version}")).status, 200, "{version} {target}");
        }
    }
    assert!(server.get("/a").is_hit());
    // Other ones are malformed, or of another protocol.
    for version in ["1.12", "1.", "2.5", "9.9"] {
        assert_ne!(ask(&server, &format!("GET /a HTTP/{version}")).status, 200, "{version}");
    }
}

#[test]
fn a_target_without_end_is_refused_as_too_long() {
    let origin = Origin::counting(FRESH);
    let server = Server::over_origin(&origin.url());
    // The longest target; then longer than a key, longer than a head, and without an end.
    let target = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
    assert_eq!(ask(&server, &format!("GET {} HTTP/1.1", target(60_000))).status, 200);
    for bytes in [64_520, 65_530, 70_000, 300_000] {
        let reply = ask(&server, &format!("GET {} HTTP/1.1", target(bytes)));
        assert_eq!(reply.status, 414, "{bytes}");
    }
    let reply = ask(&server, &format!("GET /{}#x HTTP/1.1", target(30_000)));
    assert_eq!(reply.status, 400);
    // Long fields have another status.
    let fields = format!("X-Long: {}\r\n", "a".repeat(70_000));
    assert!(exchange(&server, &format!("GET / HTTP/1.1\r\n{fields}{FIELDS}")).starts_with("HTTP/1.1 431 "));
}

#[test]
fn a_target_in_absolute_form_may_have_no_path() {
    let origin = Origin::counting(FRESH);
    let server = Server::over_origin(&origin.url());
    for target in ["http://test", "http://test/", "/"] {
        assert_eq!(ask(&server, &format!("GET {target} HTTP/1.1")).status, 200);
    }
    let targets: Vec<String> = origin.asked().into_iter().map(|asked| asked.target).collect();
    assert_eq!(targets, ["/"]);
    // Without a path, OPTIONS is about this server, as with an asterisk (RFC 9112, section 3.2.4).
    for target in ["*", "http://test", "http://test:80"] {
        assert_eq!(ask(&server, &format!("OPTIONS {target} HTTP/1.1")).status, 204, "{target}");
    }
    assert_eq!(origin.asked().len(), 1);
    ask(&server, "OPTIONS http://test/ HTTP/1.1");
    assert_eq!(origin.asked().len(), 2);
}

#[test]
fn a_length_that_no_body_can_have_is_refused() {
    let origin = Origin::counting(FRESH);
    let server = Server::over_origin(&origin.url());
    for length in ["9223372036854775808", "18446744073709551614", "18446744073709551615", "18446744073709551616"] {
        let said = exchange(&server, &format!("POST / HTTP/1.1\r\nContent-Length: {length}{FIELDS}"));
        assert!(said.starts_with("HTTP/1.1 400 "), "{length}: {said}");
    }
    assert!(origin.asked().is_empty());
}
