//! `eyewall top --server`: what a running server does, for people and for programs.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;

use crate::common::admin::{Socket, token_file};
use crate::common::command::{eyewall, run};
use crate::common::origin::{Asked, Origin, nobody};
use crate::common::server::{Server, Site};

/// The server takes a sample each second, so this is more than two minutes.
const UPDATES_MAX: usize = 150;

fn answer(asked: &Asked) -> (u16, String, Vec<u8>) {
    match asked.target.as_str() {
        "/page" => (200, "Cache-Control: max-age=6000".to_owned(), vec![b'x'; 1000]),
        "/broken" => (500, "X: y".to_owned(), b"broken".to_vec()),
        _ => (200, "Cache-Control: no-store".to_owned(), vec![b'x'; 10]),
    }
}

fn served(socket: &Socket) -> (Origin, Server) {
    let origin = Origin::answering(answer);
    let sites = format!(
        "[[site]]\nhosts = [\"test\"]\norigins = [\"{}\"]\n[[site]]\nhosts = [\"dead\"]\norigins = [\"http://{}\"]\n",
        origin.url(),
        nobody()
    );
    let server = Server::configured(&format!("{}{sites}", socket.table()));
    (origin, server)
}

/// Ends what asks, also if the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Asks the server again and again, while `look` looks.
fn while_busy<T>(server: &Server, look: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for target in ["/page", "/page", "/miss%1b[2J?q=1", "/broken", "http://dead/"] {
                    server.get(target);
                }
            }
        });
        let _over = Over(&is_over);
        look()
    })
}

/// Updates of `eyewall top --json`, until one is as wanted.
fn update(socket: &Socket, is_as_wanted: impl Fn(&Value) -> bool) -> Value {
    let mut command = eyewall();
    command.args(["top", "--json", "--interval", "10ms", "--server"]).arg(socket.path());
    let mut top = command.stdout(Stdio::piped()).spawn().unwrap();
    let found = BufReader::new(top.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .take(UPDATES_MAX)
        .find(is_as_wanted);
    top.kill().unwrap();
    top.wait().unwrap();
    found.expect("one of the updates is as wanted")
}

#[test]
fn programs_get_an_object_per_update_with_sites_origins_keys_and_paths() {
    let socket = Socket::new();
    let (origin, server) = served(&socket);
    let has = |update: &Value, list: &str, name: &str, text: &str| {
        update[list].as_array().unwrap().iter().any(|row| row[name].as_str().unwrap().contains(text))
    };
    let look = || {
        update(&socket, |update| {
            has(update, "missed", "key", "http://test/miss%1b[2J?q=1")
                && has(update, "slowest", "path", "test/miss")
                && has(update, "hottest", "key", "http://test/page")
                && update["per_second"]["hit"].as_f64().unwrap() > 0.0
                && update["origins"].as_array().unwrap().iter().any(|one| one["errors_per_second"].as_f64() > Some(0.0))
        })
    };
    let update = while_busy(&server, look);
    let site = update["sites"].as_array().unwrap().iter().find(|site| site["name"] == "test").unwrap();
    assert!(
        site["requests_per_second"].as_f64() > Some(0.0) && site["bytes_per_second"].as_f64() > Some(0.0),
        "{site}"
    );
    let ratio = update["hit_ratio"].as_f64().unwrap();
    assert!((0.0..1.0).contains(&ratio) && update["spared_ratio"].is_number(), "{update}");
    let url = origin.url();
    let worst = &update["origins"][0];
    assert!(worst["site"] == "dead" && worst["errors"].as_u64() > Some(0) && worst["url"] != *url, "{worst}");
    let slow = &update["slowest"][0]["quantiles"];
    assert!(slow[0].as_f64() <= slow[1].as_f64(), "{slow}");
}

#[test]
fn without_a_terminal_a_page_is_written() {
    let socket = Socket::new();
    let (_origin, server) = served(&socket);
    for once in [&[][..], &["--once"]] {
        let top = while_busy(&server, || run(eyewall().args(["top", "--server"]).arg(socket.path()).args(once), b""));
        assert_eq!((top.code, top.stderr.as_str()), (0, ""));
        for part in ["REQ/S", "ORIGIN", "SLOWEST", "MOST MISSED", "KEY", "HIT    STALE", "  test\n", "q ends"] {
            assert!(top.text().contains(part), "{part} in\n{}", top.text());
        }
        assert!(!top.text().contains('\x1b'), "{}", top.text());
    }
}

#[test]
fn what_cannot_be_watched_is_explained() {
    let socket = Socket::new();
    let ended = run(eyewall().args(["top", "--once", "--server"]).arg(socket.path()), b"");
    assert!(ended.code == 3 && ended.stderr.contains("admin.sock"), "{} {}", ended.code, ended.stderr);
    let folder = Site::new();
    let token = folder.path().join("token");
    token_file(&token, "a-token-of-the-administration-0123456789\n");
    let text = format!("[server.admin]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"{}\"\n", token.display());
    let server = Server::configured(&format!("{text}[[site]]\norigins = [\"http://127.0.0.1:9\"]\n"));
    let place = server.announced.lines().find_map(|line| line.strip_prefix("admin        ")).unwrap();
    let top = |words: &[&str]| run(eyewall().args(["top", "--once", "--json", "--server", place]).args(words), b"");
    let refused = top(&[]);
    assert!(refused.code != 0 && refused.stderr.contains("--token-file"), "{}", refused.stderr);
    let found = top(&["--token-file", token.to_str().unwrap()]);
    assert_eq!(found.code, 0, "{}", found.stderr);
    let update: Value = serde_json::from_str(found.text()).unwrap();
    assert!(update["hit_ratio"].is_null() && update["requests_per_second"] == 0.0, "{update}");
}
