//! One client reads slowly, or not at all. It doesn't delay other clients, and still gets every byte.

use std::io::Read as _;

use crate::common::client::{connect, parse, send};
use crate::common::command::Volume;
use crate::common::origin::Origin;
use crate::common::server::Server;

fn page() -> Vec<u8> {
    (0..=250).cycle().take(900_000).collect()
}

#[test]
fn a_fill_does_not_wait_for_the_client_that_began_it() {
    let volume = Volume::sized("16M");
    let origin = Origin::answering(|_| (200, "Cache-Control: max-age=60".to_owned(), page()));
    let server = Server::spawn(&mut volume.command(["serve", "--listen", "127.0.0.1:0", "--origin", &origin.url()]));
    let mut slow = connect(server.address);
    send(&mut slow, "GET", "/", &[]);
    let mut head = vec![0; 16];
    slow.read_exact(&mut head).unwrap();

    let quick = server.get("/");
    assert!(quick.is_hit() || quick.cache().contains("; collapsed"), "{}", quick.cache());
    assert!(quick.body == page());

    slow.read_to_end(&mut head).unwrap();
    assert!(parse(&head, false).body == page());
    assert_eq!(origin.asked().len(), 1);
}

#[test]
fn bytes_that_a_slow_client_still_needs_stay_although_the_volume_is_overwritten() {
    let volume = Volume::sized("16M");
    let origin = Origin::answering(|asked| {
        let body = if asked.target == "/slow" { page() } else { vec![b'x'; 500_000] };
        (200, "Cache-Control: max-age=60".to_owned(), body)
    });
    let server = Server::spawn(&mut volume.command(["serve", "--listen", "127.0.0.1:0", "--origin", &origin.url()]));
    assert!(server.get("/slow").body == page());
    let mut slow = connect(server.address);
    send(&mut slow, "GET", "/slow", &[]);
    let mut bytes = vec![0; 16];
    slow.read_exact(&mut bytes).unwrap();
    for number in 0..100 {
        assert_eq!(server.get(&format!("/{number}")).body.len(), 500_000);
    }
    slow.read_to_end(&mut bytes).unwrap();
    let slow = parse(&bytes, false);
    assert!(slow.is_hit() && slow.body == page());
}
