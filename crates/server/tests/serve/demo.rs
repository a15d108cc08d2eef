//! What `make run` shows, the demo origin behind the cache: a page that may be stored keeps the time at which it was made,
//! the one that may not doesn't, and whatever the pages name is there.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::server::Server;

/// The demo origin, stopped at the end of its test.
struct Demo {
    child: Child,
    url: String,
}

impl Demo {
    fn start() -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_eyewall")).with_file_name("examples").join("demo_origin");
        let mut child = Command::new(&program).stdout(Stdio::piped()).spawn().unwrap_or_else(|error| {
            panic!(
                "{}: {error}; `cargo test -p eyewall-server` builds it, `--test serve` alone doesn't",
                program.display()
            )
        });
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, url: line.split_whitespace().last().expect("it says where it is").to_owned() }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The time in a page.
fn made(page: &str) -> &str {
    page.split("data-made=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("the page tells it")
}

#[test]
fn a_stored_page_keeps_its_time_and_the_other_does_not() {
    let demo = Demo::start();
    let server = Server::over_origin(&demo.url);
    let [first, second] = [(); 2].map(|()| server.get("/eyewall"));
    assert!(!first.is_hit() && second.is_hit(), "{} then {}", first.cache(), second.cache());
    assert_eq!(made(first.text()), made(second.text()));
    let [first, second] = [(); 2].map(|()| server.get("/now"));
    assert!(!first.is_hit() && !second.is_hit());
    assert_ne!(made(first.text()), made(second.text()));
}

#[test]
fn every_address_in_the_pages_leads_somewhere() {
    let demo = Demo::start();
    let server = Server::over_origin(&demo.url);
    let mut seen = BTreeSet::new();
    let mut waiting = vec!["/".to_owned()];
    while let Some(address) = waiting.pop() {
        if seen.contains(&address) {
            continue;
        }
        let reply = server.get(&address);
        assert_eq!(reply.status, 200, "{address}");
        if reply.field("content-type").starts_with("text/html") {
            let quoted = reply.text().split('"').skip(1).step_by(2);
            waiting.extend(quoted.filter(|text| text.starts_with('/')).map(str::to_owned));
        }
        seen.insert(address);
    }
    let names: Vec<&str> = seen.iter().map(String::as_str).collect();
    let all = ["/", "/bands", "/cyclone.svg", "/eye", "/eyewall", "/made.js", "/now", "/section.svg", "/style.css"];
    assert_eq!(names, all);
}
