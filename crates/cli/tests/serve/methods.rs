//! Files are read only. An origin gets every method, and Eyewall invalidates the responses that a method changes.

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;

use crate::common::client::{Reply, ask};
use crate::common::origin::{Origin, respond};
use crate::common::server::{Server, Site};

#[test]
fn files_are_for_get_and_head() {
    let site = Site::new();
    let server = Server::over_folder(site.path());
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let reply = server.ask(method, "/", &["Content-Length: 0"]);
        assert_eq!((reply.status, reply.field("allow")), (405, "GET, HEAD"), "{method}");
    }
}

#[test]
fn an_origin_gets_each_method_and_its_responses_are_not_stored() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::over_origin(&origin.url());
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"] {
        for _ in 0..2 {
            let reply = server.ask(method, "/", &["Content-Length: 0"]);
            assert_eq!((reply.status, reply.cache()), (200, "Eyewall; fwd=method; fwd-status=200"), "{method}");
        }
    }
    assert_eq!(origin.asked().len(), 12);
}

#[test]
fn responses_that_a_change_concerns_are_fetched_again() {
    let origin = Origin::answering(|asked| match asked.method.as_str() {
        "POST" if asked.target == "/wrong" => (500, String::new(), Vec::new()),
        "POST" => (200, "Location: /made\r\nContent-Location: http://elsewhere.example/kept".to_owned(), Vec::new()),
        _ => (200, "Cache-Control: max-age=60".to_owned(), b"page".to_vec()),
    });
    let server = Server::over_origin(&origin.url());
    let is_hit = |target| server.get(target).is_hit();
    for target in ["/list", "/made", "/kept", "/wrong"] {
        assert!(!is_hit(target), "{target}");
        server.get_until(target, Reply::is_hit);
    }
    for target in ["/list", "/wrong"] {
        server.ask("POST", target, &["Content-Length: 0"]);
    }
    assert!(!is_hit("/list"), "the address itself");
    assert!(!is_hit("/made"), "what Location names");
    assert!(is_hit("/kept"), "Content-Location names another host's");
    assert!(is_hit("/wrong"), "nothing was changed");
}

#[test]
fn a_response_from_before_a_change_is_not_stored_after_it() {
    for client in ["X-None: 1", "Cache-Control: no-cache"] {
        let (arrived, wait_for_arrival) = channel();
        let (release, wait_for_release) = channel::<()>();
        let wait_for_release = Mutex::new(wait_for_release);
        let origin = Origin::raw(move |asked, stream| {
            if asked.method == "GET" {
                let _ = arrived.send(());
                let _ = wait_for_release.lock().unwrap().recv();
            }
            respond(stream, 200, "Cache-Control: max-age=60", 4, b"page");
        });
        let server = Server::over_origin(&origin.url());
        let address = server.address;
        let first = thread::spawn(move || ask(address, "GET", "/", &[client]));
        wait_for_arrival.recv().unwrap();
        assert_eq!(server.ask("POST", "/", &["Content-Length: 0"]).status, 200);
        // The second is for a later request.
        release.send(()).unwrap();
        release.send(()).unwrap();
        assert_eq!(first.join().unwrap().text(), "page");
        assert!(!server.get("/").is_hit(), "{client}");
        assert_eq!(origin.asked().len(), 3, "{client}");
    }
}

#[test]
fn the_response_to_a_post_is_stored_for_gets_if_the_origin_says_so() {
    let origin = Origin::answering(|asked| {
        let location = if asked.target == "/other" { "/" } else { asked.target.as_str() };
        let fields = format!("Cache-Control: max-age=60\r\nContent-Location: {location}");
        (200, fields, asked.method.clone().into_bytes())
    });
    let server = Server::over_origin(&origin.url());
    for (target, then) in [("/same?a=b", "POST"), ("/other", "GET"), ("/x/../y", "GET")] {
        assert_eq!(server.ask("POST", target, &["Content-Length: 0"]).text(), "POST");
        let reply = server.get(target);
        assert_eq!((reply.text(), reply.is_hit()), (then, then == "POST"), "{target}: {}", reply.cache());
    }
    // A stored one never answers a later POST.
    assert!(!server.ask("POST", "/same?a=b", &["Content-Length: 0"]).is_hit());
}
