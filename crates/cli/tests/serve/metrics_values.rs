//! The metrics of origins, of the volume and of the server agree with what a test has made of them.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::common::admin::Socket;
use crate::common::authority::Authority;
use crate::common::client::{connect, send};
use crate::common::command::{eyewall, run};
use crate::common::metrics::Scrape;
use crate::common::origin::{Origin, nobody, respond};
use crate::common::server::Server;

#[test]
fn what_came_from_origins_is_counted_for_each() {
    let (socket, dead) = (Socket::new(), format!("http://{}", nobody()));
    let origin = Origin::raw(|asked, stream| match asked.target.as_str() {
        "/short" => respond(stream, 200, "Cache-Control: no-store", 1000, b"cut"),
        "/gone" => respond(stream, 404, "Cache-Control: no-store", 4, b"gone"),
        _ => respond(stream, 200, "Cache-Control: max-age=60", 100, &[b'x'; 100]),
    });
    let site = |host: &str, origins: &str| format!("[[site]]\nhosts = [\"{host}\"]\norigins = [{origins}]\n");
    let sites = [site("test", &format!("\"{}\"", origin.url())), site("dead", &format!("\"{dead}\""))].concat();
    let server = Server::configured(&format!("{}{sites}", socket.table()));
    for target in ["/a", "/a", "/a", "/b", "/gone"] {
        server.get(target);
    }
    // What the client gets of a response that breaks off depends on when its pieces come.
    ask_for(connect(server.address), "test", "/short");
    ask_for(connect(server.address), "dead", "/");
    let scrape =
        Scrape::until(&socket, |scrape| scrape.sum("eyewall_origin_errors_total", &[("reason", "cut-off")]) > 0);
    let url = origin.url();
    let of = |name: &str, labels: &[(&str, &str)]| {
        scrape.sum(name, &[&[("site", "test"), ("origin", &*url)], labels].concat())
    };
    assert_eq!(of("eyewall_origin_responses_total", &[("status", "2xx")]), 3);
    assert_eq!(of("eyewall_origin_responses_total", &[("status", "4xx")]), 1);
    assert_eq!(of("eyewall_origin_response_bytes_total", &[]), 207);
    assert_eq!(of("eyewall_origin_first_byte_seconds_count", &[]), 4);
    assert_eq!(of("eyewall_origin_connections_total", &[]), 4, "the origin closes each");
    assert_eq!(of("eyewall_origin_up", &[]), 1);
    let of_dead = [("site", "dead"), ("origin", &*dead), ("reason", "unreachable")];
    assert!(scrape.sum("eyewall_origin_errors_total", &of_dead) >= 1);
    // One request of the client, and its repetitions.
    let errors = scrape.sum("eyewall_origin_errors_total", &of_dead);
    assert_eq!(scrape.sum("eyewall_origin_retries_total", &of_dead[..2]), errors - 1);
}

/// Sends a request for this host, and reads what comes.
fn ask_for(mut client: TcpStream, host: &str, target: &str) {
    write!(client, "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    // The server may reset a connection that it cuts off.
    let _ = client.read_to_end(&mut Vec::new());
}

#[test]
fn an_origin_that_fails_its_checks_is_down() {
    let (socket, dead) = (Socket::new(), format!("http://{}", nobody()));
    let health = "[site.origin.health]\npath = \"/\"\nunhealthy_after = 1\n";
    let _server = Server::configured(&format!("{}[[site]]\norigins = [\"{dead}\"]\n{health}", socket.table()));
    Scrape::until(&socket, |scrape| scrape.samples("eyewall_origin_up").all(|(_, up)| up < 0.5));
}

#[test]
fn a_site_with_another_name_counts_its_origin_under_that() {
    let (socket, origin) = (Socket::new(), Origin::counting("Cache-Control: no-store"));
    let site = format!("[[site]]\nhosts = [\"first\", \"test\"]\norigins = [\"{}\"]\n", origin.url());
    let server = Server::configured(&format!("{}{site}", socket.table()));
    server.get("/");
    server.change(|text| text.replace("\"first\"", "\"second\""));
    socket.reload();
    server.get("/");
    server.get("/");
    let scrape = Scrape::of(&socket);
    let of = |site: &str| scrape.sum("eyewall_origin_responses_total", &[("site", site)]);
    assert_eq!((of("first"), of("second")), (1, 2));
}

#[test]
fn the_volume_and_the_process_are_told() {
    let (socket, origin) = (Socket::new(), Origin::counting("Cache-Control: max-age=60"));
    let server = Server::configured(&format!("{}[[site]]\norigins = [\"{}\"]\n", socket.table(), origin.url()));
    for number in 0..5 {
        server.get(&format!("/{number}"));
    }
    let _idle = connect(server.address);
    let mut open = connect(server.address);
    send(&mut open, "GET", "/0", &[]);
    let scrape = Scrape::until(&socket, |scrape| scrape.sum("eyewall_connections", &[]) >= 1);
    let alone = |name: &str| scrape.sum(name, &[]);
    assert_eq!((alone("eyewall_volume_failed"), alone("eyewall_volume_entries")), (0, 5));
    assert_eq!(alone("eyewall_volume_size_bytes"), 8 << 20);
    assert!(alone("eyewall_volume_puts_total") >= 5 && alone("eyewall_volume_live_bytes") > 0);
    assert!(alone("eyewall_volume_written_bytes_total") >= alone("eyewall_volume_live_bytes"));
    assert!(alone("eyewall_volume_lookups_total") >= 5);
    assert_eq!(alone("eyewall_build_info"), 1);
    assert!(alone("eyewall_connections_accepted_total") >= 5);
    let workers = std::thread::available_parallelism().unwrap().get();
    assert_eq!(scrape.samples("eyewall_worker_busy_seconds_total").count(), workers);
    assert!(alone("process_open_fds") > 3 && alone("process_max_fds") >= alone("process_open_fds"));
    assert!(alone("process_resident_memory_bytes") >= alone("eyewall_anonymous_memory_bytes"));
    assert!(alone("eyewall_anonymous_memory_bytes") > 0 && alone("process_start_time_seconds") > 1_700_000_000);
}

#[test]
fn certificates_tell_when_they_expire() {
    let (authority, origin, socket) = (Authority::new(), Origin::counting(""), Socket::new());
    let site = authority.site("one.example", &origin.url(), "");
    let _https = authority.serve(&site, &socket.table());
    let scrape = Scrape::of(&socket);
    let (labels, expires) = scrape.samples("eyewall_certificate_expiry_timestamp_seconds").next().unwrap();
    assert_eq!(labels["site"], "one.example");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    assert!(expires > now, "{expires}");
    assert_eq!(scrape.sum("eyewall_certificate_renewal_failures", &[("file", &labels["file"])]), 0);
}

#[test]
fn an_address_in_use_is_an_error() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eyewall.toml");
    let site = "[[site]]\norigins = [\"http://127.0.0.1:1\"]\n";
    let text = format!("[server]\nlisten = [\"127.0.0.1:0\"]\nmetrics_listen = \"{address}\"\n{site}");
    std::fs::write(&file, text).unwrap();
    let ended = run(eyewall().args(["serve", "--config"]).arg(&file), b"");
    assert!(ended.stderr.contains(&format!("can't listen on {address}")), "{}", ended.stderr);
}
