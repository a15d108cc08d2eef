//! HEAD gets the same head as GET, and no body.

use crate::common::client::Reply;
use crate::common::origin::Origin;
use crate::common::server::{Server, Site};

#[test]
fn of_a_file_before_and_after_it_is_stored() {
    let site = Site::new();
    site.write("page.html", "hello");
    let server = Server::over_folder(site.path());
    let unstored = server.ask("HEAD", "/page.html", &[]);
    let stored = server.get_until("/page.html", Reply::is_hit);
    let hit = server.ask("HEAD", "/page.html", &[]);
    assert!(!unstored.is_hit() && hit.is_hit());
    for reply in [unstored, hit] {
        assert_eq!((reply.status, reply.body.len()), (200, 0));
        for name in ["content-type", "content-length"] {
            assert_eq!(reply.field(name), stored.field(name), "{name}");
        }
    }
}

#[test]
fn of_an_origin_before_and_after_it_is_stored() {
    let origin = Origin::counting("Cache-Control: max-age=60\r\nX-Own: yes");
    let server = Server::over_origin(&origin.url());
    let passed = server.ask("HEAD", "/", &[]);
    assert_eq!(passed.cache(), "Eyewall; fwd=uri-miss; fwd-status=200; detail=head");
    assert_eq!(server.get("/").text(), "2", "what HEAD got is not stored");
    // The client gets the response before it is stored.
    server.get_until("/", Reply::is_hit);
    let hit = server.ask("HEAD", "/", &[]);
    assert!(hit.is_hit());
    for reply in [passed, hit] {
        assert_eq!((reply.status, reply.body.len()), (200, 0));
        assert_eq!((reply.field("content-length"), reply.field("x-own")), ("1", "yes"));
    }
    let methods: Vec<String> = origin.asked().into_iter().map(|asked| asked.method).collect();
    assert_eq!(methods, ["HEAD", "GET"]);
}

#[test]
fn of_nothing() {
    let site = Site::new();
    let server = Server::over_folder(site.path());
    let reply = server.ask("HEAD", "/nothing", &[]);
    assert_eq!((reply.status, reply.body.len()), (404, 0));
}
