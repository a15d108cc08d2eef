//! Several origins take turns, and clients don't notice an unreachable one.

use crate::common::client::Reply;
use crate::common::origin::{Origin, nobody};
use crate::common::server::Server;

#[test]
fn they_take_turns_and_share_stored_responses() {
    let origins = [(); 3].map(|()| Origin::counting("Cache-Control: max-age=60"));
    let urls = origins.each_ref().map(Origin::url);
    let server = Server::start(urls.iter().flat_map(|url| ["--origin", url]));
    for number in 0..6 {
        assert_eq!(server.get(&format!("/{number}")).status, 200);
    }
    assert_eq!(origins.each_ref().map(|origin| origin.asked().len()), [2; 3]);
    for number in 0..6 {
        server.get_until(&format!("/{number}"), Reply::is_hit);
    }
}

#[test]
fn clients_do_not_notice_an_unreachable_one() {
    let origin = Origin::counting("");
    let dead = format!("http://{}", nobody());
    let server = Server::start(["--origin", &dead, "--origin", &origin.url()]);
    for number in 0..10 {
        assert_eq!(server.get(&format!("/{number}")).status, 200);
    }
    assert_eq!(origin.asked().len(), 10);
}

#[test]
fn clients_get_502_if_all_are_unreachable() {
    let urls = [(); 2].map(|()| format!("http://{}", nobody()));
    let server = Server::start(urls.iter().flat_map(|url| ["--origin", url]));
    for number in 0..10 {
        let reply = server.get(&format!("/{number}"));
        assert_eq!((reply.status, reply.cache()), (502, "Eyewall; fwd=uri-miss; detail=origin-unreachable"));
    }
}
