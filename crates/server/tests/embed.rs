//! A program embeds the server: it asks for the port, uses the same volume, and stops the server.

#![cfg(test)]

#[path = "common/client.rs"]
mod client;
#[expect(dead_code, reason = "its `main` is for people")]
#[path = "../examples/embed.rs"]
mod example;

use std::error::Error;
use std::fs;
use std::net::{SocketAddr, TcpListener};

use client::get;
use eyewall::{Cache, Options, Purge};
use eyewall_server::{Server, config};
use tempfile::TempDir;

/// A folder with one page.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("page.html"), "hello").unwrap();
    folder
}

fn cache() -> Cache {
    Options::new().size(8 << 20).anonymous().unwrap()
}

fn start(folder: &TempDir, cache: &Cache) -> Server {
    example::start(folder.path().to_str().unwrap(), "127.0.0.1:0", cache.clone()).unwrap()
}

fn port(server: &Server) -> SocketAddr {
    server.addresses()[0]
}

#[test]
fn the_example_serves_from_the_volume_of_its_program() {
    let (folder, cache) = (folder(), cache());
    let server = start(&folder, &cache);
    let address = port(&server);
    assert_ne!(address.port(), 0);
    // A file that was just written is not stored, because it could change unnoticed.
    while !get(address, "/page.html").is_hit() {}
    assert_eq!(get(address, "/page.html").text(), "hello");
    assert!(cache.stats().unwrap().entries > 0, "the page is in the program's volume");
    cache.purge_all(Purge::Hard).unwrap();
    assert!(!get(address, "/page.html").is_hit(), "the program has purged it");
    server.stop().unwrap();
    TcpListener::bind(address).expect("the port is free again");
}

#[test]
fn a_handle_ends_it_from_another_thread() {
    let server = start(&folder(), &cache());
    let handle = server.handle();
    let waiter = std::thread::spawn(move || server.wait());
    handle.stop();
    waiter.join().unwrap().unwrap();
    // Stopping a stopped server is no error.
    handle.stop_now();
}

#[test]
fn dropping_it_ends_it() {
    let server = start(&folder(), &cache());
    let address = port(&server);
    drop(server);
    TcpListener::bind(address).expect("the port is free again");
}

#[test]
fn two_run_in_one_process() {
    let (first, second) = (folder(), folder());
    fs::write(second.path().join("page.html"), "second").unwrap();
    let (one, two) = (start(&first, &cache()), start(&second, &cache()));
    assert_eq!((get(port(&one), "/page.html").text(), get(port(&two), "/page.html").text()), ("hello", "second"));
}

#[tokio::test]
async fn it_starts_and_ends_on_a_thread_with_a_runtime() {
    let folder = folder();
    let server = start(&folder, &cache());
    let address = port(&server);
    let reply = tokio::task::spawn_blocking(move || get(address, "/page.html")).await.unwrap();
    assert_eq!(reply.status, 200);
    server.stop().unwrap();
}

#[test]
fn a_server_without_a_given_volume_opens_the_configured_one() {
    let (folder, place) = (folder(), tempfile::tempdir().unwrap());
    let path = place.path().join("pages.eye");
    let text = format!(
        "[server]\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\n[cache]\npath = '{}'\nsize = \"8M\"\n[[site]]\nroot = '{}'\n",
        path.display(),
        folder.path().display()
    );
    let server = Server::builder().toml(&text).unwrap().start().unwrap();
    assert_eq!((server.cache().path(), server.cache().size()), (Some(path.as_path()), 8 << 20));
    assert_eq!(server.config().sites.len(), 1);
    assert!(server.admin().is_none());
    server.stop().unwrap();
}

#[test]
fn a_program_changes_the_configuration_of_its_running_server() {
    let (first, second) = (folder(), folder());
    fs::write(second.path().join("page.html"), "second").unwrap();
    let config = |listen: &[&str], folder: &TempDir| {
        let root = folder.path().display();
        config::parse(&format!("[server]\nlisten = {listen:?}\nworkers = 2\n[[site]]\nroot = '{root}'\n")).unwrap()
    };
    let server = Server::builder().config(config(&["127.0.0.1:0"], &first)).cache(cache()).start().unwrap();
    let address = port(&server);
    assert_eq!(get(address, "/page.html").text(), "hello");
    let reloaded = server.reload(config(&["127.0.0.1:0", "127.0.0.1:0"], &second)).unwrap();
    assert_eq!((reloaded.addresses.len(), reloaded.addresses[0]), (2, address));
    assert_eq!(reloaded.addresses, server.addresses());
    assert!(reloaded.not_reloaded.is_empty());
    for address in reloaded.addresses {
        assert_eq!(get(address, "/page.html").text(), "second");
    }
    let wrong = config(&["127.0.0.1:0", "192.0.2.1:1"], &first);
    assert!(server.reload(wrong).unwrap_err().to_string().contains("192.0.2.1:1"));
    assert_eq!((server.addresses().len(), server.config().server.http_addresses().len()), (2, 2));
    assert_eq!(get(address, "/page.html").text(), "second");
    server.stop().unwrap();
    TcpListener::bind(address).expect("the port is free again");
}

#[test]
fn mistakes_are_reported_before_anything_runs() {
    let wrong = Server::builder().toml("[server]\nlisen = []\n[[site]]\nroot = '/nowhere/at/all'\n").unwrap_err();
    let text = wrong.to_string();
    assert!(text.contains("2 mistakes in the configuration") && text.contains("did you mean `listen`?"), "{text}");
    assert!(Server::builder().start().unwrap_err().to_string().contains("mistake in the configuration"));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = folder();
    let error: Box<dyn Error> = example::start(folder.path().to_str().unwrap(), &address, cache()).unwrap_err();
    assert!(error.to_string().starts_with(&format!("can't listen on {address}: ")), "{error}");
}
