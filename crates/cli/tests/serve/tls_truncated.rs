//! Somebody truncates the volume of a running server. Clients over HTTPS never get wrong bytes: the encryption would read zeros.

use std::fs::File;
use std::io::{Read as _, Write as _};

use crate::common::authority::Authority;
use crate::common::client::parse;
use crate::common::origin::Origin;

const HOST: &str = "site.example";
const BYTES: usize = 12_000_000;

fn page() -> Vec<u8> {
    (1..=250).cycle().take(BYTES).collect()
}

#[test]
fn a_response_is_right_or_ends_early() {
    let (authority, origin) =
        (Authority::new(), Origin::answering(|_| (200, "Cache-Control: max-age=600".to_owned(), page())));
    // The fast path, and the full one.
    for fields in ["", "Range: bytes=0-\r\n"] {
        let path = authority.path("volume");
        let _ = std::fs::remove_file(&path);
        let cache = format!("[cache]\npath = '{}'\nsize = \"64M\"\nentry_bytes_max = \"16M\"\n", path.display());
        let https = authority.serve(&[cache, authority.site(HOST, &origin.url(), "")].concat(), "");
        while !authority.get(https.address, HOST, "/").is_hit() {}
        let mut client = authority.connect(https.address, HOST).unwrap();
        write!(client, "GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n{fields}\r\n").unwrap();
        // The rest is in the volume while the client reads nothing.
        let mut bytes = vec![0; 1000];
        client.read_exact(&mut bytes).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        let ended = client.read_to_end(&mut bytes);
        let reply = parse(&bytes, false);
        assert!(reply.body.len() < BYTES && !reply.is_whole && ended.is_err(), "{} bytes", reply.body.len());
        assert!(page().starts_with(&reply.body), "{} bytes", reply.body.len());
        // New requests go to the origin.
        let reply = authority.get(https.address, HOST, "/");
        assert!(reply.is_whole && reply.body == page(), "{}", reply.cache());
    }
}
