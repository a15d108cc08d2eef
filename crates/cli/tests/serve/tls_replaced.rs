//! The file of a certificate is replaced while the server runs. New connections get the new one, and a broken file changes nothing.

use std::time::{Duration, Instant};

use crate::common::admin::{Socket, json};
use crate::common::authority::{Authority, replace};
use crate::common::https::{Https, exchange};
use crate::common::origin::Origin;

const HOST: &str = "site.example";

/// The certificate that a new connection gets, in DER.
fn presented(authority: &Authority, https: &Https) -> Vec<u8> {
    let client = authority.connect(https.address, HOST).unwrap();
    client.conn.peer_certificates().unwrap()[0].to_vec()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < deadline, "not {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_new_certificate_is_taken_and_a_broken_one_is_reported() {
    let (authority, origin) = (Authority::new(), Origin::counting("Cache-Control: max-age=600"));
    let socket = Socket::new();
    let https = authority.serve(&[authority.site(HOST, &origin.url(), ""), socket.table()].concat(), "");
    let status = || json(&socket.ask("GET", "/status", &[], ""))["sites"][0]["certificates"][0].clone();
    let first = presented(&authority, &https);
    assert_eq!((status()["names"][0].as_str(), status()["source"].as_str()), (Some(HOST), Some("files")));
    assert!(status()["not_after"].as_str().is_some_and(|time| time.ends_with('Z')) && status()["error"].is_null());

    let mut kept = authority.connect(https.address, HOST).unwrap();
    let path = authority.issue(&format!("{HOST}.pem"), &[HOST]);
    wait_until("replaced", || presented(&authority, &https) != first);
    assert_eq!(exchange(&mut kept, HOST, "GET", "/", &[]).status, 200, "connections from before go on");

    let second = presented(&authority, &https);
    let whole = std::fs::read(&path).unwrap();
    replace(&path, &whole[..whole.len() / 3]);
    wait_until("reported", || !status()["error"].is_null());
    assert_eq!(presented(&authority, &https), second);
    replace(&path, &whole);
    wait_until("mended", || status()["error"].is_null());
    assert_eq!(authority.get(https.address, HOST, "/").status, 200);
}
