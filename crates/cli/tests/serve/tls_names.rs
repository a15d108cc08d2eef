//! The certificate and the site of a client are those of the host that it names.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use crate::common::authority::Authority;
use crate::common::client::connect;
use crate::common::https::{Https, connect_by, exchange};
use crate::common::origin::Origin;

/// Two sites with certificates of their own, one that shares the second's, and one without HTTPS.
fn served(authority: &Authority, origin: &Origin) -> Https {
    let shared = authority.issue("shared.pem", &["two.example", "three.example"]);
    let sharing = |host: &str| {
        let tls = format!("tls = {{ certificate = '{}' }}", shared.display());
        format!("[[site]]\nhosts = [\"{host}\"]\norigins = [\"{}\"]\n{tls}\n", origin.url())
    };
    let plain = format!("[[site]]\nhosts = [\"plain.example\"]\norigins = [\"{}\"]\n", origin.url());
    let one = authority.site("one.example", &origin.url(), "");
    authority.serve(&[one, sharing("two.example"), sharing("three.example"), plain].concat(), "")
}

fn origin() -> Origin {
    Origin::answering(|asked| (200, "Cache-Control: max-age=600".to_owned(), asked.field("host").as_bytes().to_vec()))
}

#[test]
fn each_host_has_its_certificate_and_its_site() {
    let (authority, origin) = (Authority::new(), origin());
    let https = served(&authority, &origin);
    for host in ["one.example", "two.example", "three.example", "ONE.example"] {
        assert_eq!(authority.get(https.address, host, "/").text(), host.to_lowercase());
    }
}

#[test]
fn a_handshake_for_an_unknown_host_is_refused() {
    let (authority, origin) = (Authority::new(), origin());
    let https = served(&authority, &origin);
    for host in ["unknown.example", "plain.example", "www.one.example"] {
        let error = authority.connect(https.address, host).unwrap_err().to_string();
        assert!(error.contains("UnrecognisedName"), "{host}: {error}");
    }
    assert_eq!(authority.get(https.address, "one.example", "/").status, 200);
}

#[test]
fn a_request_for_a_host_of_another_certificate_is_misdirected() {
    let (authority, origin) = (Authority::new(), origin());
    let https = served(&authority, &origin);
    let over = |name: &str, host: &str| {
        let mut client = authority.connect(https.address, name).unwrap();
        exchange(&mut client, host, "GET", "/", &[]).status
    };
    // As a miss, and as a hit.
    for _ in 0..2 {
        assert_eq!(over("two.example", "three.example"), 200);
        for (name, host) in
            [("one.example", "two.example"), ("two.example", "one.example"), ("one.example", "plain.example")]
        {
            assert_eq!(over(name, host), 421, "{host} over {name}");
        }
        assert_eq!(over("one.example", "one.example"), 200);
    }
}

#[test]
fn a_client_without_sni_gets_the_first_certificate_and_any_site_with_one() {
    let (authority, origin) = (Authority::new(), origin());
    let https = served(&authority, &origin);
    let mut config = authority.config(&[]);
    config.enable_sni = false;
    let config = Arc::new(config);
    for (host, status) in [("one.example", 200), ("two.example", 200), ("plain.example", 421)] {
        let mut client = connect_by(Arc::clone(&config), https.address, "one.example").unwrap();
        assert_eq!(exchange(&mut client, host, "GET", "/", &[]).status, status, "{host}");
    }
    assert!(connect_by(config, https.address, "two.example").is_err(), "it is the first site's certificate");
}

#[test]
fn bytes_that_are_not_tls_end_the_connection() {
    let (authority, origin) = (Authority::new(), origin());
    let https = served(&authority, &origin);
    let mut client = connect(https.address);
    client.write_all(b"GET / HTTP/1.1\r\nHost: one.example\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    assert_eq!(authority.get(https.address, "one.example", "/").status, 200);
}
