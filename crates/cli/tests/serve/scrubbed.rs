//! Somebody writes into a running server's volume. The scrub finds damaged entries without a request for them, drops and counts them.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use crate::common::client::Reply;
use crate::common::command::Volume;
use crate::common::origin::Origin;
use crate::common::server::Server;

fn page(path: &str) -> Vec<u8> {
    path.bytes().cycle().take(20_000).collect()
}

fn served(volume: &Volume, origin: &Origin, setting: &str) -> Server {
    let cache = format!("[cache]\npath = \"{}\"\n{setting}\n", volume.path().display());
    Server::configured(&format!("{cache}[[site]]\norigins = [\"{}\"]\n", origin.url()))
}

/// Changes bytes of a page in the volume.
fn damage(volume: &Volume, path: &str) {
    let (bytes, page) = (fs::read(volume.path()).unwrap(), page(path));
    let at = bytes.windows(page.len()).position(|part| part == page).unwrap();
    File::options().write(true).open(volume.path()).unwrap().write_all_at(&[0; 4096], at as u64 + 9000).unwrap();
}

fn dropped(volume: &Volume) -> u64 {
    let figures = volume.command(["stat", "--json"]).output().unwrap();
    let figures: serde_json::Value = serde_json::from_slice(&figures.stdout).unwrap();
    figures["evictions_damaged"].as_u64().unwrap()
}

#[test]
fn a_damaged_page_is_dropped_without_a_request_for_it() {
    let origin = Origin::answering(|asked| (200, "Cache-Control: max-age=600".to_owned(), page(&asked.target)));
    let volume = Volume::new();
    let server = served(&volume, &origin, "scrub = \"100ms\"\n");
    for path in ["/damaged", "/sound"] {
        assert!(server.get_until(path, Reply::is_hit).body == page(path));
    }
    damage(&volume, "/damaged");
    while dropped(&volume) == 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let reply = server.get("/damaged");
    assert!(!reply.is_hit() && reply.body == page("/damaged"));
    assert!(server.get("/sound").is_hit());
    assert_eq!(dropped(&volume), 1);
}

#[test]
fn several_servers_of_one_volume_take_turns_to_scrub() {
    let origin = Origin::answering(|asked| (200, "Cache-Control: max-age=600".to_owned(), page(&asked.target)));
    let volume = Volume::new();
    let servers = [(); 2].map(|()| served(&volume, &origin, ""));
    let cache = eyewall::Cache::open(volume.path()).unwrap();
    // The first one that starts has the turn.
    while cache.scrub_turn().unwrap().is_some() {
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(servers);
    assert!(cache.scrub_turn().unwrap().is_some(), "it ends with the server");
}

#[test]
fn a_server_with_scrub_off_does_not_scrub() {
    let origin = Origin::answering(|asked| (200, "Cache-Control: max-age=600".to_owned(), page(&asked.target)));
    let volume = Volume::new();
    let server = served(&volume, &origin, "scrub = \"0s\"\n");
    server.get_until("/", Reply::is_hit);
    assert!(eyewall::Cache::open(volume.path()).unwrap().scrub_turn().unwrap().is_some());
}
