//! The server listens on a Unix socket: its permissions say who may connect, and its clients count as trusted proxies.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::common::client::{Reply, parse};
use crate::common::command::{Ended, eyewall, run};
use crate::common::origin::Origin;
use crate::common::server::Server;
use crate::common::upgrading::{Upgrading, gone};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn socket(&self) -> PathBuf {
        self.0.path().join("http.sock")
    }

    fn address(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    /// A server of this socket, and of an address, because the tests read that.
    fn serve(&self, origin: &Origin) -> Server {
        Server::start(["--listen", &self.address(), "--origin", &origin.url()])
    }

    fn serve_configured(&self, origin: &Origin, settings: &str) -> Server {
        let text = format!(
            "[cache]\nsize = \"8M\"\n[server]\nlisten = [\"127.0.0.1:0\", \"{}\"]\n{settings}\n[[site]]\norigins = [\"{}\"]\n",
            self.address(),
            origin.url()
        );
        let file = self.0.path().join("eyewall.toml");
        std::fs::write(&file, text).unwrap();
        Server::spawn(eyewall().args(["serve", "--config"]).arg(file))
    }

    fn refused(&self, origin: &Origin) -> Ended {
        let words = ["serve", "--size", "8M", "--listen", &self.address(), "--origin", &origin.url()];
        run(eyewall().args(words), b"")
    }
}

fn ask(socket: &Path, method: &str, target: &str, fields: &str) -> Reply {
    ask_with(socket, b"", method, target, fields)
}

