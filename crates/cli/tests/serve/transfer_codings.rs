//! Bodies with transfer codings or unknown length arrive unchanged, or are refused.

use std::io::{Read as _, Write as _};

use crate::common::client::{connect, parse};
use crate::common::origin::{Origin, respond};
use crate::common::server::Server;

/// An origin whose responses have the framing and the content of the request. It reads to the end of chunked content.
fn echo() -> Origin {
    Origin::raw(|asked, stream| {
        let mut content = Vec::new();
        if asked.field("transfer-encoding") == "chunked" {
            let mut byte = [0];
            while !content.ends_with(b"0\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                content.extend(byte);
            }
        }
        let body = format!("{}|{}", asked.field("transfer-encoding"), String::from_utf8_lossy(&content));
        respond(stream, 200, "Cache-Control: max-age=60", body.len(), body.as_bytes());
    })
}

fn sent(server: &Server, request: &str) -> crate::common::client::Reply {
    let mut stream = connect(server.address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    parse(&bytes, false)
}

#[test]
fn a_get_with_a_chunked_content_reaches_the_origin_with_it() {
    let origin = echo();
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").text(), "|", "this one is stored");
    let request = "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let reply = sent(&server, request);
    assert_eq!(reply.text(), "chunked|5\r\nhello\r\n0\r\n\r\n");
    assert!(!reply.is_hit(), "the answer may depend on the content");
    assert_eq!(server.get("/").text(), "|", "and is for nobody else");
}

#[test]
fn an_unknown_coding_of_a_request_is_not_implemented() {
    let origin = echo();
    let server = Server::over_origin(&origin.url());
    for coding in ["gzip, chunked", "x-own, chunked"] {
        let request =
            format!("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: {coding}\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
        assert_eq!(sent(&server, &request).status, 501, "{coding}");
    }
    // If the end of the body is unknown, the status MUST be 400 (RFC 9112, section 6.3).
    for coding in ["gzip", "x-own", "chunked, gzip"] {
        let request =
            format!("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: {coding}\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
        assert_eq!(sent(&server, &request).status, 400, "{coding}");
    }
    assert!(origin.asked().is_empty());
}

#[test]
fn a_length_beyond_63_bits_is_refused() {
    let origin = echo();
    let server = Server::over_origin(&origin.url());
    for method in ["GET", "POST"] {
        let request = format!("{method} / HTTP/1.1\r\nHost: test\r\nContent-Length: 9223372036854775808\r\n\r\n");
        assert_eq!(sent(&server, &request).status, 400, "{method}");
    }
    assert!(origin.asked().is_empty());
}

#[test]
fn a_response_with_an_unknown_coding_is_not_stored() {
    let origin = Origin::raw(|_, stream| {
        let _ =
            stream.write_all(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: x-own\r\n\r\nhello");
    });
    let server = Server::over_origin(&origin.url());
    for _ in 0..2 {
        assert_eq!(server.get("/").cache(), "Eyewall; fwd=uri-miss; fwd-status=200; detail=transfer-coding");
    }
}

#[test]
fn trace_reveals_no_secrets() {
    let origin = Origin::answering(|asked| {
        (200, String::new(), format!("{}{}", asked.field("cookie"), asked.field("authorization")).into_bytes())
    });
    let server = Server::over_origin(&origin.url());
    let reply = server.ask("TRACE", "/", &["Cookie: secret", "Authorization: Basic secret"]);
    assert_eq!((reply.status, reply.text()), (200, ""));
}
