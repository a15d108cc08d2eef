//! `eyewall stat --server`: the volume of a running server, its sites in short, and the best of its advice.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::admin::Socket;
use crate::common::client::ask;
use crate::common::command::{Ended, eyewall, run};
use crate::common::origin::{Asked, Origin};
use crate::common::server::Server;

/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_mins(1);

fn answer(asked: &Asked) -> (u16, String, Vec<u8>) {
    let cookie = if asked.target.starts_with("/shop/") { "\r\nSet-Cookie: session=1" } else { "" };
    (200, format!("Cache-Control: max-age=600{cookie}"), vec![b'x'; 1000])
}

fn stat(socket: &Socket, words: &[&str]) -> Ended {
    run(eyewall().args(["stat", "--server"]).arg(socket.path()).args(words), b"")
}

/// Repeats `stat --json` until the server has counted so many requests, and its advice, which may be older, has them all.
fn figures(socket: &Socket, requests: u64) -> Value {
    let start = Instant::now();
    loop {
        let figures: Value = serde_json::from_str(stat(socket, &["--json"]).text()).unwrap();
        let sites = figures["server"]["sites"].as_array().unwrap();
        let counted: u64 = sites.iter().map(|site| site["traffic"]["requests"].as_u64().unwrap()).sum();
        if counted == requests && figures["advice"]["sample"]["requests"] == requests {
            return figures;
        }
        assert!(start.elapsed() < PATIENCE, "still {figures:#}");
    }
}

#[test]
fn the_volume_the_sites_and_the_best_advice_are_shown_together() {
    let (socket, origin) = (Socket::new(), Origin::answering(answer));
    let site = |host: &str| format!("[[site]]\nhosts = [\"{host}\"]\norigins = [\"{}\"]\n", origin.url());
    let server = Server::configured(&format!("{}{}{}", socket.table(), site("quiet.test"), site("shop.test")));

    let text = stat(&socket, &[]).text().to_owned();
    assert!(text.contains("advice   none, because there were no requests yet\n"), "{text}");
    assert!(text.contains("           0        -         0 B         0  quiet.test\n"), "{text}");

    for _ in 0..4 {
        for target in ["/page", "/shop/basket"] {
            ask(server.address, "GET", &format!("http://shop.test{target}"), &[]);
        }
    }
    let found = figures(&socket, 8);
    assert_eq!((&found["path"], &found["size_bytes"], &found["entries"]), (&Value::Null, &json!(8 << 20), &json!(1)));
    let (busiest, other) = (&found["server"]["sites"][0], &found["server"]["sites"][1]);
    assert_eq!((&busiest["name"], &other["name"]), (&json!("shop.test"), &json!("quiet.test")));
    // All but one of the pages were hits, and no basket was.
    assert_eq!((&busiest["traffic"]["spared_requests"], &busiest["traffic"]["errors"]), (&json!(3), &json!(0)));
    assert_eq!(found["server"]["process"], server.child.id());
    assert_eq!(found["advice"]["remedies"][0]["reason"], "set-cookie", "{found:#}");

    // The advice may be older than the requests.
    let start = Instant::now();
    let text = loop {
        let text = stat(&socket, &[]).text().to_owned();
        if text.contains("% of requests become hits with for shop.test:\n") {
            break text;
        }
        assert!(start.elapsed() < PATIENCE, "still {text}");
    };
    for part in [
        "volume in memory   8 MiB, 1 entry; entries up to ",
        &format!("\nserver   {}, process {}, up ", env!("CARGO_PKG_VERSION"), server.child.id()),
        "           8   37.5 %",
        "         0  shop.test\n",
        "advice   hits by size: 4 MiB ",
        "8 MiB (now) ",
        "strip_response = [\"Set-Cookie\"]\n",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}
