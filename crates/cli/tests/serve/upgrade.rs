//! A new process takes over from a running one: no request fails, and a process that can't start changes nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::common::admin::json;
use crate::common::client::{Reply, connect, get, parse, send};
use crate::common::command::{eyewall, run};
use crate::common::load::{self, Load};
use crate::common::origin::{Origin, respond};
use crate::common::upgrading::{Upgrading, gone};

fn site(origin: &Origin) -> String {
    format!("[[site]]\norigins = [\"{}\"]\n", origin.url())
}

/// The bytes of a whole response on a kept connection, whose body is one byte.
fn ask_kept(stream: &mut TcpStream, target: &str) -> String {
    stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes()).unwrap();
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        response.extend(byte);
    }
    stream.read_exact(&mut [0]).unwrap();
    String::from_utf8(response).unwrap().to_lowercase()
}

fn ask_until_closed(stream: &mut TcpStream, target: &str) -> String {
    loop {
        let response = ask_kept(stream, target);
        if response.contains("connection: close") {
            return response;
        }
    }
}

#[test]
fn no_request_fails_while_processes_take_over() {
    let origin = load::origin();
    let mut upgrading = Upgrading::start(&format!("workers = 2\n{}", site(&origin)));
    for page in 0..load::PAGES {
        while !get(upgrading.address, &format!("/page/{page}")).is_hit() {}
    }
    let clients = Load::start(8, 0, load::clear(upgrading.address));
    for workers in [3, 1, 2, 2] {
        clients.wait_for(200);
        upgrading.write(&format!("workers = {workers}\n{}", site(&origin)));
        if workers == 1 {
            upgrading.upgrade_by_signal();
        } else {
            upgrading.upgrade();
        }
        assert_eq!(get(upgrading.address, "/page/1").status, 200);
    }
    clients.wait_for(500);
    let counts = clients.end();
    assert!(counts.failures == 0 && counts.lost_hits == 0 && counts.requests >= 1300, "{counts:?}");
    assert!(upgrading.first_ends().success());
}

#[test]
fn a_cache_in_memory_is_handed_over() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let mut upgrading = Upgrading::start(&site(&origin));
    let file = upgrading.folder.path().join("eyewall.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let in_memory: Vec<&str> = text.lines().filter(|line| !line.starts_with("path = ")).collect();
    let in_memory = in_memory.join("\n");
    std::fs::write(&file, &in_memory).unwrap();
    upgrading.upgrade();
    assert!(upgrading.first_ends().success());
    while !get(upgrading.address, "/").is_hit() {}
    for _ in 0..2 {
        let before = upgrading.upgrade();
        gone(before);
        assert!(get(upgrading.address, "/").is_hit());
    }
    std::fs::write(&file, in_memory.replace("8M", "9M")).unwrap();
    let before = upgrading.upgrade();
    gone(before);
    assert!(!get(upgrading.address, "/").is_hit(), "it has another size, and begins empty");
}

#[test]
fn the_administration_belongs_to_the_new_process() {
    let mut upgrading = Upgrading::start(&site(&Origin::counting("")));
    let first = upgrading.process();
    assert_eq!(upgrading.upgrade(), first);
    assert!(upgrading.first_ends().success());
    for _ in 0..2 {
        let status = json(&upgrading.socket.ask("GET", "/status", &[], ""));
        assert_eq!(status["process"], upgrading.process());
        let before = upgrading.upgrade();
        gone(before);
        assert!(upgrading.socket.path().exists());
    }
}

#[test]
fn an_idle_connection_is_told_with_its_next_response() {
    let origin = Origin::answering(|_| (200, "Cache-Control: max-age=60".to_owned(), b"1".to_vec()));
    let mut upgrading = Upgrading::start(&site(&origin));
    let [mut hit, mut miss, mut new] = [(); 3].map(|()| connect(upgrading.address));
    while !ask_kept(&mut hit, "/").contains("eyewall; hit") {}
    assert!(!ask_kept(&mut miss, "/other").contains("connection: close"));
    upgrading.upgrade();
    for (connection, target, status) in
        [(&mut hit, "/", "hit"), (&mut miss, "/new", "eyewall; "), (&mut new, "/", "hit")]
    {
        // The workers may learn of it a moment later.
        let response = ask_until_closed(connection, target);
        assert!(response.contains(status), "{response}");
        assert_eq!(connection.read(&mut [0]).unwrap(), 0, "it is closed");
    }
    assert!(upgrading.first_ends().success());
    let mut kept = connect(upgrading.address);
    assert!(!ask_kept(&mut kept, "/").contains("connection: close"), "the new process keeps connections");
}

