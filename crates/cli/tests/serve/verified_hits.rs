//! Somebody writes into the volume of a running server, into the middle of a page. With `verify_hits` no client gets that page.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

use crate::common::client::Reply;
use crate::common::command::Volume;
use crate::common::origin::Origin;
use crate::common::server::Server;

fn page() -> Vec<u8> {
    (0..=250).cycle().take(20_000).collect()
}

/// Changes bytes of the page in the volume.
fn damage(volume: &Volume) {
    let (bytes, page) = (fs::read(volume.path()).unwrap(), page());
    let at = bytes.windows(page.len()).position(|part| part == page).unwrap();
    File::options().write(true).open(volume.path()).unwrap().write_all_at(&[0xff; 512], at as u64 + 9000).unwrap();
}

#[test]
fn a_damaged_page_is_fetched_again() {
    let origin = Origin::answering(|_| (200, "Cache-Control: max-age=600".to_owned(), page()));
    for (setting, is_verified) in [("", false), ("verify_hits = true\n", true)] {
        let volume = Volume::new();
        let (path, url) = (volume.path(), origin.url());
        let cache = format!("[cache]\npath = \"{}\"\n{setting}\n", path.display());
        let server = Server::configured(&format!("{cache}[[site]]\norigins = [\"{url}\"]\n"));
        assert!(server.get_until("/", Reply::is_hit).body == page());
        damage(&volume);
        let reply = server.get("/");
        assert_eq!((reply.is_hit(), reply.body == page()), (!is_verified, is_verified), "{setting}");
        if is_verified {
            assert!(server.get_until("/", Reply::is_hit).body == page());
            let figures = volume.command(["stat", "--json"]).output().unwrap();
            let figures: serde_json::Value = serde_json::from_slice(&figures.stdout).unwrap();
            assert_eq!(figures["evictions_damaged"], 1);
        }
    }
}
