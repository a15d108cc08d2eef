//! Requests over HTTP are redirected to HTTPS, and HSTS goes to browsers over HTTPS alone.

use crate::common::authority::Authority;
use crate::common::client::{Reply, ask};
use crate::common::https::Https;
use crate::common::origin::Origin;

const HOST: &str = "site.example";
const WORDS: &str = "redirect_to_https = true\nhsts = \"365d\"";
const HSTS: &str = "strict-transport-security";

/// An origin that has another idea of HSTS.
fn origin() -> Origin {
    Origin::counting("Cache-Control: max-age=600\r\nStrict-Transport-Security: max-age=1")
}

fn plain(https: &Https, method: &str, target: &str, fields: &[&str]) -> Reply {
    // The host of the target goes before that of the common client.
    ask(https.server.address, method, &format!("http://{HOST}{target}"), fields)
}

#[test]
fn requests_without_tls_are_redirected() {
    let (authority, origin) = (Authority::new(), origin());
    let https = authority.serve(&authority.site(HOST, &origin.url(), WORDS), "");
    let port = https.address.port();
    // Also when the page is stored.
    for _ in 0..2 {
        for (method, status) in [("GET", 301), ("HEAD", 301), ("POST", 308)] {
            let reply = plain(&https, method, "/a/b?c=%20d", &[]);
            assert_eq!(
                (reply.status, reply.field("location")),
                (status, &*format!("https://{HOST}:{port}/a/b?c=%20d"))
            );
            assert_eq!((reply.field("cache-control"), reply.field(HSTS)), ("no-store", ""));
        }
        assert_eq!(authority.get(https.address, HOST, "/a/b?c=%20d").status, 200);
    }
    assert_eq!(origin.asked().len(), 1);
    // A client can't get around it, since nobody trusts it.
    assert_eq!(plain(&https, "GET", "/", &["X-Forwarded-Proto: https"]).status, 301);
}

#[test]
fn a_trusted_proxy_whose_client_uses_https_is_not_redirected() {
    let (authority, origin) = (Authority::new(), origin());
    let https = authority.serve(&authority.site(HOST, &origin.url(), WORDS), "trusted_proxies = [\"127.0.0.1\"]");
    for _ in 0..2 {
        let reply = plain(&https, "GET", "/", &["X-Forwarded-Proto: https"]);
        assert_eq!((reply.status, reply.field(HSTS)), (200, "max-age=31536000"));
    }
    assert_eq!(plain(&https, "GET", "/", &["X-Forwarded-Proto: http"]).status, 301);
    assert_eq!(plain(&https, "GET", "/", &[]).status, 301);
}

#[test]
fn hsts_is_the_sites_own_and_over_https_alone() {
    let (authority, origin) = (Authority::new(), origin());
    let site = authority.site(HOST, &origin.url(), "hsts = \"1h\"");
    let https = authority.serve(&site, "");
    // A miss, a hit of the fast path, one of the full path.
    for fields in [&[][..], &[], &["Range: bytes=0-0"], &["If-None-Match: \"a\""]] {
        let reply = authority.ask(https.address, HOST, "GET", "/", fields);
        let values: Vec<&str> =
            reply.fields.iter().filter(|(name, _)| name == HSTS).map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["max-age=3600"], "{reply:?}");
        assert_eq!(plain(&https, "GET", "/", fields).field(HSTS), "");
    }
}