#[test]
fn a_running_request_ends_in_the_old_process() {
    let ((arrived, has_arrived), (release, released)) = (channel(), channel::<()>());
    let released = Mutex::new(released);
    let origin = Origin::raw(move |asked, stream| {
        if asked.target == "/slow" {
            arrived.send(()).unwrap();
            let _ = released.lock().unwrap().recv();
        }
        respond(stream, 200, "", 4, b"done");
    });
    let mut upgrading = Upgrading::start(&site(&origin));
    let mut running = connect(upgrading.address);
    send(&mut running, "GET", "/slow", &[]);
    has_arrived.recv().unwrap();
    upgrading.upgrade();
    assert_eq!(get(upgrading.address, "/").text(), "done");
    assert!(upgrading.first().try_wait().unwrap().is_none());
    release.send(()).unwrap();
    let mut bytes = Vec::new();
    running.read_to_end(&mut bytes).unwrap();
    assert_eq!(parse(&bytes, false).text(), "done");
    assert!(upgrading.first_ends().success());
}

#[test]
fn requests_that_take_too_long_are_cut_off() {
    let (arrived, has_arrived) = channel();
    let origin = Origin::silent(move |stream| {
        arrived.send(()).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let mut upgrading = Upgrading::start(&format!("drain_timeout = \"10ms\"\n{}", site(&origin)));
    let mut running = connect(upgrading.address);
    send(&mut running, "GET", "/", &[]);
    has_arrived.recv().unwrap();
    upgrading.upgrade();
    assert!(upgrading.first_ends().success());
    assert_eq!(running.read(&mut [0]).unwrap_or(0), 0);
}

#[test]
fn a_process_that_fails_changes_nothing() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let mut upgrading = Upgrading::start(&site(&origin));
    let mut kept = connect(upgrading.address);
    ask_kept(&mut kept, "/");
    let ended = |upgrading: &Upgrading, words: &str| {
        let ended = upgrading.try_upgrade();
        assert!(ended.code == 3 && ended.stderr.contains(words), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains("this one goes on as before"), "{}", ended.stderr);
        assert_eq!(get(upgrading.address, "/").status, 200);
    };
    upgrading.write("[[site]]\norigins = [\"ftp://a\"]\n");
    ended(&upgrading, "1 mistake in ");
    upgrading.write(&format!("admin_ = 1\n{}", site(&origin)));
    ended(&upgrading, "unknown key `admin_`");
    upgrading.write(&site(&origin));

    let program = upgrading.program();
    std::fs::remove_file(&program).unwrap();
    ended(&upgrading, "can't be started");
    std::fs::write(&program, "#!/bin/sh\nexit 7\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    ended(&upgrading, "exit status: 7");
    std::fs::remove_file(&program).unwrap();
    symlink(eyewall().get_program(), &program).unwrap();

    assert!(!ask_kept(&mut kept, "/").contains("connection: close"));
    upgrading.upgrade();
    ask_until_closed(&mut kept, "/");
}

#[test]
fn new_addresses_are_bound_and_old_ones_closed() {
    let origin = Origin::counting("");
    let mut upgrading = Upgrading::start(&site(&origin));
    // The port that it has is named now.
    let text = std::fs::read_to_string(upgrading.folder.path().join("eyewall.toml")).unwrap();
    let listen = format!("[\"{}\", \"[::1]:0\"]", upgrading.address);
    std::fs::write(upgrading.folder.path().join("eyewall.toml"), text.replace("[\"127.0.0.1:0\"]", &listen)).unwrap();
    upgrading.upgrade();
    assert!(upgrading.first_ends().success());
    assert_eq!(get(upgrading.address, "/").status, 200);
    let reloaded = json(&upgrading.socket.ask("POST", "/reload", &[], ""));
    let addresses: Vec<std::net::SocketAddr> = serde_json::from_value(reloaded["addresses"].clone()).unwrap();
    assert_eq!(get(addresses[1], "/").status, 200);
}

#[test]
fn several_servers_share_an_address_and_a_volume() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let site = format!("reuse_port = true\n{}", site(&origin));
    let mut first = Upgrading::start(&site);
    let text = std::fs::read_to_string(first.folder.path().join("eyewall.toml")).unwrap();
    let file = first.folder.path().join("other.toml");
    let other_socket = first.folder.path().join("other.sock");
    let own_socket = first.socket.path();
    let text = text.replace("127.0.0.1:0", &first.address.to_string());
    let text = text.replace(own_socket.to_str().unwrap(), other_socket.to_str().unwrap());
    std::fs::write(&file, &text).unwrap();
    let second = crate::common::server::Server::spawn(eyewall().args(["serve", "--config"]).arg(&file));
    assert_eq!(second.address, first.address);
    while !get(first.address, "/").is_hit() {}
    for _ in 0..40 {
        assert!(Reply::is_hit(&get(first.address, "/")));
    }
    first.first().kill().unwrap();
    assert!(!first.first_ends().success());
    assert!(get(second.address, "/").is_hit(), "the other one goes on");

    std::fs::write(&file, text.replace("reuse_port = true\n", "").replace("other.sock", "third.sock")).unwrap();
    let ended = run(eyewall().args(["serve", "--config"]).arg(&file), b"");
    assert!(ended.code == 3 && ended.stderr.contains("can't listen on"), "{}", ended.stderr);
}
