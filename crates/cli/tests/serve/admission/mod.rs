//! Limits for clients (`[server.limits]`, `[site.limits]`), and for the requests that origins get.

mod connections;
mod networks;
mod origin_queue;
mod rates;

use std::io::{Read as _, Write as _};

use crate::common::client::{Reply, connect};
use crate::common::origin::Origin;
use crate::common::server::Server;

/// The tests send requests as a trusted proxy does, for clients with any address.
const TRUSTED: &str = "trusted_proxies = [\"127.0.0.1\"]";

/// A server with these limits of the server and of its site.
fn server(origin: &Origin, server: &str, site: &str) -> Server {
    let url = origin.url();
    Server::configured(&format!(
        "[server]\n{TRUSTED}\n[server.limits]\n{server}\n[[site]]\norigins = [\"{url}\"]\n[site.limits]\n{site}\n"
    ))
}

/// A request of a client with this address.
fn get_from(server: &Server, address: &str, target: &str) -> Reply {
    server.ask("GET", target, &[&format!("X-Forwarded-For: {address}")])
}

/// The statuses of `count` requests of one client on one connection.
fn statuses(server: &Server, address: &str, target: &str, count: usize) -> Vec<u16> {
    let mut stream = connect(server.address);
    let request = format!("GET {target} HTTP/1.1\r\nHost: test\r\nX-Forwarded-For: {address}\r\n");
    let last = format!("{request}Connection: close\r\n\r\n");
    let requests = format!("{request}\r\n").repeat(count - 1) + &last;
    stream.write_all(requests.as_bytes()).unwrap();
    let mut replies = String::new();
    stream.read_to_string(&mut replies).unwrap();
    let heads = replies.split("HTTP/1.1 ").skip(1);
    heads.map(|head| head[..3].parse().unwrap()).collect()
}
