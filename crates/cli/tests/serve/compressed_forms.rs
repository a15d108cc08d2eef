//! Stored responses are compressed in the background, and each client gets the form that it prefers.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::common::admin::Socket;
use crate::common::client::Reply;
use crate::common::command::{eyewall, run};
use crate::common::origin::{Asked, Origin};
use crate::common::server::Server;

/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_mins(1);
const ACCEPTED: &str = "Accept-Encoding: gzip, deflate, br, zstd";
/// A field that forces the full path, and has no other effect.
const FULL_PATH: &str = "TE: trailers";

/// Pages of some 10 kB, with a tag.
fn pages(asked: &Asked) -> (u16, String, Vec<u8>) {
    let fields = "Cache-Control: max-age=60\r\nETag: \"1\"\r\nAccept-Ranges: bytes\r\nSurrogate-Key: t";
    let of_target = match asked.target.as_str() {
        "/image" => "Content-Type: image/png",
        "/digest" => "Content-Type: text/html\r\nRepr-Digest: sha-256=:x:",
        "/as-it-is" => "Content-Type: text/html\r\nCache-Control: no-transform",
        "/coded" => "Content-Type: text/html\r\nContent-Encoding: gzip",
        "/by-language" => "Content-Type: application/ld+json\r\nVary: Accept-Language",
        _ => "Content-Type: text/html; charset=utf-8",
    };
    let language = asked.field("accept-language");
    (200, format!("{fields}\r\n{of_target}"), format!("{} {language}\n", asked.target).repeat(1000).into_bytes())
}

/// Asks until the reply has this coding.
fn ask_until(server: &Server, target: &str, fields: &[&str], coding: &str) -> Reply {
    let start = Instant::now();
    loop {
        let reply = server.ask("GET", target, fields);
        if reply.field("content-encoding") == coding {
            return reply;
        }
        assert!(start.elapsed() < PATIENCE, "still {reply:?}");
    }
}

fn plain(reply: &Reply) -> Vec<u8> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    match reply.field("content-encoding") {
        "gzip" => drop(flate2::read::GzDecoder::new(&reply.body[..]).read_to_end(&mut bytes).unwrap()),
        "" => bytes.clone_from(&reply.body),
        other => panic!("this test doesn't decode {other}"),
    }
    bytes
}

/// Status and fields by name, without those that depend on the second.
fn told(reply: &Reply) -> (u16, Vec<(&str, &str)>) {
    let is_timeless = |(name, _): &&(String, String)| !["age", "cache-status", "date"].contains(&name.as_str());
    let fields = reply.fields.iter().filter(is_timeless);
    let mut fields: Vec<(&str, &str)> = fields.map(|(name, value)| (name.as_str(), value.as_str())).collect();
    fields.sort_unstable();
    (reply.status, fields)
}

#[test]
fn both_paths_send_the_same_form() {
    let origin = Origin::answering(pages);
    let server = Server::over_site(&origin.url(), "compress = true\n");
    for (target, fields) in
        [("/page", &[][..]), ("/by-language", &["Accept-Language: de"]), ("/by-language", &["Accept-Language: fr"])]
    {
        for coding in ["br", "zstd", "gzip"] {
            let accepted = format!("Accept-Encoding: {coding}");
            let short = ask_until(&server, target, &[fields, &[&accepted]].concat(), coding);
            let long = server.ask("GET", target, &[fields, &[&accepted, FULL_PATH]].concat());
            assert_eq!(told(&short), told(&long), "{target} {coding}");
            assert!(short.body == long.body && short.body.len() < 1000 && short.is_hit(), "{target} {coding}");
            assert_eq!(short.field("etag"), format!("\"1--{coding}\""));
            let varies = |(name, value): &(String, String)| name == "vary" && value == "Accept-Encoding";
            assert_eq!(
                (short.field("accept-ranges"), short.fields.iter().filter(|field| varies(field)).count()),
                ("", 1)
            );
        }
        let identity = server.ask("GET", target, fields);
        assert_eq!(
            plain(&ask_until(&server, target, &[fields, &["Accept-Encoding: gzip"]].concat(), "gzip")),
            identity.body
        );
        assert_eq!((identity.field("etag"), identity.field("content-encoding")), ("\"1\"", ""));
    }
    assert_eq!(origin.asked().len(), 3);
}

#[test]
fn other_responses_stay_as_they_are() {
    let origin = Origin::answering(pages);
    let server = Server::over_site(
        &origin.url(),
        "compress = [\"gzip\"]\n[[site.rule]]\npath = [\"/secret\"]\ncompress = false\n[[site.rule]]\npath = [\"/br\"]\ncompress = [\"br\"]\n",
    );
    for target in ["/image", "/digest", "/as-it-is", "/secret", "/coded"] {
        for _ in 0..3 {
            let reply = server.ask("GET", target, &[ACCEPTED]);
            let coding = if target == "/coded" { "gzip" } else { "" };
            assert_eq!((reply.field("content-encoding"), reply.field("vary")), (coding, ""), "{target}");
        }
    }
    ask_until(&server, "/page", &[ACCEPTED], "gzip");
    ask_until(&server, "/br", &[ACCEPTED], "br");
    for target in ["/image", "/digest", "/as-it-is", "/secret"] {
        let reply = server.ask("GET", target, &[ACCEPTED]);
        assert_eq!((reply.field("content-encoding"), reply.is_hit()), ("", true), "{target}");
    }
}

