//! The server starts and shows its address, or reports why it can't.

use std::net::TcpListener;

use crate::common::command::{Volume, eyewall, run};
use crate::common::server::{Server, Site};

#[test]
fn a_port_of_the_kernels_choice_is_shown_and_works() {
    let site = Site::new();
    site.write("index.html", "hello");
    let server = Server::over_folder(site.path());
    assert_ne!(server.address.port(), 0);
    assert_eq!(server.get("/").text(), "hello");
}

#[test]
fn an_address_in_use_is_reported_with_advice() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = run(eyewall().args(["serve", "--root", "/", "--listen", &address]), b"");
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains(&address) && ended.stderr.contains("another --listen"), "{}", ended.stderr);
}

#[test]
fn a_root_that_is_not_a_folder_is_reported() {
    let site = Site::new();
    site.write("file", "");
    for (name, words) in [("file", "is not a folder"), ("nothing", "can't serve")] {
        let mut command = eyewall();
        command.args(["serve", "--listen", "127.0.0.1:0", "--root"]).arg(site.path().join(name));
        let ended = run(&mut command, b"");
        assert_eq!((ended.code, ended.text()), (2, ""));
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[test]
fn a_volume_is_created_with_the_given_size() {
    let site = Site::new();
    let volume = Volume::absent();
    let mut words = vec!["serve", "--listen", "127.0.0.1:0", "--size", "2M", "--root"];
    words.push(site.path().to_str().unwrap());
    let server = Server::spawn(&mut volume.command(words));
    assert_eq!(server.get("/").status, 404);
    let stat: serde_json::Value = serde_json::from_str(volume.run(["stat", "--json"]).text()).unwrap();
    assert_eq!(stat["size_bytes"], 2 << 20);
}

#[test]
fn an_existing_volume_keeps_its_size() {
    let site = Site::new();
    let volume = Volume::sized("2M");
    let root = site.path().to_str().unwrap();
    drop(Server::spawn(&mut volume.command(["serve", "--listen", "127.0.0.1:0", "--root", root])));
    let ended = volume.run(["serve", "--listen", "127.0.0.1:0", "--size", "4M", "--root", root]);
    assert_eq!((ended.code, ended.text()), (3, ""), "another size is an error");
    assert!(ended.stderr.contains("site.eye has 2 MiB, not 4 MiB; leave out --size"), "{}", ended.stderr);
}

#[test]
fn a_volume_needs_an_existing_folder() {
    let site = Site::new();
    let volume = Volume::absent();
    let mut command = eyewall();
    command.args(["serve", "--listen", "127.0.0.1:0", "--root"]).arg(site.path());
    let ended = run(command.arg("--cache").arg(volume.folder().join("no/such/folder/site.eye")), b"");
    assert_eq!((ended.code, ended.text()), (2, ""));
    assert!(ended.stderr.contains("/no/such/folder") && ended.stderr.contains("create it first"), "{}", ended.stderr);
}

#[test]
fn a_foreign_file_is_refused() {
    let site = Site::new();
    let volume = Volume::absent();
    std::fs::write(volume.path(), b"a letter").unwrap();
    let ended = volume.run(["serve", "--listen", "127.0.0.1:0", "--root", site.path().to_str().unwrap()]);
    assert_eq!(ended.code, 3);
    assert_eq!(std::fs::read(volume.path()).unwrap(), b"a letter");
}
