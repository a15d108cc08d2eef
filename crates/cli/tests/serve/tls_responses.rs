//! Clients over HTTPS get the same bytes as others, by HTTP/1.1 and HTTP/2, as misses and as hits, and their pages are stored apart.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::common::authority::Authority;
use crate::common::client::ask;
use crate::common::origin::Origin;

const HOST: &str = "site.example";

fn page(bytes: usize) -> Vec<u8> {
    (0..=250).cycle().take(bytes).collect()
}

/// An origin whose page has as many bytes as its path says. `/seen` has what it heard of the client.
fn origin() -> Origin {
    Origin::answering(|asked| {
        let body = match asked.target.trim_start_matches('/').parse() {
            Ok(bytes) => page(bytes),
            Err(_) => format!("{} {}", asked.field("x-forwarded-proto"), asked.field("forwarded")).into_bytes(),
        };
        (200, "Cache-Control: max-age=600".to_owned(), body)
    })
}

#[test]
fn bodies_of_any_size_are_whole() {
    let (authority, origin) = (Authority::new(), origin());
    let https = authority.serve(&authority.site(HOST, &origin.url(), ""), "");
    for bytes in [0, 1, 9_689, 16_384, 65_536, 400_000] {
        let target = format!("/{bytes}");
        for round in 0..3 {
            let reply = authority.get(https.address, HOST, &target);
            assert_eq!((reply.status, reply.is_hit()), (200, round > 0), "{bytes}: {}", reply.cache());
            assert!(reply.is_whole && reply.body == page(bytes), "{bytes}, round {round}");
        }
        // The full path answers a range.
        if bytes > 100 {
            let part = authority.ask(https.address, HOST, "GET", &target, &["Range: bytes=50-"]);
            assert!(part.status == 206 && part.is_hit() && part.body == page(bytes)[50..], "{part:?}");
        }
    }
    // More than the volume stores.
    let large = authority.get(https.address, HOST, "/5000000");
    assert!(large.is_whole && large.body == page(5_000_000));
}

#[test]
fn files_are_sent_whole() {
    let authority = Authority::new();
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("file"), page(3_000_000)).unwrap();
    let file = authority.issue("pem", &[HOST]);
    let (root, file) = (root.path().display(), file.display());
    let https = authority.serve(&format!("[[site]]\nroot = '{root}'\ntls = {{ certificate = '{file}' }}\n"), "");
    for _ in 0..2 {
        let reply = authority.get(https.address, HOST, "/file");
        assert!(reply.is_whole && reply.body == page(3_000_000));
    }
}

#[test]
fn pages_are_stored_apart_from_those_without_tls_and_purged_together() {
    let (authority, origin) = (Authority::new(), origin());
    let https = authority.serve(&authority.site(HOST, &origin.url(), ""), "");
    let plain = |method: &str| {
        // The common client names another host.
        ask(https.server.address, method, &format!("http://{HOST}/seen"), &[])
    };
    assert_eq!(
        authority.get(https.address, HOST, "/seen").text(),
        format!("https for=127.0.0.1;proto=https;host=\"{HOST}\"")
    );
    assert_eq!(plain("GET").text(), format!("http for=127.0.0.1;proto=http;host=\"{HOST}\""));
    assert!(authority.get(https.address, HOST, "/seen").text().starts_with("https "));
    assert!(plain("GET").is_hit() && plain("GET").text().starts_with("http "));
    assert_eq!(origin.asked().len(), 2);
    // By either connection.
    assert_eq!(plain("PURGE").status, 200);
    assert!(!authority.get(https.address, HOST, "/seen").is_hit() && !plain("GET").is_hit());
    assert_eq!(authority.ask(https.address, HOST, "PURGE", "/seen", &[]).status, 200);
    assert!(!authority.get(https.address, HOST, "/seen").is_hit() && !plain("GET").is_hit());
}

#[test]
fn an_upgraded_connection_carries_bytes_both_ways() {
    let authority = Authority::new();
    let origin = Origin::raw(|asked, stream| {
        let words = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: {}\r\n\r\n",
            asked.field("upgrade")
        );
        stream.write_all(words.as_bytes()).unwrap();
        // It ends when the client does.
        let _ = std::io::copy(&mut &*stream, &mut &*stream);
    });
    let https = authority.serve(&authority.site(HOST, &origin.url(), ""), "");
    let mut client = authority.connect(https.address, HOST).unwrap();
    write!(client, "GET /chat HTTP/1.1\r\nHost: {HOST}\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n").unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    for bytes in [1, 50_000, 7] {
        client.write_all(&page(bytes)).unwrap();
        let mut echoed = vec![0; bytes];
        client.read_exact(&mut echoed).unwrap();
        assert!(echoed == page(bytes));
    }
}

#[test]
fn a_trusted_proxy_says_by_which_scheme_its_client_came() {
    let (authority, origin) = (Authority::new(), origin());
    let trusted = "trusted_proxies = [\"127.0.0.1\"]";
    let https = authority.serve(&authority.site(HOST, &origin.url(), ""), trusted);
    let seen = |fields: &[&str]| {
        let text = authority.ask(https.address, HOST, "GET", "/seen", fields).text().to_owned();
        text.split(' ').next().unwrap_or_default().to_owned()
    };
    assert_eq!(seen(&[]), "https");
    assert_eq!(seen(&["X-Forwarded-Proto: http"]), "http");
    assert_eq!(seen(&["X-Forwarded-Proto: https"]), "https");
}

#[tokio::test]
async fn alpn_chooses_http_2_and_its_streams_are_whole() {
    let (authority, origin) = (Authority::new(), origin());
    let https = authority.serve(&authority.site(HOST, &origin.url(), ""), "");
    let connector = TlsConnector::from(Arc::new(authority.config(&["h2", "http/1.1"])));
    let stream = TcpStream::connect(https.address).await.unwrap();
    let stream = connector.connect(ServerName::try_from(HOST).unwrap(), stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for round in 0..2 {
        let asked = [9_689_usize, 100_000, 400_000].map(|bytes| {
            let mut sender = sender.clone();
            tokio::spawn(async move {
                let request = Request::get(format!("https://{HOST}/{bytes}")).version(Version::HTTP_2);
                let response = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
                let cache = response.headers()["cache-status"].to_str().unwrap().to_owned();
                let body = response.into_body().collect().await.unwrap().to_bytes();
                assert!(body == page(bytes), "{bytes}");
                cache
            })
        });
        for answered in asked {
            assert_eq!(answered.await.unwrap().starts_with("Eyewall; hit"), round > 0);
        }
    }
}
