//! The demo of `make run`, an origin behind the cache: a page that may be stored keeps the time at which it was made, another
//! page doesn't, and every link works.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::thread;

use crate::common::server::Server;

/// Starts the demo origin, which ends with the process of the tests, and returns its URL.
fn start_demo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    thread::spawn(move || eyewall_demo_origin::serve(listener));
    url
}

/// The time in a page.
fn made(page: &str) -> &str {
    page.split("data-made=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("the page tells it")
}

#[test]
fn a_stored_page_keeps_its_time_and_the_other_does_not() {
    let server = Server::over_origin(&start_demo());
    let [first, second] = [(); 2].map(|()| server.get("/eyewall"));
    assert!(!first.is_hit() && second.is_hit(), "{} then {}", first.cache(), second.cache());
    assert_eq!(made(first.text()), made(second.text()));
    let [first, second] = [(); 2].map(|()| server.get("/now"));
    assert!(!first.is_hit() && !second.is_hit());
    assert_ne!(made(first.text()), made(second.text()));
}

#[test]
fn every_address_in_the_pages_leads_somewhere() {
    let server = Server::over_origin(&start_demo());
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