#[test]
fn without_the_setting_nothing_is_compressed() {
    let origin = Origin::answering(pages);
    let server = Server::over_origin(&origin.url());
    for _ in 0..3 {
        let reply = server.ask("GET", "/page", &[ACCEPTED]);
        assert_eq!((reply.field("content-encoding"), reply.field("vary"), reply.field("etag")), ("", "", "\"1\""));
    }
}

#[test]
fn ranges_heads_and_conditions_know_the_forms() {
    let origin = Origin::answering(pages);
    let server = Server::over_site(&origin.url(), "compress = true\n");
    let form = ask_until(&server, "/page", &[ACCEPTED], "br");
    let head = server.ask("HEAD", "/page", &[ACCEPTED]);
    assert_eq!((head.field("content-encoding"), head.field("content-length")), ("br", form.field("content-length")));
    let part = server.ask("GET", "/page", &[ACCEPTED, "Range: bytes=0-4"]);
    assert_eq!((part.status, part.field("etag"), &part.body[..]), (206, "\"1\"", &b"/page"[..]));
    for theirs in ["\"1--br\"", "\"1--gzip\"", "\"1\"", "W/\"1--br\""] {
        let reply = server.ask("GET", "/page", &[ACCEPTED, &format!("If-None-Match: {theirs}")]);
        assert_eq!((reply.status, reply.field("etag")), (304, theirs.trim_start_matches("W/")));
    }
    assert_eq!(server.ask("GET", "/page", &[ACCEPTED, "If-None-Match: \"2--br\""]).status, 200);
    // A change under a condition reaches the origin with the tag that it knows.
    server.ask("PUT", "/page", &["If-Match: \"1--br\"", "Content-Length: 0"]);
    let asked = origin.asked();
    let told = asked.last().unwrap().fields.iter().filter(|(name, _)| name == "if-match");
    assert_eq!(told.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["\"1--br\", \"1\""]);
}

#[test]
fn each_kind_of_purge_covers_the_forms_at_once() {
    let origin = Origin::answering(pages);
    let socket = Socket::new();
    let site = format!("[[site]]\norigins = [\"{}\"]\ncompress = true\n", origin.url());
    let server = Server::configured(&format!("{}{site}", socket.table()));
    let mut asked = 0;
    for words in [
        &["--url", "http://test/page"][..],
        &["--tag", "t"],
        &["--prefix", "http://test/"],
        &["--host", "test"],
        &["--all"],
    ] {
        for soft in [&[][..], &["--soft"]] {
            ask_until(&server, "/page", &[ACCEPTED], "br");
            asked = origin.asked().len().max(asked);
            let words = [words, soft].concat();
            let ended = run(eyewall().args(["purge", "--server"]).arg(socket.path()).args(&words), b"");
            assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{words:?}");
            // The origin doesn't know conditions, so its answer is another body.
            let reply = server.ask("GET", "/page", &[ACCEPTED]);
            assert_eq!((reply.is_hit(), reply.field("content-encoding")), (false, ""), "{words:?}");
            assert_eq!(origin.asked().len(), asked + 1, "{words:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_date_continues_no_form_over_either_version() {
    let modified = "Sun, 06 Nov 1994 08:49:37 GMT";
    let fields = format!("Cache-Control: max-age=60\r\nContent-Type: text/html\r\nLast-Modified: {modified}");
    let origin = Origin::answering(move |_| (200, fields.clone(), "a line of a page\n".repeat(1000).into_bytes()));
    let server = Server::over_site(&origin.url(), "compress = true\n");
    let form = ask_until(&server, "/page", &[ACCEPTED], "br");
    assert_eq!(form.field("last-modified"), modified);
    let (range, if_range) = ("Range: bytes=10-", format!("If-Range: {modified}"));
    let reply = server.ask("GET", "/page", &[ACCEPTED, range, &if_range]);
    assert!(reply.status == 200 && reply.field("content-encoding") == "br" && reply.body == form.body, "{reply:?}");
    // Without a condition, the client knows what it asks for.
    assert_eq!(server.ask("GET", "/page", &[ACCEPTED, range]).status, 206);

    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let asked = Request::get("http://test/page")
        .header("accept-encoding", "br")
        .header("range", "bytes=10-")
        .header("if-range", modified);
    let response = sender.send_request(asked.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
    assert!(response.status() == 200 && response.headers()["content-encoding"] == "br", "{response:?}");
    assert!(response.into_body().collect().await.unwrap().to_bytes() == form.body);
}
