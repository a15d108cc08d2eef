//! An origin with a path: it is put before the path of each request, and no request leaves it.

use crate::common::client::Reply;
use crate::common::origin::Origin;
use crate::common::server::Server;

#[test]
fn requests_stay_below_it() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::over_origin(&format!("{}/app/", origin.url()));
    assert_eq!(server.get("/").status, 200);
    assert_eq!(server.get("/page?a=/../b").status, 200);
    server.get_until("/page?a=/../b", Reply::is_hit);
    let targets: Vec<String> = origin.asked().into_iter().map(|asked| asked.target).collect();
    assert_eq!(targets, ["/app/", "/app/page?a=/../b"]);
}

#[test]
fn a_path_that_leaves_it_is_refused_without_a_request() {
    let origin = Origin::counting("");
    let server = Server::over_origin(&format!("{}/app", origin.url()));
    for target in ["/../secret", "/a/../../secret", "/%2E%2e/secret"] {
        assert_eq!(server.get(target).status, 200);
        assert_eq!(origin.asked().last().unwrap().target, "/app/secret");
    }
    let count = origin.asked().len();
    for target in ["/..%2fsecret", "/%2e%2e%5csecret"] {
        let reply = server.get(target);
        assert_eq!((reply.status, reply.text()), (400, "400 Bad Request: the address is outside the site\n"));
    }
    assert_eq!(origin.asked().len(), count);
}
