//! A request counts as one lookup in the volume's statistics, however many lookups the server needs.

use crate::common::client::Reply;
use crate::common::command::Volume;
use crate::common::origin::Origin;
use crate::common::server::Server;

fn lookups(volume: &Volume) -> (u64, u64) {
    let stat: serde_json::Value = serde_json::from_str(volume.run(["stat", "--json"]).text()).unwrap();
    (stat["hits"].as_u64().unwrap(), stat["misses"].as_u64().unwrap())
}

#[test]
fn a_miss_counts_once_and_so_does_a_hit() {
    let volume = Volume::new();
    let origin = Origin::counting("Cache-Control: max-age=60");
    let words = ["serve", "--listen", "127.0.0.1:0", "--origin", &origin.url()];
    let server = Server::spawn(&mut volume.command(words));
    assert!(!server.get("/").is_hit());
    assert_eq!(lookups(&volume), (0, 1));

    server.get_until("/", Reply::is_hit);
    let (hits, misses) = lookups(&volume);
    assert!(server.get("/").is_hit());
    assert_eq!(lookups(&volume), (hits + 1, misses));
}

#[test]
fn a_miss_counts_once_where_failures_are_remembered_too() {
    let volume = Volume::new();
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::configured(&format!(
        "[cache]\npath = \"{}\"\n[[site]]\norigins = [\"{}\"]\ncache = {{ negative_ttl = {{ 5xx = \"1m\" }} }}\n",
        volume.path().display(),
        origin.url()
    ));
    assert!(!server.get("/").is_hit());
    assert_eq!(lookups(&volume), (0, 1));
}
