//! A reload puts another configuration in force, while requests go on: none fails, and a wrong configuration changes nothing.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::admin::{Socket, json};
use crate::common::authority::Authority;
use crate::common::client::{Reply, ask, connect, parse, send};
use crate::common::command::{eyewall, run};
use crate::common::load::{self, Load};
use crate::common::origin::{Origin, respond};
use crate::common::server::Server;

/// A server with a configuration file that the test changes.
struct Reloading {
    server: Server,
    socket: Socket,
    folder: TempDir,
}

impl Reloading {
    fn start(sites: &str) -> Self {
        Self::listening(&["127.0.0.1:0"], sites)
    }

    fn listening(listen: &[&str], sites: &str) -> Self {
        let (folder, socket) = (tempfile::tempdir().unwrap(), Socket::new());
        let file = folder.path().join("eyewall.toml");
        std::fs::write(&file, text(&socket, listen, sites)).unwrap();
        let mut command = eyewall();
        let server = Server::spawn(command.args(["serve", "--config"]).arg(&file).stderr(Stdio::piped()));
        Self { server, socket, folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("eyewall.toml")
    }

    fn write(&self, sites: &str) {
        self.write_all(&["127.0.0.1:0"], sites);
    }

    fn write_all(&self, listen: &[&str], sites: &str) {
        std::fs::write(self.file(), text(&self.socket, listen, sites)).unwrap();
    }

    fn reload(&self) -> Value {
        let reply = self.socket.ask("POST", "/reload", &[], "");
        assert_eq!(reply.status, 200, "{}", reply.text());
        json(&reply)
    }

    fn ask(&self, host: &str, target: &str) -> Reply {
        ask_host(self.server.address, host, target)
    }

    fn stderr_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.server.child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        line
    }
}

fn text(socket: &Socket, listen: &[&str], sites: &str) -> String {
    format!("[server]\nlisten = {listen:?}\nworkers = 2\n[cache]\nsize = \"8M\"\n{}{sites}", socket.table())
}

fn site(host: &str, origin: &Origin, rest: &str) -> String {
    format!("[[site]]\nhosts = [\"{host}\"]\norigins = [\"{}\"]\n{rest}", origin.url())
}

/// The fields come after the client's own `Host`.
fn ask_host(server: SocketAddr, host: &str, target: &str) -> Reply {
    let mut stream = connect(server);
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    parse(&bytes, false)
}

/// A request on a kept connection, whose response has a body of one byte.
fn ask_kept(stream: &mut TcpStream, host: &str, target: &str) -> String {
    stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        response.extend(byte);
    }
    let mut body = [0];
    stream.read_exact(&mut body).unwrap();
    response.extend(body);
    String::from_utf8(response).unwrap()
}

#[test]
fn the_next_request_of_a_connection_has_the_new_configuration() {
    let (one, two) = (Origin::answering(|_| (200, "Cache-Control: max-age=60".to_owned(), b"1".to_vec())), {
        Origin::answering(|_| (200, "Cache-Control: max-age=60".to_owned(), b"2".to_vec()))
    });
    let reloading = Reloading::start(&site("*", &one, ""));
    // The second one comes by the fast path.
    let mut kept = connect(reloading.server.address);
    ask_kept(&mut kept, "a.example", "/");
    while !ask_kept(&mut kept, "a.example", "/").contains("Eyewall; hit") {}

    reloading.write(&site("a.example", &two, "[[site.rule]]\npath = [\"/x\"]\nbypass = true\n"));
    let reloaded = reloading.reload();
    assert_eq!(reloaded["addresses"][0], reloading.server.address.to_string());
    let response = ask_kept(&mut kept, "a.example", "/");
    assert!(response.ends_with('1') && response.contains("Eyewall; hit"), "what is stored stays: {response}");
    assert!(ask_kept(&mut kept, "a.example", "/other").ends_with('2'));
    assert!(ask_kept(&mut kept, "a.example", "/x").contains("fwd=bypass"));
    assert_eq!(reloading.ask("b.example", "/").status, 421);
}

