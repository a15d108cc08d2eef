//! Several addresses, of both versions of IP: all serve the same sites, and each client has its own address.

use std::net::{SocketAddr, TcpListener};

use crate::common::client::get;
use crate::common::origin::Origin;
use crate::common::server::Server;

#[test]
fn each_address_serves_all_sites() {
    if TcpListener::bind("[::1]:0").is_err() {
        return println!("skipped: there is no IPv6 here");
    }
    let origin = Origin::counting("Cache-Control: no-store");
    let words = ["--listen", "[::1]:0", "--listen", "[::]:0", "--listen", "0.0.0.0:0", "--origin", &origin.url()];
    let server = Server::start(words);
    let addresses: Vec<SocketAddr> = server
        .announced
        .lines()
        .filter_map(|line| line.strip_prefix("listening on http://")?.strip_suffix('/')?.parse().ok())
        .collect();
    assert_eq!(addresses.len(), 4, "{}", server.announced);
    assert!(addresses.iter().all(|address| address.port() != 0));
    let (ipv4, ipv6) = (SocketAddr::from(([127, 0, 0, 1], 0)), "[::1]:0".parse::<SocketAddr>().unwrap());
    for (address, client) in addresses.into_iter().zip([ipv4, ipv6, ipv6, ipv4]) {
        let to = SocketAddr::new(client.ip(), address.port());
        assert_eq!(get(to, "/").status, 200, "{address}");
        let asked = origin.asked().pop().unwrap();
        assert_eq!(asked.field("x-forwarded-for"), client.ip().to_string());
        let node = if client.is_ipv6() { "for=\"[::1]\"" } else { "for=127.0.0.1" };
        assert!(asked.field("forwarded").starts_with(node), "{}", asked.field("forwarded"));
    }
}
