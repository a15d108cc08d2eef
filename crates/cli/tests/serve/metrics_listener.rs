//! `metrics_listen`: an address for metrics alone, which no site has a part in, and which an upgrade takes along.

use std::net::SocketAddr;

use crate::common::admin::ask_at;
use crate::common::client::ask;
use crate::common::metrics::Scrape;
use crate::common::origin::{Origin, nobody};
use crate::common::server::Server;
use crate::common::upgrading::Upgrading;

fn scrape(address: SocketAddr) -> Scrape {
    Scrape::read(&ask_at(address, "GET", "/metrics", &[], ""))
}

#[test]
fn its_address_has_the_metrics_and_nothing_else() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let site = format!("[[site]]\norigins = [\"{}\"]\n", origin.url());
    let server = Server::configured(&format!("[server]\nmetrics_listen = \"127.0.0.1:0\"\n{site}"));
    let told = server.announced.lines().find_map(|line| line.strip_prefix("metrics      http://"));
    let address = told.and_then(|address| address.strip_suffix("/metrics")?.parse().ok()).unwrap();
    server.get("/");
    for (method, target, status) in [
        ("GET", "/metrics", 200),
        ("HEAD", "/metrics", 200),
        ("POST", "/metrics", 405),
        ("GET", "/", 404),
        ("GET", "/status", 404),
    ] {
        assert_eq!(ask_at(address, method, target, &[], "").status, status, "{method} {target}");
    }
    assert_eq!(scrape(address).sum("eyewall_requests_total", &[]), 1);
    assert!(!server.get("/metrics").text().contains("eyewall_"), "the site has its own page there");
}

#[test]
fn after_an_upgrade_the_new_process_counts_from_zero_at_the_same_address() {
    let (address, origin) = (nobody(), Origin::counting("Cache-Control: max-age=60"));
    let rest = format!("metrics_listen = \"{address}\"\n[[site]]\norigins = [\"{}\"]\n", origin.url());
    let mut server = Upgrading::start(&rest);
    ask(server.address, "GET", "/", &[]);
    let before = scrape(address);
    assert_eq!(before.sum("eyewall_requests_total", &[]), 1);
    server.upgrade();
    // The process before answers until it has closed the address.
    let after = loop {
        let after = scrape(address);
        if after.exact_sum("process_start_time_seconds", &[]) > before.exact_sum("process_start_time_seconds", &[]) {
            break after;
        }
    };
    assert_eq!(after.sum("eyewall_requests_total", &[]), 0);
    assert!(after.sum("eyewall_volume_puts_total", &[]) >= before.sum("eyewall_volume_puts_total", &[]));
}
