//! The response to a request with credentials is for its user only, unless the origin allows sharing (RFC 9111, section 3.5).

use crate::common::origin::Origin;
use crate::common::server::Server;

const CREDENTIALS: &[&str] = &["Authorization: Basic dXNlcjpwYXNz"];

#[test]
fn its_response_is_not_stored() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::over_origin(&origin.url());
    let reply = server.ask("GET", "/", CREDENTIALS);
    assert_eq!(reply.text(), "1");
    assert_eq!(reply.cache(), "Eyewall; fwd=uri-miss; fwd-status=200; detail=authorization");
    assert_eq!(origin.asked()[0].field("authorization"), "Basic dXNlcjpwYXNz", "the origin gets the credentials");
    assert_eq!(server.get("/").text(), "2");
}

#[test]
fn its_response_is_stored_if_the_origin_allows_it() {
    for allowed in ["public", "s-maxage=60", "must-revalidate"] {
        let fields: &'static str = format!("Cache-Control: max-age=60, {allowed}").leak();
        let origin = Origin::counting(fields);
        let server = Server::over_origin(&origin.url());
        assert_eq!(server.ask("GET", "/", CREDENTIALS).text(), "1", "{allowed}");
        assert_eq!(server.get("/").text(), "1", "{allowed}");
        assert_eq!(server.ask("GET", "/", CREDENTIALS).text(), "1", "{allowed}");
    }
}
