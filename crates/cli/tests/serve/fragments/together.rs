//! Several clients miss the same fragments, or one disconnects: Eyewall requests nothing twice.

use std::io::Read as _;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use super::{ask_range, is_part, is_whole};
use crate::common::client::{connect, send};
use crate::common::film::{Film, MIB};

const LENGTH: u64 = 30 * MIB;

#[test]
fn equal_missing_ranges_cost_one_request() {
    let (arrived, wait_for_arrival) = channel();
    let (release, wait_for_release) = channel::<()>();
    let wait_for_release = Mutex::new(wait_for_release);
    let film = Film::of(LENGTH).before_each_mib(move |_, at| {
        if at == 12 * MIB {
            let _ = arrived.send(());
            let _ = wait_for_release.lock().unwrap().recv();
        }
    });
    let film = film.run();
    let server = film.serve();
    is_part(&ask_range(&server, "0-9"), 1, 0..10, "Eyewall; fwd=uri-miss");
    std::thread::scope(|scope| {
        let ask = || ask_range(&server, "13000000-13000009");
        let clients: Vec<_> = (0..6).map(|_| scope.spawn(ask)).collect();
        wait_for_arrival.recv().unwrap();
        // Later requests find it stored, or in flight.
        release.send(()).unwrap();
        for client in clients {
            is_part(&client.join().unwrap(), 1, 13_000_000..13_000_010, "Eyewall; ");
        }
    });
    assert_eq!(film.ranges(), ["bytes=0-1048575", "bytes=12582912-13631487"]);
}

#[test]
fn concurrent_full_requests_read_the_same_stream() {
    let (arrived, wait_for_arrival) = channel();
    let (release, wait_for_release) = channel::<()>();
    let wait_for_release = Mutex::new(wait_for_release);
    let film = Film::of(LENGTH).before_each_mib(move |_, at| {
        if at == 5 * MIB {
            let _ = arrived.send(());
            let _ = wait_for_release.lock().unwrap().recv();
        }
    });
    let film = film.run();
    let server = film.serve();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..3).map(|_| scope.spawn(|| server.get("/film"))).collect();
        wait_for_arrival.recv().unwrap();
        is_part(&ask_range(&server, "3000000-3000009"), 1, 3_000_000..3_000_010, "Eyewall; ");
        release.send(()).unwrap();
        for client in clients {
            is_whole(&client.join().unwrap(), 1, LENGTH, "Eyewall; ");
        }
    });
    assert_eq!(film.ranges(), [""]);
}

#[test]
fn fragments_from_before_a_disconnect_are_stored() {
    let film = Film::of(LENGTH).run();
    let server = film.serve();
    let mut client = connect(server.address);
    send(&mut client, "GET", "/film", &[]);
    let mut bytes = vec![0; 3 * MIB as usize];
    client.read_exact(&mut bytes).unwrap();
    drop(client);
    is_part(&ask_range(&server, "0-1048575"), 1, 0..MIB, "Eyewall; hit");
    assert_eq!(film.ranges(), [""]);
    is_whole(&server.get("/film"), 1, LENGTH, "Eyewall; ");
}