#[test]
fn a_running_request_keeps_the_configuration_that_it_began_with() {
    let ((arrived, has_arrived), (release, released)) = (channel(), channel::<()>());
    let released = Mutex::new(released);
    let slow = Origin::raw(move |_, stream| {
        arrived.send(()).unwrap();
        let _ = released.lock().unwrap().recv();
        respond(stream, 200, "X-From: old", 3, b"old");
    });
    let new = Origin::counting("");
    let reloading = Reloading::start(&site("*", &slow, ""));
    let mut running = connect(reloading.server.address);
    send(&mut running, "GET", "/", &[]);
    has_arrived.recv().unwrap();

    reloading.write(&site("*", &new, "[[site.rule]]\nstrip_response = [\"X-From\"]\n"));
    reloading.reload();
    assert_eq!(reloading.server.get("/other").text(), "1");
    release.send(()).unwrap();
    let mut bytes = Vec::new();
    running.read_to_end(&mut bytes).unwrap();
    let reply = parse(&bytes, false);
    assert_eq!((reply.text(), reply.field("x-from")), ("old", "old"));
}

#[test]
fn a_wrong_configuration_changes_nothing_and_is_reported() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let good = site("*", &origin, "");
    let mut reloading = Reloading::start(&good);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (listen, sites, words) in [
        ("127.0.0.1:0", "[[site]]\norigins = [\"ftp://a\"]\n".to_owned(), "1 mistake in the configuration"),
        ("127.0.0.1:0", format!("{good}tls = {{ ca_file = \"/\" }}\n"), "unknown"),
        ("127.0.0.1:0", good.replace("site]", "cite]"), "did you mean `site`"),
        ("192.0.2.1:1", good.replace('*', "a"), "can't listen on 192.0.2.1:1"),
    ] {
        reloading.write_all(&[listen], &sites);
        let reply = reloading.socket.ask("POST", "/reload", &[], "");
        let told = json(&reply)["error"].as_str().unwrap().to_owned();
        assert!(reply.status == 422 && told.contains(words), "{reply:?} {told}");
        assert_eq!(reloading.server.get("/").status, 200, "{words}");
        let ended = run(eyewall().args(["reload", "--server"]).arg(reloading.socket.path()), b"");
        assert!(ended.code == 2 && ended.stderr.contains(words), "{}", ended.stderr);
    }
    drop(taken);
    assert!(reloading.stderr_line().contains("the configuration was not reloaded"));
    reloading.write(&good);
    reloading.reload();
}

#[test]
fn addresses_come_and_go() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let site = site("*", &origin, "");
    let reloading = Reloading::start(&site);
    let first = reloading.server.address;
    reloading.write_all(&["127.0.0.1:0", "[::1]:0"], &site);
    let reloaded = reloading.reload();
    let addresses: Vec<SocketAddr> = serde_json::from_value(reloaded["addresses"].clone()).unwrap();
    assert_eq!((addresses.len(), addresses[0]), (2, first));
    let mut kept = connect(addresses[1]);
    assert!(ask_kept(&mut kept, "test", "/").ends_with('1'));

    reloading.write_all(&["127.0.0.1:0"], &site);
    assert_eq!(reloading.reload()["addresses"].as_array().unwrap().len(), 1);
    while TcpStream::connect(addresses[1]).is_ok() {}
    assert!(ask_kept(&mut kept, "test", "/").ends_with('1'), "its connections go on");
    assert_eq!(ask(first, "GET", "/", &[]).text(), "1");
}

