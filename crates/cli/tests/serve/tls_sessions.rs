//! A client resumes its TLS session with the server that follows a restart, by the file of ticket keys.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use rustls::HandshakeKind;

use crate::common::authority::Authority;
use crate::common::https::{Https, connect_by};
use crate::common::origin::Origin;

const HOST: &str = "site.example";

#[test]
fn a_restart_costs_no_full_handshake() {
    let (authority, origin) = (Authority::new(), Origin::counting("Cache-Control: max-age=600"));
    let site = authority.site(HOST, &origin.url(), "");
    let config = Arc::new(authority.config(&["http/1.1"]));
    let kind = |https: &Https| {
        let mut client = connect_by(Arc::clone(&config), https.address, HOST).unwrap();
        write!(client, "GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n").unwrap();
        // The tickets come before the response.
        client.read_to_end(&mut Vec::new()).unwrap();
        client.conn.handshake_kind().unwrap()
    };
    let first = authority.serve(&site, "");
    assert_ne!(kind(&first), HandshakeKind::Resumed);
    assert_eq!(kind(&first), HandshakeKind::Resumed);
    drop(first);
    let second = authority.serve(&site, "");
    assert_eq!(kind(&second), HandshakeKind::Resumed);
    let keys = authority.path("state/tickets");
    assert_eq!(std::fs::metadata(&keys).unwrap().permissions().mode() & 0o777, 0o600);
    drop(second);
    std::fs::remove_file(&keys).unwrap();
    assert_ne!(kind(&authority.serve(&site, "")), HandshakeKind::Resumed);
}
