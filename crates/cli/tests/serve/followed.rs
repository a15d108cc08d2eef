//! `eyewall log` and `GET /requests`: the requests of a running server, as they end.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::admin::{Socket, json};
use crate::common::client::{Reply, connect};
use crate::common::command::eyewall;
use crate::common::origin::{Asked, Origin};
use crate::common::server::Server;

/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_mins(1);

fn answer(asked: &Asked) -> (u16, String, Vec<u8>) {
    match asked.target.as_str() {
        "/cookie" => (200, "Cache-Control: max-age=60\r\nSet-Cookie: secret=1".to_owned(), vec![b'x'; 10]),
        "/broken" => (500, String::new(), b"broken".to_vec()),
        target => {
            if target.starts_with("/page/") {
                // Slower than the filter of a test.
                thread::sleep(Duration::from_millis(2));
            }
            (200, "Cache-Control: max-age=60".to_owned(), vec![b'x'; 1000])
        }
    }
}

fn served(socket: &Socket) -> (Origin, Server) {
    let origin = Origin::answering(answer);
    let site = format!("[[site]]\nhosts = [\"test\"]\norigins = [\"{}\"]\n", origin.url());
    let server = Server::configured(&format!("{}{site}", socket.table()));
    (origin, server)
}

/// Follows the requests. The head of the response has come, so the server has the follower.
fn follow(socket: &Socket, query: &str, accept: &str) -> BufReader<UnixStream> {
    let mut stream = UnixStream::connect(socket.path()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET /requests?{query} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n").unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).expect("the head comes in time") > 0, "{head}");
    }
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    reader
}

/// The next line of a chunked response that begins so.
fn next(reader: &mut BufReader<UnixStream>, start: &str) -> Value {
    let begun = Instant::now();
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).expect("a line comes in time") > 0, "it has ended");
        assert!(begun.elapsed() < PATIENCE, "other lines come, such as {line}");
        if let Some(rest) = line.strip_prefix(start)
            && rest.starts_with('{')
        {
            return serde_json::from_str(rest).unwrap();
        }
    }
}

#[test]
fn each_request_is_a_line_with_what_the_access_log_says() {
    let socket = Socket::new();
    let (_origin, server) = served(&socket);
    let mut all = follow(&socket, "", "*/*");
    let mut events = follow(&socket, "status=5xx", "text/event-stream");
    let ask = |target: &str, fields: &[&str]| server.ask("GET", target, fields);
    let secrets = ["Cookie: secret=2", "Authorization: Basic c2VjcmV0"];
    for (target, fields, verdict, status, bytes) in [
        ("/page?a=b", &[][..], "miss", 200, 1000),
        ("/page?a=b", &["Cookie: secret=2"][..], "hit", 200, 1000),
        ("/page?a=b", &["Accept: a/b", "Range: bytes=0-9"][..], "hit", 206, 10),
        ("/cookie", &secrets[..], "pass", 200, 10),
        ("/broken", &secrets[..], "pass", 500, 6),
    ] {
        ask(target, fields);
        let line = next(&mut all, "");
        let told = ["target", "verdict", "status", "bytes", "site", "host", "method"].map(|name| line[name].clone());
        let expected =
            [json!(target), json!(verdict), json!(status), json!(bytes), json!("test"), json!("test"), json!("GET")];
        assert_eq!(told, expected, "{line}");
        assert!(!line.to_string().contains("secret") && !line.to_string().contains("c2Vj"), "{line}");
        assert!(line["total_us"].is_u64() && line["first_byte_us"].is_u64(), "{line}");
        assert_eq!(
            (line["origin_us"].is_u64(), line["reason"].is_string()),
            (verdict != "hit", verdict == "pass"),
            "{line}"
        );
    }
    assert_eq!(next(&mut events, "data: ")["target"], "/broken", "the filter leaves the others out");
}

/// `eyewall log`, which is killed at the end of its test.
struct Log {
    child: Child,
    lines: Receiver<String>,
    errors: Option<JoinHandle<String>>,
}

/// `eyewall log` with these words.
fn log(socket: &Socket, words: &[&str]) -> Log {
    let mut log = unread(socket, words);
    let (output, mut errors) = (log.child.stdout.take().unwrap(), log.child.stderr.take().unwrap());
    let (said, lines) = channel();
    // Both threads end with the process.
    thread::spawn(move || BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| said.send(line)));
    log.errors = Some(thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).map(|_| text).unwrap_or_default()
    }));
    log.lines = lines;
    log
}

