//! The bare servers and the origin answer as the benchmark expects: with the same bytes, the fields of a hit, and
//! correct counts.

#![cfg(test)]

#[path = "common/started.rs"]
mod started;

use std::net::TcpListener;
use std::process::{ChildStdin, Command, Stdio};

use started::Started;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bench-http");

struct Server {
    /// Dropping it ends the server.
    input: Option<ChildStdin>,
    started: Started,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut started = Started::of(Command::new(PROGRAM).args(arguments).stdin(Stdio::piped()));
        assert!(started.line.contains(" on http://"), "{}", started.line);
        Self { input: started.process.stdin.take(), started }
    }

    fn get(&self, path: &str) -> (String, Vec<u8>) {
        self.started.get(path)
    }

    /// For a proxy.
    fn url(&self) -> String {
        format!("http://{}", self.started.address)
    }

    fn asked(&self, path: &str) -> String {
        String::from_utf8(self.get(&format!("/asked{path}")).1).expect("digits")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        let ended = self.started.process.wait().expect("a status");
        assert!(ended.success() || std::thread::panicking(), "{ended}");
    }
}

#[test]
fn the_bare_server_answers_by_the_fields_of_a_hit() {
    let (head, body) = Server::start(&["serve"]).get("/page/9689/x");
    assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
    assert_eq!(body.len(), 9689);
    let hit = [
        "date",
        "content-type",
        "cache-control",
        "etag",
        "last-modified",
        "age",
        "via",
        "cache-status",
        "content-length",
    ];
    for name in hit {
        assert_eq!(head.matches(&format!("\r\n{name}: ")).count(), 1, "{name} in {head}");
    }
}

#[test]
fn what_is_no_object_is_not_found() {
    for arguments in ["serve", "origin"] {
        let server = Server::start(&[arguments]);
        for path in ["/", "/page/x/y", "/other/1/x"] {
            assert!(server.get(path).0.starts_with("http/1.1 404 "), "{arguments} {path}");
        }
    }
}

#[test]
fn server_origin_and_proxy_give_the_same_bytes() {
    let origin = Server::start(&["origin"]);
    let proxy = Server::start(&["proxy", &origin.url()]);
    let (head, body) = origin.get("/page/100000/x");
    let (passed_on, through) = proxy.get("/page/100000/x");
    assert_eq!(body, through);
    assert_eq!(body, Server::start(&["serve"]).get("/page/100000/x").1);
    // No fields are added, since neither of the two is a cache.
    for head in [head, passed_on] {
        assert!(head.contains("\r\netag: \"100000\"\r\n") && !head.contains("\r\nage:"), "{head}");
    }
}

#[test]
fn a_page_cache_asks_the_origin_once_whatever_its_store() {
    let origin = Server::start(&["origin"]);
    let at = origin.url();
    let (bare, _) = Server::start(&["serve"]).get("/page/9689/x");
    for store in ["eyewall", "file-per-entry"] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().to_str().expect("UTF-8");
        let pages = Server::start(&["store", "--store", store, "--directory", path, "--cap", "8", &at]);
        let name = format!("/page/9689/{store}");
        let (first, body) = pages.get(&name);
        let (second, again) = pages.get(&name);
        assert_eq!((body.len(), &body), (9689, &again));
        assert_eq!(body, origin.get("/page/9689/y").1);
        assert_eq!(origin.asked(&name), "1", "{store}");
        // A hit, a miss and the bare server, which does the least work, send the same fields.
        let without_date =
            |head: &str| head.lines().filter(|line| !line.starts_with("date: ")).collect::<Vec<_>>().join(" ");
        assert_eq!(without_date(&first), without_date(&second));
        assert_eq!(without_date(&first), without_date(&bare));
        assert!(pages.get("/other").0.starts_with("http/1.1 404 "));
        assert!(pages.get("/no/1/x").0.starts_with("http/1.1 404 "), "the origin's answer");
    }
}

#[test]
fn a_page_cache_says_what_is_wrong_with_its_origin_or_its_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("UTF-8");
    let origin = TcpListener::bind("127.0.0.1:0").expect("a port");
    rustix::net::shutdown(&origin, rustix::net::Shutdown::Both).expect("a listener");
    let at = format!("http://{}", origin.local_addr().expect("an address"));
    let pages = Server::start(&["store", "--store", "file-per-entry", "--directory", path, &at]);
    assert!(pages.get("/page/1/x").0.starts_with("http/1.1 502 "));
    let too_long = format!("/page/1/{}", "x".repeat(200));
    assert!(pages.get(&too_long).0.starts_with("http/1.1 500 "));
    let arguments = ["store", "--store", "eyewall", "--directory", "no/such/directory", &at];
    let output = Command::new(PROGRAM).args(arguments).output().expect("bench-http");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("opening the store: "), "{said}");
}

#[test]
fn the_origin_counts_what_it_was_asked_for() {
    let origin = Server::start(&["origin"]);
    assert_eq!(origin.asked("/page/1/x"), "0");
    for path in ["/page/1/x", "/page/1/x", "/page/1/y", "/once/1/a", "/once/1/b", "/weak/1/x"] {
        assert!(origin.get(path).0.starts_with("http/1.1 200 "), "{path}");
    }
    let asked = ["/page/1/x", "/page/1/y", "/once", "/once/1/a", "/weak/1/x"].map(|path| origin.asked(path));
    assert_eq!(asked, ["2", "1", "2", "0", "1"]);
    assert_eq!(origin.asked(""), "6");
}

#[test]
fn a_proxy_whose_origin_is_gone_says_so() {
    let origin = TcpListener::bind("127.0.0.1:0").expect("a port");
    // The test still holds the port, which refuses connections.
    rustix::net::shutdown(&origin, rustix::net::Shutdown::Both).expect("a listener");
    let proxy = Server::start(&["proxy", &format!("http://{}", origin.local_addr().expect("an address"))]);
    assert!(proxy.get("/page/1/x").0.starts_with("http/1.1 502 "));
}

#[test]
fn a_proxy_wants_an_origin_that_it_can_ask() {
    for (origin, why) in [("https://127.0.0.1:1", "isn't of http"), ("/path", "isn't of http")] {
        let output = Command::new(PROGRAM).args(["proxy", origin]).output().expect("bench-http");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(why), "{said}");
    }
}
