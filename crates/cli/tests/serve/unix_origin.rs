//! An origin at a Unix socket: requests, health and errors are as with an origin at an address.

use std::io::Write as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

use crate::common::client::Reply;
use crate::common::origin::{Asked, read, respond};
use crate::common::server::Server;

/// A folder for sockets, removed at the end.
struct Sockets(TempDir);

impl Sockets {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Answers the first request of each connection at a new socket, on a thread that ends with the process of the tests. Returns
/// the requests.
fn origin(socket: &Path, answer: impl Fn(&Asked, &mut UnixStream) + Send + 'static) -> Arc<Mutex<Vec<Asked>>> {
    let listener = UnixListener::bind(socket).unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Some(asked) = read(&mut stream) else { continue };
            record.lock().unwrap().push(asked.clone());
            answer(&asked, &mut stream);
        }
    });
    asked
}

fn answer_target(asked: &Asked, stream: &mut UnixStream) {
    respond(stream, 200, "Cache-Control: max-age=60", asked.target.len(), asked.target.as_bytes());
}

#[test]
fn its_responses_are_stored_and_it_gets_the_fields_about_the_client() {
    let sockets = Sockets::new();
    let asked = origin(&sockets.path("app.sock"), answer_target);
    let server = Server::over_origin(&format!("unix:{}:/app/", sockets.path("app.sock").display()));
    assert!(server.announced.contains("app.sock:/app"), "{}", server.announced);
    assert_eq!(server.get("/page?x").text(), "/app/page?x");
    server.get_until("/page?x", Reply::is_hit);
    assert_eq!(server.get("/..;v=1/secret").status, 400, "the path of the origin is a border");
    let asked = asked.lock().unwrap().remove(0);
    for (name, value) in [("host", "test"), ("x-forwarded-for", "127.0.0.1"), ("x-forwarded-proto", "http")] {
        assert_eq!(asked.field(name), value, "{name}");
    }
}

#[test]
fn its_own_host_is_localhost() {
    let sockets = Sockets::new();
    let asked = origin(&sockets.path("app.sock"), answer_target);
    let settings = "[site.origin]\nhost_header = \"origin\"\n";
    let server = Server::over_site(&format!("unix:{}", sockets.path("app.sock").display()), settings);
    server.get("/");
    assert_eq!(asked.lock().unwrap()[0].field("host"), "localhost");
}

#[test]
fn a_missing_socket_is_an_unreachable_origin_until_it_is_there() {
    let sockets = Sockets::new();
    let server = Server::over_origin(&format!("unix:{}", sockets.path("late.sock").display()));
    let reply = server.get("/");
    assert_eq!((reply.status, reply.cache()), (502, "Eyewall; fwd=uri-miss; detail=origin-unreachable"));
    assert!(!reply.text().contains("late.sock"), "clients don't see the path: {}", reply.text());
    origin(&sockets.path("late.sock"), answer_target);
    assert_eq!(server.get("/").text(), "/");
}

#[test]
fn a_closed_connection_is_retried_and_silence_is_a_timeout() {
    let sockets = Sockets::new();
    let count = AtomicUsize::new(0);
    let asked = origin(&sockets.path("app.sock"), move |asked, stream| {
        if asked.target == "/silent" {
            // Held until the server gives up.
            let _ = read(stream);
        } else if count.fetch_add(1, Ordering::SeqCst) > 0 {
            respond(stream, 200, "", 4, b"well");
        }
    });
    let server = Server::over_site(
        &format!("unix:{}", sockets.path("app.sock").display()),
        "[site.origin]\ntimeout = \"100ms\"\n",
    );
    assert_eq!(server.get("/").text(), "well");
    assert_eq!(asked.lock().unwrap().len(), 2);
    assert_eq!(server.get("/silent").status, 504);
}

#[test]
fn one_that_fails_its_health_checks_gets_no_requests() {
    let sockets = Sockets::new();
    let (ill, well) = (sockets.path("ill.sock"), sockets.path("well.sock"));
    let asked = origin(&ill, |_, stream| respond(stream, 503, "", 3, b"ill"));
    origin(&well, |_, stream| respond(stream, 200, "Cache-Control: no-store", 4, b"well"));
    let table = "[site.origin.health]\npath = \"/health\"\ninterval = \"10ms\"\nunhealthy_after = 1\n";
    let origins = format!("origins = [\"unix:{}\", \"unix:{}\"]", ill.display(), well.display());
    let server = Server::configured(&format!("[[site]]\n{origins}\n{table}"));
    // The second check begins after the first one has counted.
    let checks = || asked.lock().unwrap().iter().filter(|one| one.target == "/health").count();
    server.get_until("/", |_| checks() >= 2);
    for _ in 0..4 {
        assert_eq!(server.get("/").text(), "well");
    }
}

#[test]
fn an_upgrade_passes() {
    let sockets = Sockets::new();
    origin(&sockets.path("app.sock"), |_, stream| {
        let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello";
        let _ = stream.write_all(head.as_bytes());
    });
    let server = Server::over_origin(&format!("unix:{}", sockets.path("app.sock").display()));
    let reply = server.ask("GET", "/chat", &["Connection: upgrade", "Upgrade: websocket"]);
    assert_eq!((reply.status, reply.text()), (101, "hello"));
}
