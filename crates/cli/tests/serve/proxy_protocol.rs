//! A proxy of TCP names its client by a PROXY protocol header. Eyewall believes it only from configured proxies, at configured addresses.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::client::{Reply, connect, parse};
use crate::common::origin::Origin;
use crate::common::server::Server;
use crate::common::upgrading::Upgrading;

const V1: &[u8] = b"PROXY TCP4 192.0.2.7 10.0.0.1 4660 80\r\n";
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const FROM_HERE: &str = "proxy_protocol_from = [\"127.0.0.1\"]";

/// Version 2: a command, a family, and the bytes behind them.
fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    [SIGNATURE, &[command, family], &(rest.len() as u16).to_be_bytes(), rest].concat()
}

/// The client `2001:db8::7`, and a field that is skipped.
fn v2_of_ipv6() -> Vec<u8> {
    let source = [&[0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[7]].concat();
    v2(0x21, 0x21, &[&source[..], &[0; 16], &[0, 5, 0, 80], &[4, 0, 2, 9, 9]].concat())
}

fn server(origin: &Origin, settings: &str) -> Server {
    Server::configured(&format!(
        "[server]\nproxy_protocol = [\"127.0.0.1:0\"]\n{settings}\n[[site]]\norigins = [\"{}\"]\n",
        origin.url()
    ))
}

/// All that comes after these bytes; nothing if the connection was closed or reset without a response.
fn heard(server: &Server, sent: &[u8]) -> Vec<u8> {
    let mut client = connect(server.address);
    let _ = client.write_all(sent);
    let mut bytes = Vec::new();
    let _ = client.read_to_end(&mut bytes);
    bytes
}

fn ask(server: &Server, header: &[u8], method: &str, target: &str, fields: &str) -> Reply {
    let request = format!("{method} {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{fields}\r\n");
    parse(&heard(server, &[header, request.as_bytes()].concat()), false)
}

#[test]
fn the_origin_and_the_log_get_the_client_that_the_header_names() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let origin = Origin::counting("Cache-Control: max-age=60");
    let table = format!("[server.access_log]\npath = \"{}\"\n", log.display());
    let mut server = server(&origin, &format!("{FROM_HERE}\n{table}"));
    let local = v2(0x20, 0, b"");
    let headers = [(V1, "192.0.2.7"), (&v2_of_ipv6(), "2001:db8::7"), (&local, "127.0.0.1")];
    for (header, client) in headers {
        // By the full path.
        assert_eq!(ask(&server, header, "POST", "/", "Content-Length: 0\r\n").status, 200);
        assert_eq!(origin.asked().pop().unwrap().field("x-forwarded-for"), client);
    }
    while !ask(&server, V1, "GET", "/", "").is_hit() {}
    // By the fast path.
    for (header, _) in headers {
        assert!(ask(&server, header, "GET", "/", "").is_hit());
    }
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    server.child.wait().unwrap();
    let log = std::fs::read_to_string(&log).unwrap();
    let clients: Vec<&str> = log.lines().filter_map(|line| line.split(' ').next()).collect();
    let expected = ["192.0.2.7", "2001:db8::7", "127.0.0.1"];
    assert!(clients.starts_with(&expected) && clients.ends_with(&expected), "{clients:?}");
}

#[tokio::test]
async fn http2_begins_behind_the_header() {
    let origin = Origin::counting("");
    let server = server(&origin, FROM_HERE);
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, V1).await.unwrap();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("http://test/").body(Empty::<Bytes>::new()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "1");
    assert_eq!(origin.asked()[0].field("x-forwarded-for"), "192.0.2.7");
}

