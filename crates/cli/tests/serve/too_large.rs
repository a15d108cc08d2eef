//! A response that is too large for the volume is streamed, and not stored. One that is only too large for an entry is stored in
//! fragments.

use std::io::Write as _;

use crate::common::command::Volume;
use crate::common::origin::Origin;
use crate::common::server::{Server, Site};

/// Entries of up to 16 KiB.
fn small() -> Volume {
    let volume = Volume::absent();
    assert_eq!(volume.run(["create", "--size", "1M", "--entry-bytes-max", "16K"]).code, 0);
    volume
}

fn serve(volume: &Volume, source: [&str; 2]) -> Server {
    Server::spawn(volume.command(["serve", "--listen", "127.0.0.1:0"]).args(source))
}

fn large() -> Vec<u8> {
    (0..=250).cycle().take(3_000_000).collect()
}

#[test]
fn a_file() {
    let volume = small();
    let site = Site::new();
    site.write("large.bin", large());
    let server = serve(&volume, ["--root", site.path().to_str().unwrap()]);
    for _ in 0..2 {
        let reply = server.get("/large.bin");
        // A file that has changed in the last second isn't sent by sendfile yet.
        let detail = reply.cache().strip_prefix("Eyewall; fwd=uri-miss; detail=");
        assert!(matches!(detail, Some("too-large" | "sendfile")), "{}", reply.cache());
        assert_eq!(reply.field("content-length"), "3000000");
        assert!(reply.body == large());
    }
}

#[test]
fn a_response_with_a_length() {
    let volume = small();
    let origin = Origin::answering(|_| (200, "Cache-Control: max-age=60".to_owned(), large()));
    let server = serve(&volume, ["--origin", &origin.url()]);
    for _ in 0..2 {
        let reply = server.get("/");
        assert_eq!(reply.cache(), "Eyewall; fwd=uri-miss; fwd-status=200; detail=too-large");
        assert!(reply.body == large());
    }
}

#[test]
fn a_response_with_a_field_that_is_too_large_for_an_entry() {
    let origin = Origin::answering(|_| {
        (200, format!("Cache-Control: max-age=60\r\nX-Long: {}", "x".repeat(70_000)), b"page".to_vec())
    });
    let server = Server::over_origin(&origin.url());
    for _ in 0..2 {
        let reply = server.get("/");
        assert_eq!(reply.cache(), "Eyewall; fwd=uri-miss; fwd-status=200; detail=too-large");
        assert_eq!((reply.text(), reply.field("x-long").len()), ("page", 70_000));
    }
}

#[test]
fn a_response_whose_fields_leave_no_room_for_it() {
    let volume = small();
    let origin = Origin::answering(|_| {
        (200, format!("Cache-Control: max-age=60\r\nX-Long: {}", "x".repeat(17 << 10)), b"page".to_vec())
    });
    let server = serve(&volume, ["--origin", &origin.url()]);
    for _ in 0..2 {
        assert_eq!(server.get("/").cache(), "Eyewall; fwd=uri-miss; fwd-status=200; detail=too-large");
    }
}

#[test]
fn a_response_that_turns_out_to_be_too_large() {
    let volume = small();
    let origin = Origin::raw(|_, stream| {
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        for piece in large().chunks(5000) {
            let _ = stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes());
            let _ = stream.write_all(piece).and_then(|()| stream.write_all(b"\r\n"));
        }
        let _ = stream.write_all(b"0\r\n\r\n");
    });
    let server = serve(&volume, ["--origin", &origin.url()]);
    for _ in 0..2 {
        let reply = server.get("/");
        assert!(!reply.is_hit() && reply.is_whole);
        assert!(reply.body == large());
    }
}

#[test]
fn a_value_just_below_the_limit_whose_head_is_over_it() {
    let volume = small();
    let origin = Origin::answering(|_| (200, "Cache-Control: max-age=60".to_owned(), vec![b'x'; 16 << 10]));
    let server = serve(&volume, ["--origin", &origin.url()]);
    for is_hit in [false, true] {
        let reply = server.get("/");
        assert_eq!((reply.status, reply.body.len(), reply.is_hit()), (200, 16 << 10, is_hit));
    }
    assert_eq!(origin.asked().len(), 1);
}
