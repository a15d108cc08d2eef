//! A request with credentials is neither answered from the cache nor its answer stored, even if the origin allows it.

use crate::common::origin::Origin;
use crate::common::server::Server;

const CREDENTIALS: &[&str] = &["Authorization: Basic dXNlcjpwYXNz"];

#[test]
fn its_answer_is_not_stored() {
    let origin = Origin::counting("Cache-Control: public, max-age=60");
    let server = Server::over_origin(&origin.url());
    let reply = server.ask("GET", "/", CREDENTIALS);
    assert_eq!(reply.text(), "1");
    assert_eq!(reply.cache(), "Eyewall; fwd=bypass; fwd-status=200; detail=authorization");
    assert_eq!(server.get("/").text(), "2");
}

#[test]
fn it_is_not_answered_from_the_cache() {
    let origin = Origin::counting("Cache-Control: public, max-age=60");
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.get("/").text(), "1");
    assert_eq!(server.ask("GET", "/", CREDENTIALS).text(), "2");
    assert_eq!(server.get("/").text(), "1", "and it leaves the entry as it was");
    assert_eq!(origin.asked()[1].field("authorization"), "Basic dXNlcjpwYXNz", "the origin gets the credentials");
}

#[test]
fn its_own_condition_goes_to_the_origin() {
    let origin = Origin::answering(|asked| match asked.field("if-none-match") {
        "\"mine\"" => (304, "ETag: \"mine\"".to_owned(), Vec::new()),
        _ => (200, String::new(), b"whole".to_vec()),
    });
    let server = Server::over_origin(&origin.url());
    assert_eq!(server.ask("GET", "/", &[CREDENTIALS[0], "If-None-Match: \"mine\""]).status, 304);
}
