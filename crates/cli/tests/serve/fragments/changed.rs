//! The origin has another version, or none, when Eyewall requests a missing fragment: versions are never mixed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use super::evicted::evict;
use super::{ask_range, is_whole};
use crate::common::command::Volume;
use crate::common::film::{Film, MIB, bytes};
use crate::common::origin::{Origin, respond};
use crate::common::server::Server;

const LENGTH: u64 = 5 * MIB + 1;

fn serve(volume: &Volume, origin: &Origin) -> Server {
    Server::spawn(&mut volume.command(["serve", "--listen", "127.0.0.1:0", "--origin", &origin.url()]))
}

#[test]
fn after_the_head_the_response_is_cut_off_and_the_next_one_is_new() {
    let film = Film::of(LENGTH).run();
    let volume = Volume::sized("32M");
    let server = serve(&volume, &film.origin);
    assert_eq!(server.get("/film").status, 200);
    evict(&volume, &[3]);
    film.change();
    let cut = server.get("/film");
    assert!(!cut.is_whole && cut.body == bytes(1, 0..cut.body.len() as u64), "{} bytes", cut.body.len());
    assert!(cut.body.len() as u64 <= 3 * MIB);
    is_whole(&server.get("/film"), 2, LENGTH, "Eyewall; fwd=uri-miss; fwd-status=200; stored");
    is_whole(&server.get("/film"), 2, LENGTH, "Eyewall; hit");
}

#[test]
fn before_the_head_the_response_is_new_at_once() {
    let film = Film::of(LENGTH).run();
    let volume = Volume::sized("32M");
    let server = serve(&volume, &film.origin);
    assert_eq!(server.get("/film").status, 200);
    evict(&volume, &[0]);
    film.change();
    is_whole(&server.get("/film"), 2, LENGTH, "Eyewall; fwd=partial; fwd-status=200; stored");
    is_whole(&server.get("/film"), 2, LENGTH, "Eyewall; hit");
}

#[test]
fn a_failure_of_the_origin_before_the_head_is_reported() {
    let origin = Origin::raw(|asked, stream| {
        let fields = "Cache-Control: max-age=60\r\nETag: \"v1\"";
        if asked.field("range").is_empty() {
            respond(stream, 200, fields, LENGTH as usize, &bytes(1, 0..LENGTH));
        } else {
            respond(stream, 503, "", 2, b"no");
        }
    });
    let volume = Volume::sized("32M");
    let server = serve(&volume, &origin);
    assert_eq!(server.get("/film").status, 200);
    evict(&volume, &[0]);
    let reply = server.get("/film");
    assert_eq!((reply.status, reply.cache()), (502, "Eyewall; fwd=partial; detail=origin-broken"));
    let still_there = server.ask("GET", "/film", &["Range: bytes=1048576-1048577"]);
    assert!(still_there.is_hit() && still_there.status == 206, "{}", still_there.cache());
}

#[test]
fn a_response_purged_during_its_fetch_is_not_found_afterwards() {
    let (arrived, wait_for_arrival) = channel();
    let (release, wait_for_release) = channel::<()>();
    let wait_for_release = Mutex::new(wait_for_release);
    let film = Film::of(LENGTH).before_each_mib(move |asked, at| {
        if asked.method == "GET" && at == 3 * MIB {
            let _ = arrived.send(());
            let _ = wait_for_release.lock().unwrap().recv();
        }
    });
    let film = film.run();
    let volume = Volume::sized("32M");
    let server = serve(&volume, &film.origin);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| server.get("/film"));
        wait_for_arrival.recv().unwrap();
        film.change();
        assert_eq!(server.ask("POST", "/film", &["Content-Length: 0"]).status, 200);
        release.send(()).unwrap();
        is_whole(&first.join().unwrap(), 1, LENGTH, "Eyewall; fwd=uri-miss");
    });
    release.send(()).unwrap();
    is_whole(&server.get("/film"), 2, LENGTH, "Eyewall; fwd=uri-miss; fwd-status=200; stored");
}

/// An origin that sends a film in ranges; the fields of each response except the first are `later`.
fn with_later_fields(later: &'static str) -> Origin {
    let count = AtomicUsize::new(0);
    Origin::raw(move |asked, stream| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        let fields = if number == 0 { "Cache-Control: max-age=60\r\nX-Kept: yes\r\nX-Part: 0" } else { later };
        let (first, last) = asked.field("range").strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let (first, end) = (first.parse().unwrap(), LENGTH.min(last.parse::<u64>().unwrap() + 1));
        let range = format!("Content-Range: bytes {first}-{}/{LENGTH}", end - 1);
        let fields = format!("{fields}\r\nETag: \"v1\"\r\n{range}");
        respond(stream, 206, &fields, (end - first) as usize, &bytes(1, first..end));
    })
}

#[test]
fn a_part_that_comes_later_renews_the_head() {
    let origin = with_later_fields("Cache-Control: max-age=3600\r\nX-Part: 1");
    let volume = Volume::sized("32M");
    let server = serve(&volume, &origin);
    let first = ask_range(&server, "0-9");
    assert_eq!((first.status, first.field("x-part")), (206, "0"));
    assert_eq!(ask_range(&server, "3000000-3000009").status, 206);
    let hit = ask_range(&server, "0-9");
    assert!(hit.is_hit(), "{hit:?}");
    assert_eq!((hit.field("x-part"), hit.field("x-kept"), hit.field("cache-control")), ("1", "yes", "max-age=3600"));
    let left: u64 = hit.cache().rsplit_once("ttl=").unwrap().1.parse().unwrap();
    assert!(left > 60, "{left}");
}

#[test]
fn a_part_that_may_not_be_stored_removes_the_head() {
    let origin = with_later_fields("Cache-Control: no-store");
    let volume = Volume::sized("32M");
    let server = serve(&volume, &origin);
    assert_eq!(ask_range(&server, "0-9").status, 206);
    assert_eq!(ask_range(&server, "3000000-3000009").status, 206);
    assert!(!ask_range(&server, "0-9").is_hit());
}