#[test]
fn the_client_is_the_one_that_may_purge_or_be_a_trusted_proxy() {
    let origin = Origin::counting("Cache-Control: no-store");
    let settings = "purge_from = [\"192.0.2.7\"]\ntrusted_proxies = [\"2001:db8::7\"]";
    let server = server(&origin, &format!("{FROM_HERE}\n{settings}"));
    assert_eq!(ask(&server, V1, "PURGE", "/", "").status, 200);
    assert_eq!(ask(&server, &v2(0x20, 0, b""), "PURGE", "/", "").status, 403);
    let forwarded = "X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-Proto: https\r\n";
    for (header, chain, scheme) in
        [(&v2_of_ipv6()[..], "198.51.100.1, 2001:db8::7", "https"), (V1, "192.0.2.7", "http")]
    {
        ask(&server, header, "GET", "/", forwarded);
        let asked = origin.asked().pop().unwrap();
        assert_eq!((asked.field("x-forwarded-for"), asked.field("x-forwarded-proto")), (chain, scheme));
    }
}

#[test]
fn a_connection_without_a_valid_header_is_closed() {
    let origin = Origin::counting("");
    let server = server(&origin, &format!("{FROM_HERE}\n[server.limits]\nhead_timeout = \"300ms\""));
    let request = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";
    for header in [
        &b""[..],
        b"PROXY TCP4 192.0.2.7 10.0.0.1 4660\r\n",
        b"PROXY TCP4 192.0.2.777 10.0.0.1 4660 80\r\n",
        b"PROXY UDP4 192.0.2.7 10.0.0.1 4660 80\r\n",
        &[b"PROXY UNKNOWN ".as_slice(), &[b'a'; 200], b"\r\n"].concat(),
        &v2(0x2f, 0x11, &[0; 12]),
        &v2(0x21, 0x11, &[0; 4]),
        &v2(0x21, 0x11, &vec![0; 20_000]),
    ] {
        let heard = heard(&server, &[header, request].concat());
        assert!(heard.is_empty(), "{}: {}", String::from_utf8_lossy(header), String::from_utf8_lossy(&heard));
    }
    // It doesn't end in time.
    assert!(heard(&server, &V1[..20]).is_empty());
    assert_eq!(ask(&server, V1, "GET", "/", "").text(), "1");
    assert_eq!(origin.asked().len(), 1);
}

#[test]
fn other_addresses_can_not_connect_there() {
    let origin = Origin::counting("");
    let server = server(&origin, "proxy_protocol_from = [\"192.0.2.1\"]");
    assert!(heard(&server, &[V1, b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"].concat()).is_empty());
    assert!(origin.asked().is_empty());
}

#[test]
fn a_header_at_another_address_is_a_malformed_request() {
    let origin = Origin::counting("");
    let server = Server::over_origin(&origin.url());
    for header in [V1, &v2_of_ipv6(), &v2(0x20, 0, b"")] {
        let reply = ask(&server, header, "GET", "/", "");
        assert_eq!((reply.status, origin.asked().len()), (400, 0), "{reply:?}");
    }
}

#[test]
fn a_server_that_stops_does_not_wait_for_a_header() {
    let origin = Origin::counting("");
    let mut server = server(&origin, FROM_HERE);
    let _silent: Vec<TcpStream> = (0..3).map(|_| connect(server.address)).collect();
    assert_eq!(ask(&server, V1, "GET", "/", "").status, 200);
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_reload_begins_and_ends_it_at_an_address() {
    let origin = Origin::counting("Cache-Control: no-store");
    let site = format!("[[site]]\norigins = [\"{}\"]\n", origin.url());
    let proxied = format!("proxy_protocol = [\"127.0.0.1:0\"]\n{FROM_HERE}\n{site}");
    let upgrading = Upgrading::start(&site);
    let text = [V1, b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"].concat();
    for (settings, status) in [(&site, "400"), (&proxied, "200"), (&site, "400")] {
        upgrading.write(settings);
        assert_eq!(upgrading.socket.ask("POST", "/reload", &[], "").status, 200);
        let mut client = connect(upgrading.address);
        client.write_all(&text).unwrap();
        let mut bytes = Vec::new();
        let _ = client.read_to_end(&mut bytes);
        assert!(String::from_utf8_lossy(&bytes).starts_with(&format!("HTTP/1.1 {status}")), "{bytes:?}");
    }
}
