//! The server's volume is an ordinary one: the tools list its entries, remove them, and put others.

use crate::common::client::Reply;
use crate::common::command::{Volume, run};
use crate::common::origin::Origin;
use crate::common::server::Server;

fn serve(volume: &Volume, origin: &Origin) -> Server {
    Server::spawn(&mut volume.command(["serve", "--listen", "127.0.0.1:0", "--origin", &origin.url()]))
}

#[test]
fn entries_are_named_by_their_address_and_can_be_removed() {
    let volume = Volume::new();
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = serve(&volume, &origin);
    // The client gets the response before it is stored.
    assert_eq!(server.get_until("/a?b", Reply::is_hit).text(), "1");
    let key = "http://test/a?b";
    assert_eq!(volume.run(["get", key]).text(), "1");
    assert!(volume.run(["ls"]).text().ends_with(&format!("  {key}\n")));
    assert_eq!(volume.run(["rm", key]).code, 0);
    assert_eq!(server.get("/a?b").text(), "2");
}

#[test]
fn a_value_that_is_not_a_stored_response_is_a_miss_and_is_replaced() {
    let volume = Volume::new();
    let origin = Origin::counting("Cache-Control: max-age=60");
    let key = "http://test/";
    volume.put(key, b"of somebody else");
    assert_eq!(run(&mut volume.command(["put", key, "--metadata", "\u{2}newer"]), b"newer").code, 0);
    let server = serve(&volume, &origin);
    assert_eq!(server.get("/").text(), "1");
    assert_eq!(server.get_until("/", Reply::is_hit).text(), "1");
}

#[test]
fn a_server_that_starts_again_finds_what_the_last_one_stored() {
    let volume = Volume::new();
    let origin = Origin::counting("Cache-Control: max-age=60\r\nX-Own: yes");
    assert_eq!(serve(&volume, &origin).get_until("/", Reply::is_hit).text(), "1");
    let server = serve(&volume, &origin);
    let reply = server.get("/");
    assert_eq!((reply.text(), reply.field("x-own"), reply.is_hit()), ("1", "yes", true));
}

#[test]
fn two_servers_share_stored_responses() {
    let volume = Volume::new();
    let origin = Origin::counting("Cache-Control: max-age=60");
    let (one, two) = (serve(&volume, &origin), serve(&volume, &origin));
    assert_eq!(one.get_until("/", Reply::is_hit).text(), "1");
    let reply = two.get("/");
    assert_eq!((reply.text(), reply.is_hit()), ("1", true));
}
