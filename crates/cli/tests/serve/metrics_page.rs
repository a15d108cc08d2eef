//! The page of metrics: Prometheus and `OpenMetrics` can read it, and no site has any part in it.

use crate::common::admin::Socket;
use crate::common::metrics::{Scrape, promtool};
use crate::common::origin::Origin;
use crate::common::server::Server;

fn start(socket: &Socket, origin: &Origin) -> Server {
    Server::configured(&format!("{}[[site]]\nhosts = [\"test\"]\norigins = [\"{}\"]\n", socket.table(), origin.url()))
}

#[test]
fn a_client_gets_the_form_that_it_asks_for() {
    let (socket, origin) = (Socket::new(), Origin::counting("Cache-Control: max-age=60"));
    let server = start(&socket, &origin);
    server.get("/");
    let plain = socket.ask("GET", "/metrics", &[], "");
    assert_eq!(plain.field("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    assert!(plain.text().contains("\n# TYPE eyewall_response_bytes_total counter\n"), "{}", plain.text());
    let open_metrics = socket.ask("GET", "/metrics", &["Accept: application/openmetrics-text; version=1.0.0"], "");
    assert_eq!(open_metrics.field("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let text = open_metrics.text();
    assert!(text.contains("\n# TYPE eyewall_response_bytes counter\n# UNIT eyewall_response_bytes bytes\n"), "{text}");
    assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1, "{text}");
    assert_eq!(socket.ask("HEAD", "/metrics", &[], "").body, b"");
    assert_eq!(socket.ask("POST", "/metrics", &[], "").status, 405);
}

#[test]
fn prometheus_finds_nothing_wrong_with_it() {
    let (socket, origin) = (Socket::new(), Origin::counting("Cache-Control: max-age=60"));
    let server = start(&socket, &origin);
    server.get("/");
    promtool(&["check", "metrics"], &Scrape::of(&socket).text);
}

#[test]
fn a_scrape_is_no_traffic_of_a_site() {
    let (socket, origin) = (Socket::new(), Origin::counting("Cache-Control: max-age=60"));
    let _server = start(&socket, &origin);
    Scrape::of(&socket);
    assert_eq!(Scrape::of(&socket).sum("eyewall_requests_total", &[]), 0);
}