#[test]
fn a_site_gets_https_while_the_server_runs() {
    let (origin, authority) = (Origin::counting("Cache-Control: max-age=60"), Authority::new());
    let reloading = Reloading::start(&site("*", &origin, ""));
    let [clear, secure] = [site("other", &origin, ""), authority.site("test", &origin.url(), "hsts = \"1h\"\n")];
    reloading.write(&format!("{clear}{secure}[server.tls]\nstate = '{}'\n", authority.path("state").display()));
    let text = std::fs::read_to_string(reloading.file()).unwrap();
    let text = text.replace("workers = 2", "workers = 2\nlisten_tls = [\"127.0.0.1:0\"]");
    std::fs::write(reloading.file(), &text).unwrap();
    let address =
        |reloaded: Value| -> SocketAddr { serde_json::from_value(reloaded["tls_addresses"][0].clone()).unwrap() };
    let secured = address(reloading.reload());
    let reply = authority.get(secured, "test", "/");
    assert!(reply.status == 200 && !reply.field("strict-transport-security").is_empty(), "{reply:?}");
    let connected = authority.connect(secured, "test").unwrap();

    // Another certificate, of another file.
    let other = authority.issue("other.pem", &["test"]);
    let text = text.replace("/test.pem", "/other.pem");
    assert!(text.contains(other.to_str().unwrap()));
    std::fs::write(reloading.file(), text).unwrap();
    assert_eq!(address(reloading.reload()), secured);
    assert_eq!(authority.get(secured, "test", "/").status, 200);
    drop(connected);
}

#[test]
fn limits_know_what_was_before() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let reloading =
        Reloading::start(&site("*", &origin, "[site.limits]\nrequests_per_second = 1\nrequest_burst = 3\n"));
    let statuses = |count: usize| -> Vec<u16> { (0..count).map(|_| reloading.ask("test", "/").status).collect() };
    let until_refused = || while reloading.ask("test", "/").status == 200 {};
    until_refused();
    reloading.write(&site("*", &origin, "[site.limits]\nrequests_per_second = 1\nrequest_burst = 1000\n"));
    reloading.reload();
    // Three of a thousand are lacking, not all but three.
    assert!(statuses(100).iter().all(|status| *status == 200));
    reloading.write(&site("*", &origin, "[site.limits]\nrequests_per_second = 2\nrequest_burst = 50\n"));
    reloading.reload();
    assert!(statuses(20).contains(&429), "a hundred are lacking");

    reloading.write(&format!("[server.limits]\nconnections_per_client = 2\n{}", site("*", &origin, "")));
    let mut kept = [(); 2].map(|()| connect(reloading.server.address));
    for kept in &mut kept {
        ask_kept(kept, "test", "/");
    }
    reloading.reload();
    let mut third = connect(reloading.server.address);
    // Either may find that the connection is closed.
    let _ = third.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(third.read(&mut [0]).unwrap_or(0), 0);
    for kept in &mut kept {
        ask_kept(kept, "test", "/");
    }
}

#[test]
fn it_says_which_addresses_are_closed() {
    let site = site("*", &Origin::counting(""), "");
    let reloading = Reloading::start(&site);
    let unix = reloading.folder.path().join("http.sock");
    let unix = format!("unix:{}", unix.display());
    let reload = || {
        let ended = run(eyewall().args(["reload", "--server"]).arg(reloading.socket.path()), b"");
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.text().to_owned()
    };
    let own = format!("listening on http://{}/\n", reloading.server.address);
    reloading.write_all(&["127.0.0.1:0", &unix], &site);
    assert_eq!(reload(), format!("{own}listening on {unix}\n"));
    reloading.write(&site);
    assert_eq!(reload(), format!("{own}closed {unix}\n"));
    assert_eq!(reload(), own);
}

