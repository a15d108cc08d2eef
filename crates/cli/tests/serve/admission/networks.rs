//! `allow` and `deny`: 403 for requests, and no connection for clients that connect themselves.

use std::io::{Read as _, Write as _};

use super::{get_from, server};
use crate::common::client::{Reply, connect};
use crate::common::origin::Origin;
use crate::common::server::Server;

#[test]
fn denied_clients_of_a_proxy_get_403_also_for_hits() {
    for (of_server, of_site) in [("deny = [\"192.0.2.0/24\"]", ""), ("", "deny = [\"192.0.2.0/24\"]")] {
        let origin = Origin::counting("Cache-Control: max-age=600");
        let server = server(&origin, of_server, of_site);
        server.get_until("/page", Reply::is_hit);
        for target in ["/page", "/other"] {
            assert_eq!(get_from(&server, "192.0.2.7", target).status, 403, "{target}");
        }
        assert_eq!(origin.asked().len(), 1);
        assert_eq!(get_from(&server, "198.51.100.7", "/page").status, 200);
    }
}

#[test]
fn only_allowed_clients_may_use_a_site() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let server = server(&origin, "", "allow = [\"10.0.0.0/8\", \"2001:db8::/32\"]\ndeny = [\"10.1.0.0/16\"]");
    for (address, status) in
        [("10.2.3.4", 200), ("10.1.2.3", 403), ("2001:db8::7", 200), ("192.0.2.7", 403), ("2001:db9::7", 403)]
    {
        assert_eq!(get_from(&server, address, "/page").status, status, "{address}");
    }
}

#[test]
fn the_connection_of_a_denied_client_is_closed() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let limits = "[server]\n[server.limits]\ndeny = [\"127.0.0.0/8\"]\n";
    let server = Server::configured(&format!("{limits}[[site]]\norigins = [\"{}\"]\n", origin.url()));
    let mut stream = connect(server.address);
    // Either may find that the connection is closed.
    let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    assert!(reply.is_empty() && origin.asked().is_empty());
}
