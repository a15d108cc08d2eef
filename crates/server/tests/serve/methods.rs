//! Only GET and HEAD are answered.

use crate::common::origin::Origin;
use crate::common::server::{Server, Site};

#[test]
fn other_methods_are_refused_and_never_reach_the_origin() {
    let origin = Origin::counting("");
    let site = Site::new();
    for server in [Server::over_origin(&origin.url()), Server::over_folder(site.path())] {
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PURGE"] {
            let reply = server.ask(method, "/", &["Content-Length: 0"]);
            assert_eq!((reply.status, reply.field("allow")), (405, "GET, HEAD"), "{method}");
        }
    }
    assert_eq!(origin.asked().len(), 0);
}