/// The same, whose output nobody reads.
fn unread(socket: &Socket, words: &[&str]) -> Log {
    let mut command = eyewall();
    command.args(["log", "--server"]).arg(socket.path()).args(words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    Log { child, lines: channel().1, errors: None }
}

impl Log {
    /// Repeats something until there is a line.
    fn line_after(&self, repeated: impl Fn()) -> String {
        let begun = Instant::now();
        loop {
            match self.lines.try_recv() {
                Ok(line) => return line,
                Err(TryRecvError::Empty) => repeated(),
                Err(TryRecvError::Disconnected) => panic!("the command has ended"),
            }
            assert!(begun.elapsed() < PATIENCE, "no line came");
        }
    }

    /// Repeats something until the command ends. Returns its exit code, its other lines, and its errors.
    fn end_after(mut self, mut repeated: impl FnMut()) -> (Option<i32>, Vec<String>, String) {
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => repeated(),
            }
            assert!(begun.elapsed() < PATIENCE, "the command does not end");
        };
        let errors = self.errors.take().map(|errors| errors.join().unwrap());
        (status.code(), self.lines.iter().collect(), errors.unwrap_or_default())
    }

    fn end(self) -> (Option<i32>, Vec<String>, String) {
        self.end_after(|| thread::sleep(Duration::from_millis(5)))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_command_shows_what_it_is_asked_for_and_ends_after_a_number() {
    let socket = Socket::new();
    let (_origin, server) = served(&socket);
    let two = log(
        &socket,
        &["--miss", "--path", "/p*", "--method", "get", "--site", "test", "--slower", "1ms", "--count", "2"],
    );
    let mut number = 0;
    let (code, lines, _) = two.end_after(|| {
        number += 1;
        server.get(&format!("/slow/{number}"));
        server.get(&format!("/page/{number}"));
        server.get(&format!("/page/{number}"));
    });
    assert_eq!((code, lines.len()), (Some(0), 2), "{lines:?}");
    assert!(lines.iter().all(|line| line.contains(" 200 miss ") && line.contains("http://test/page/")), "{lines:?}");
    assert!(!lines.concat().contains('\x1b'), "there are no colours without a terminal");
}

#[test]
fn the_command_ends_when_it_is_interrupted_and_with_the_server() {
    let socket = Socket::new();
    let (_origin, server) = served(&socket);
    let [interrupted, left] = [log(&socket, &["--json"]), log(&socket, &["--json"])];
    for follower in [&interrupted, &left] {
        // It follows once it has said something.
        let line = follower.line_after(|| _ = server.get("/page"));
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["target"], "/page", "{line}");
    }
    kill_process(Pid::from_child(&interrupted.child), Signal::INT).unwrap();
    assert_eq!(interrupted.end().0, Some(0));
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    assert_eq!(left.end().0, Some(0));
}

#[test]
fn an_interrupt_ends_it_although_nobody_reads_its_output() {
    let socket = Socket::new();
    let (_origin, server) = served(&socket);
    let mut stalled = unread(&socket, &["--json"]);
    let mut output = stalled.child.stdout.take().unwrap();
    let (told, first) = channel();
    // It ends with the process.
    thread::spawn(move || {
        let is_read = output.read_exact(&mut [0]).is_ok();
        told.send((is_read, output))
    });
    let target = format!("/page?{}", "a".repeat(4000));
    let begun = Instant::now();
    let (is_read, _output) = loop {
        match first.try_recv() {
            Ok(read) => break read,
            Err(_) => server.get(&target),
        };
        assert!(begun.elapsed() < PATIENCE, "nothing came");
    };
    assert!(is_read);
    // More than a pipe holds.
    for _ in 0..40 {
        server.get(&target);
    }
    kill_process(Pid::from_child(&stalled.child), Signal::INT).unwrap();
    assert_eq!(stalled.end().0, Some(0));
}

#[test]
fn a_password_in_an_address_is_shown_to_nobody() {
    let socket = Socket::new();
    let (_origin, server) = served(&socket);
    let mut all = follow(&socket, "", "*/*");
    for head in
        ["GET http://user:secret@test/page HTTP/1.1\r\nHost: test", "GET /page HTTP/1.1\r\nHost: user:secret@test"]
    {
        let mut client = connect(server.address);
        write!(client, "{head}\r\nConnection: close\r\n\r\n").unwrap();
        let mut reply = String::new();
        client.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 400 "), "{reply}");
        let line = next(&mut all, "");
        assert_eq!((&line["host"], &line["status"]), (&json!("test"), &json!(400)), "{line}");
        assert!(!line.to_string().contains("secret"), "{line}");
    }
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let socket = Socket::new();
    let (_origin, server) = served(&socket);
    for (method, target, status, words) in
        [("GET", "/requests?verdict=missed", 400, "the verdicts are"), ("POST", "/requests", 405, "GET")]
    {
        let reply = socket.ask(method, target, &[], "");
        let told = json(&reply)["error"].as_str().unwrap().to_owned();
        assert_eq!((reply.status, told.contains(words)), (status, true), "{told}");
    }
    let mut followers: Vec<_> = (0..16).map(|_| follow(&socket, "", "*/*")).collect();
    assert_eq!(socket.ask("GET", "/requests", &[], "").status, 503);
    // A follower that leaves makes room, as soon as the server notices.
    followers.pop();
    let (code, _, told) = log(&socket, &["--status", "many"]).end();
    assert_eq!((code, told.contains("`many` is no status")), (Some(2), true), "{told}");
    server.get_until("/page", Reply::is_hit);
}