#[test]
fn a_server_that_ends_takes_no_other_configuration() {
    let ((arrived, has_arrived), (release, released)) = (channel(), channel::<()>());
    let released = Mutex::new(released);
    let slow = Origin::raw(move |_, stream| {
        arrived.send(()).unwrap();
        let _ = released.lock().unwrap().recv();
        respond(stream, 200, "", 3, b"end");
    });
    let mut reloading = Reloading::start(&site("*", &slow, ""));
    let mut running = connect(reloading.server.address);
    send(&mut running, "GET", "/", &[]);
    has_arrived.recv().unwrap();
    kill_process(Pid::from_child(&reloading.server.child), Signal::TERM).unwrap();
    while TcpStream::connect(reloading.server.address).is_ok() {}
    reloading.write_all(&["127.0.0.1:0", "127.0.0.1:0"], &site("*", &slow, ""));
    for path in ["/reload", "/upgrade"] {
        let reply = reloading.socket.ask("POST", path, &[], "");
        let told = json(&reply)["error"].as_str().unwrap().to_owned();
        assert!(reply.status == 409 && told.contains("server is ending"), "{path}: {reply:?} {told}");
    }
    let ended = run(eyewall().args(["reload", "--server"]).arg(reloading.socket.path()), b"");
    assert!(ended.code != 0 && ended.stderr.contains("server is ending"), "{}", ended.stderr);
    release.send(()).unwrap();
    let mut bytes = Vec::new();
    running.read_to_end(&mut bytes).unwrap();
    assert_eq!(parse(&bytes, false).text(), "end");
    assert_eq!(reloading.server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn settings_that_need_a_new_process_are_named() {
    let origin = Origin::counting("");
    let reloading = Reloading::start(&site("*", &origin, ""));
    let text = std::fs::read_to_string(reloading.file()).unwrap();
    let text = text.replace("workers = 2", "workers = 3").replace("8M", "9M");
    std::fs::write(reloading.file(), text).unwrap();
    let not_reloaded = reloading.reload()["not_reloaded"].clone();
    assert_eq!(not_reloaded, serde_json::json!(["cache.size", "server.workers"]));
    let ended = run(eyewall().args(["reload", "--server"]).arg(reloading.socket.path()), b"");
    assert_eq!(
        (ended.code, ended.text()),
        (0, format!("listening on http://{}/\n", reloading.server.address).as_str())
    );
    assert!(ended.stderr.contains("only a new process takes over cache.size, server.workers"), "{}", ended.stderr);
}

#[test]
fn an_unchanged_origin_keeps_its_health_and_an_old_one_is_no_longer_checked() {
    let check = "[site.origin]\nhealth = { path = \"/health\", interval = \"20ms\" }\n";
    let (old, new) = (Origin::counting(""), Origin::counting(""));
    let reloading = Reloading::start(&site("*", &old, check));
    while old.asked().is_empty() {}
    reloading.write(&site("*", &new, check));
    reloading.reload();
    while new.asked().len() < 2 {}
    // A check that had begun may still arrive.
    let (old_count, new_count) = (old.asked().len(), new.asked().len());
    while new.asked().len() < new_count + 5 {}
    assert!(old.asked().len() <= old_count + 1);
}

#[test]
fn no_request_fails_while_the_configuration_changes() {
    let (origin, other) = (load::origin(), Origin::counting(""));
    let with = site("test", &origin, "");
    let reloading = Reloading::start(&with);
    for page in 0..load::PAGES {
        let target = format!("/page/{page}");
        while !reloading.ask("test", &target).is_hit() {}
    }
    let clients = Load::start(8, 0, load::clear(reloading.server.address));
    for number in 0..10 {
        clients.wait_for(200);
        let is_more = number % 2 == 0;
        let sites = if is_more { format!("{}{with}", site("other", &other, "")) } else { with.clone() };
        let listen = if is_more { &["127.0.0.1:0", "127.0.0.1:0"][..] } else { &["127.0.0.1:0"] };
        reloading.write_all(listen, &sites);
        if number % 3 == 0 {
            kill_process(Pid::from_child(&reloading.server.child), Signal::HUP).unwrap();
            while (reloading.ask("other", "/").status == 200) != is_more {}
        } else {
            reloading.reload();
            assert_eq!(reloading.ask("other", "/").status, if is_more { 200 } else { 421 });
        }
    }
    clients.wait_for(200);
    let counts = clients.end();
    assert!(counts.failures == 0 && counts.lost_hits == 0 && counts.requests >= 2000, "{counts:?}");
    assert_eq!(counts.connections, 8, "a reload closes no connection");
}
