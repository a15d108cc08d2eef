//! The connection to Redis is encrypted.

use super::{Node, watchful};
use crate::common::authority::Authority;
use crate::common::origin::{Origin, nobody};
use crate::common::redis::Redis;

#[test]
fn a_server_with_a_certificate_of_the_named_authority_is_trusted_and_no_other() {
    let authority = Authority::new();
    let certificate = authority.issue("redis.pem", &["localhost"]);
    // Redis takes no port 0.
    let port = nobody().port().to_string();
    let file = certificate.to_str().unwrap();
    let words = ["--tls-port", &port, "--tls-cert-file", file, "--tls-key-file", file, "--tls-auth-clients", "no"];
    let Some(_redis) = Redis::start(&words) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let url = format!("rediss://localhost:{port}");
    let trusting = format!("{}ca_file = \"{}\"\n", watchful(&url), authority.file().display());
    let nodes = [(); 2].map(|()| Node::start(&trusting, &origin.url()));
    nodes[0].store("/a");
    nodes[1].purge_and_wait(r#"{"url": "http://test/a"}"#);
    assert!(!nodes[0].is_hit("/a"));
    let other = Node::start(&watchful(&url), &origin.url());
    let trouble = other.await_status(|status| status["trouble"].is_string())["trouble"].to_string();
    assert!(trouble.contains("certificate"), "{trouble}");
}
