//! Fragments may be evicted one by one: Eyewall requests them again if that is safe.

use super::{ask_range, is_part, is_whole};
use crate::common::command::Volume;
use crate::common::film::{Film, MIB, Running};
use crate::common::server::Server;

const LENGTH: u64 = 5 * MIB + 1;

fn served(film: &Running) -> (Volume, Server) {
    let volume = Volume::sized("32M");
    let words = ["serve", "--listen", "127.0.0.1:0", "--origin", &film.origin.url()];
    let server = Server::spawn(&mut volume.command(words));
    (volume, server)
}

/// Evicts fragments by their numbers.
pub(super) fn evict(volume: &Volume, numbers: &[u32]) {
    let listed = volume.run(["ls", "--json"]);
    let text = listed.text();
    for number in numbers {
        let end = format!("/{number:x}\"");
        let at = text.find(&end).unwrap_or_else(|| panic!("no fragment {number} in {text}"));
        let start = text[..at].rfind('"').unwrap() + 1;
        let key = &text[start..at + end.len() - 1];
        assert_eq!(volume.run(["rm", key]).code, 0, "{key}");
    }
}

#[test]
fn missing_fragments_cost_one_request_for_each_gap() {
    let film = Film::of(LENGTH).run();
    let (volume, server) = served(&film);
    assert_eq!(server.get("/film").status, 200);
    evict(&volume, &[1, 2, 4]);
    is_part(&ask_range(&server, "0-9"), 1, 0..10, "Eyewall; hit");
    is_whole(&server.get("/film"), 1, LENGTH, "Eyewall; fwd=partial");
    assert_eq!(film.ranges(), ["", "bytes=1048576-3145727", "bytes=4194304-5242879"]);
    is_whole(&server.get("/film"), 1, LENGTH, "Eyewall; hit");
}

#[test]
fn without_a_strong_validator_all_of_it_is_fetched_again() {
    let film = Film { tag: "W/\"v", ..Film::of(LENGTH) }.run();
    let (volume, server) = served(&film);
    assert_eq!(server.get("/film").status, 200);
    is_whole(&server.get("/film"), 1, LENGTH, "Eyewall; hit");
    evict(&volume, &[2]);
    is_part(&ask_range(&server, "0-9"), 1, 0..10, "Eyewall; hit");
    film.change();
    is_whole(&server.get("/film"), 2, LENGTH, "Eyewall; fwd=partial; fwd-status=200; stored");
    assert_eq!(film.ranges(), ["", ""]);
    is_whole(&server.get("/film"), 2, LENGTH, "Eyewall; hit");
}

#[test]
fn an_origin_that_ignores_ranges_and_has_the_same_version_fills_the_gap() {
    let film = Film { gives_ranges: false, ..Film::of(LENGTH) }.run();
    let (volume, server) = served(&film);
    assert_eq!(server.get("/film").status, 200);
    evict(&volume, &[3]);
    is_whole(&server.get("/film"), 1, LENGTH, "Eyewall; fwd=partial");
    assert_eq!(film.ranges(), ["", "bytes=3145728-4194303"]);
    is_whole(&server.get("/film"), 1, LENGTH, "Eyewall; hit");
}
