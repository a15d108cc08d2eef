//! Ranges of a file that isn't in the volume, because it is too large or has only just changed.

use crate::common::client::Reply;
use crate::common::command::Volume;
use crate::common::server::{Server, Site};

const LENGTH: usize = 3_000_000;

/// A file of many pieces, served with a volume with entries of up to 16 KiB.
fn served() -> (Volume, Site, Server) {
    let volume = Volume::absent();
    assert_eq!(volume.run(["create", "--size", "1M", "--entry-bytes-max", "16K"]).code, 0);
    let site = Site::new();
    site.write("large.bin", large());
    let words = ["serve", "--listen", "127.0.0.1:0", "--root", site.path().to_str().unwrap()];
    let server = Server::spawn(&mut volume.command(words));
    server.get_until("/large.bin", |reply| !reply.field("last-modified").is_empty());
    (volume, site, server)
}

fn large() -> Vec<u8> {
    (0..=250).cycle().take(LENGTH).collect()
}

fn part(server: &Server, range: &str) -> Reply {
    server.ask("GET", "/large.bin", &[&format!("Range: bytes={range}")])
}

#[test]
fn one_range_is_sent_alone() {
    let (_volume, _site, server) = served();
    for (range, from, to) in [
        ("0-0", 0, 1),
        ("100000-299999", 100_000, 300_000),
        ("-5", LENGTH - 5, LENGTH),
        ("2999990-", 2_999_990, LENGTH),
    ] {
        let reply = part(&server, range);
        // As the file system allows.
        let is_read = reply.cache() == "Eyewall; fwd=uri-miss; detail=too-large";
        assert!(
            reply.status == 206 && (is_read || reply.cache() == "Eyewall; fwd=uri-miss; detail=sendfile"),
            "{range}"
        );
        assert_eq!(reply.field("content-range"), format!("bytes {from}-{}/{LENGTH}", to - 1));
        assert!(reply.body == large()[from..to], "{range}");
    }
}

#[test]
fn several_ranges_are_sent_together() {
    let (_volume, _site, server) = served();
    let reply = part(&server, "0-99999,-2");
    assert_eq!(reply.status, 206);
    assert!(reply.field("content-type").starts_with("multipart/byteranges; boundary="));
    assert!(reply.is_whole, "as long as it says");
    let has = |bytes: &[u8]| reply.body.windows(bytes.len()).any(|window| window == bytes);
    assert!(has(&large()[..100_000]) && has(format!("bytes 2999998-2999999/{LENGTH}").as_bytes()));
}

#[test]
fn a_range_past_the_end_is_refused() {
    let (_volume, _site, server) = served();
    let reply = part(&server, "3000000-");
    assert_eq!((reply.status, reply.field("content-range")), (416, "bytes */3000000"));
}

#[test]
fn conditions_count() {
    let (_volume, _site, server) = served();
    let head = server.ask("HEAD", "/large.bin", &["Range: bytes=0-1"]);
    assert_eq!((head.status, head.field("content-length"), head.field("accept-ranges")), (200, "3000000", "bytes"));
    let tag = format!("If-Range: {}", head.field("etag"));
    let asked = |condition: &str| server.ask("GET", "/large.bin", &["Range: bytes=0-1", condition]);
    assert_eq!(asked(&tag).body, large()[..2]);
    assert_eq!(asked("If-Range: \"other\"").body.len(), LENGTH);
    assert_eq!(asked("If-Match: \"other\"").status, 412);
    assert_eq!(asked(&tag.replace("If-Range", "If-None-Match")).status, 304);
}

#[test]
fn a_range_of_a_file_that_has_only_just_changed() {
    let site = Site::new();
    site.write("page.html", "hello");
    let server = Server::over_folder(site.path());
    // Ranges work whether it is stored or not.
    let reply = server.ask("GET", "/page.html", &["Range: bytes=1-2"]);
    assert_eq!((reply.status, reply.text()), (206, "el"));
}