fn ask_with(socket: &Path, before: &[u8], method: &str, target: &str, fields: &str) -> Reply {
    let mut stream = UnixStream::connect(socket).unwrap();
    let request = format!("{method} {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{fields}\r\n");
    stream.write_all(&[before, request.as_bytes()].concat()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    parse(&bytes, false)
}

fn end(server: &mut Server) {
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn it_serves_beside_an_address_and_removes_its_file_at_the_end() {
    let (folder, origin) = (Folder::new(), Origin::counting("Cache-Control: max-age=60"));
    let mut server = folder.serve(&origin);
    assert!(server.announced.contains(&format!("listening on {}\n", folder.address())), "{}", server.announced);
    assert_eq!(std::fs::metadata(folder.socket()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(ask(&folder.socket(), "GET", "/", "").text(), "1");
    server.get_until("/", Reply::is_hit);
    let hit = ask(&folder.socket(), "GET", "/", "");
    assert_eq!((hit.is_hit(), hit.text()), (true, "1"));
    end(&mut server);
    assert!(!folder.socket().exists());
}

#[test]
fn its_mode_is_configured() {
    let (folder, origin) = (Folder::new(), Origin::counting(""));
    let _server = folder.serve_configured(&origin, "socket_mode = \"666\"");
    assert_eq!(std::fs::metadata(folder.socket()).unwrap().permissions().mode() & 0o777, 0o666);
}

#[test]
fn only_the_file_of_a_dead_server_is_replaced() {
    let (folder, origin) = (Folder::new(), Origin::counting(""));
    let mut dead = folder.serve(&origin);
    dead.child.kill().unwrap();
    dead.child.wait().unwrap();
    assert!(folder.socket().exists());
    let mut living = folder.serve(&origin);
    assert_eq!(ask(&folder.socket(), "GET", "/", "").status, 200);
    let second = folder.refused(&origin);
    assert_eq!(second.code, 3);
    assert!(second.stderr.contains("another server uses this socket"), "{}", second.stderr);
    assert_eq!(ask(&folder.socket(), "GET", "/", "").status, 200);
    end(&mut living);
    let other = UnixListener::bind(folder.socket()).unwrap();
    assert_eq!(folder.refused(&origin).code, 3);
    drop(other);
    std::fs::remove_file(folder.socket()).unwrap();
    std::fs::write(folder.socket(), "dear").unwrap();
    let refused = folder.refused(&origin);
    assert!(refused.code == 3 && refused.stderr.contains("not a socket"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(folder.socket()).unwrap(), "dear");
}

#[test]
fn its_client_has_no_address_and_counts_as_a_trusted_proxy() {
    let (folder, origin) = (Folder::new(), Origin::counting("Cache-Control: no-store"));
    let log = folder.0.path().join("access.log");
    let settings = format!("purge_from = [\"127.0.0.1\"]\n[server.access_log]\npath = \"{}\"\n", log.display());
    let mut server = folder.serve_configured(&origin, &settings);
    let socket = folder.socket();
    for (fields, forwarded_for, forwarded, scheme) in [
        ("", "", "for=unknown;proto=http;host=\"test\"", "http"),
        (
            "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n",
            "192.0.2.7",
            "for=192.0.2.7;proto=https;host=\"test\", for=unknown",
            "https",
        ),
        // Nobody may claim to be a Unix client.
        ("X-Forwarded-For: ::\r\n", "::", "for=unknown;proto=http;host=\"test\"", "http"),
    ] {
        ask(&socket, "GET", "/", fields);
        let asked = origin.asked().pop().unwrap();
        assert_eq!((asked.field("x-forwarded-for"), asked.field("x-forwarded-proto")), (forwarded_for, scheme));
        assert_eq!(asked.field("forwarded"), forwarded);
    }
    for (fields, status) in
        [("", 403), ("X-Forwarded-For: 127.0.0.1\r\n", 200), ("X-Forwarded-For: 192.0.2.7\r\n", 403)]
    {
        assert_eq!(ask(&socket, "PURGE", "/", fields).status, status, "{fields}");
    }
    end(&mut server);
    let log = std::fs::read_to_string(&log).unwrap();
    let clients: Vec<&str> = log.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(clients, ["unix:", "192.0.2.7", "unix:", "unix:", "127.0.0.1", "192.0.2.7"]);
}

#[test]
fn a_proxy_may_name_its_client_by_a_header() {
    let (folder, origin) = (Folder::new(), Origin::counting("Cache-Control: no-store"));
    let _server = folder.serve_configured(&origin, &format!("proxy_protocol = [\"{}\"]", folder.address()));
    let header = b"PROXY TCP4 192.0.2.7 10.0.0.1 4660 80\r\n";
    assert_eq!(ask_with(&folder.socket(), header, "GET", "/", "").status, 200);
    assert_eq!(origin.asked()[0].field("x-forwarded-for"), "192.0.2.7");
    // That client is not trusted.
    ask_with(&folder.socket(), header, "GET", "/", "X-Forwarded-For: 198.51.100.1\r\n");
    assert_eq!(origin.asked()[1].field("x-forwarded-for"), "192.0.2.7");
}

#[test]
fn a_missing_folder_is_reported() {
    let origin = Origin::counting("");
    let words = ["serve", "--size", "8M", "--listen", "unix:/nowhere/at/all/http.sock", "--origin", &origin.url()];
    let ended = run(eyewall().args(words), b"");
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("the folder of the socket"), "{}", ended.stderr);
}

#[test]
fn it_is_added_by_a_reload_and_kept_by_upgrades() {
    let (folder, origin) = (Folder::new(), Origin::counting("Cache-Control: no-store"));
    let site = format!("[[site]]\norigins = [\"{}\"]\n", origin.url());
    let mut upgrading = Upgrading::start(&site);
    let write = |upgrading: &Upgrading, rest: &str| {
        upgrading.write(rest);
        let file = upgrading.folder.path().join("eyewall.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let both = format!("listen = [\"127.0.0.1:0\", \"{}\"]", folder.address());
        std::fs::write(&file, text.replace("listen = [\"127.0.0.1:0\"]", &both)).unwrap();
    };
    let reload = |upgrading: &Upgrading| assert_eq!(upgrading.socket.ask("POST", "/reload", &[], "").status, 200);
    let header = b"PROXY TCP4 192.0.2.7 10.0.0.1 4660 80\r\n";
    write(&upgrading, &site);
    reload(&upgrading);
    assert_eq!(ask(&folder.socket(), "GET", "/", "").status, 200);
    // The same socket, where connections begin with a header from now on.
    write(&upgrading, &format!("proxy_protocol = [\"{}\"]\n{site}", folder.address()));
    reload(&upgrading);
    assert_eq!(ask_with(&folder.socket(), header, "GET", "/", "").status, 200);
    // A process that fails after it has taken the socket leaves it to the one before.
    write(&upgrading, &format!("access_log = {{ path = \"/proc/none\" }}\n{site}"));
    assert_eq!(upgrading.try_upgrade().code, 3);
    assert_eq!(ask_with(&folder.socket(), header, "GET", "/", "").status, 200);
    write(&upgrading, &site);
    upgrading.upgrade();
    assert!(upgrading.first_ends().success());
    assert_eq!(ask(&folder.socket(), "GET", "/", "").status, 200);
    let second = upgrading.upgrade();
    gone(second);
    assert_eq!(ask(&folder.socket(), "GET", "/", "").status, 200);
    upgrading.signal(Signal::TERM);
    gone(upgrading.process());
    assert!(!folder.socket().exists(), "the last process removes it");
}
