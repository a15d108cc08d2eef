//! The origin has another version by the time that a missing fragment is asked for, or nothing at all: versions are never mixed.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use super::evicted::evict;
use super::is_whole;
use crate::common::command::Volume;
use crate::common::film::{Film, MIB, bytes};
use crate::common::origin::{Origin, respond};
use crate::common::server::Server;

const LENGTH: u64 = 5 * MIB + 1;

fn serve(volume: &Volume, origin: &Origin) -> Server {
    Server::spawn(&mut volume.command(["serve", "--listen", "127.0.0.1:0", "--origin", &origin.url()]))
}

#[test]
fn behind_the_head_the_answer_is_cut_off_and_the_next_one_is_new() {
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
fn before_the_head_the_answer_is_new_at_once() {
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
fn an_origin_that_fails_is_told_of_before_the_head() {
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
fn what_is_purged_while_it_comes_is_not_found_afterwards() {
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
