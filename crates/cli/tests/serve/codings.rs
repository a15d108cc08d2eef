//! An origin compresses for clients that can decode it: each kind of client gets a coding that it can use, and each coding is stored.

use crate::common::origin::{Asked, Origin};
use crate::common::server::Server;

fn compressing() -> Origin {
    Origin::answering(|asked: &Asked| {
        let fields = "Cache-Control: max-age=60\r\nVary: Accept-Encoding";
        match asked.field("accept-encoding") {
            taken if taken.contains("br") && !taken.contains("br;q=0") => {
                (200, format!("{fields}\r\nContent-Encoding: br"), b"brotli".to_vec())
            }
            taken if taken.contains("gzip") => (200, format!("{fields}\r\nContent-Encoding: gzip"), b"gzip".to_vec()),
            _ => (200, fields.to_owned(), b"plain".to_vec()),
        }
    })
}

#[test]
fn each_client_gets_its_preferred_coding_and_clients_share_codings() {
    let origin = compressing();
    let server = Server::over_origin(&origin.url());
    for is_second_round in [false, true] {
        for (accepted, text) in [
            ("Accept-Encoding: gzip, deflate, br, zstd", "brotli"),
            ("Accept-Encoding: br;q=1.0, gzip;q=0.5", "brotli"),
            ("Accept-Encoding: gzip", "gzip"),
            ("Accept-Encoding: gzip, br;q=0", "gzip"),
            ("Accept-Encoding: identity", "plain"),
            ("X-None: 1", "plain"),
        ] {
            let reply = server.ask("GET", "/", &[accepted]);
            assert_eq!(reply.text(), text, "{accepted}");
            assert_eq!(reply.field("vary"), "Accept-Encoding");
            assert!(reply.is_hit() || !is_second_round, "{accepted}");
        }
    }
    assert_eq!(origin.asked().len(), 4, "brotli, gzip, identity, and for who says nothing");
}

#[test]
fn a_response_that_does_not_vary_is_one_entry_for_all() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::over_origin(&origin.url());
    for accepted in ["Accept-Encoding: gzip, br", "Accept-Encoding: gzip", "X-None: 1"] {
        assert_eq!(server.ask("GET", "/", &[accepted]).text(), "1");
    }
}

#[test]
fn a_coded_response_that_does_not_say_that_it_varies_is_not_given_to_others() {
    let origin = Origin::answering(|asked: &Asked| match asked.field("accept-encoding") {
        "gzip" => (200, "Cache-Control: max-age=60\r\nContent-Encoding: gzip".to_owned(), b"gzip".to_vec()),
        _ => (200, "Cache-Control: max-age=60".to_owned(), b"plain".to_vec()),
    });
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.ask("GET", "/", &["Accept-Encoding: gzip"]).text(), "gzip");
    assert_eq!(server.get("/").text(), "plain");
}
