//! The client sends requests to good and faulty servers. The tests show what it counts, what it calls a failure, and
//! when it refuses to measure.

#![cfg(test)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

/// Longer than the shortest window.
const LATE: Duration = Duration::from_millis(20);
const BODY: &[u8] = b"hello";
const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// At the end of an answer: the server ends the connection after it.
const END: char = '\u{4}';

/// A server that plays the same script on each connection: one answer after another, then the last one again and again.
/// Instead of an empty answer, and after an answer that ends with [`END`], it ends the connection.
struct Scripted {
    address: SocketAddr,
    /// The first lines of all requests.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    fn start(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (script, heard) = (answers.iter().map(|&answer| answer.to_owned()).collect::<Vec<_>>(), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, heard) = (script.clone(), Arc::clone(&heard));
                std::thread::spawn(move || play(stream.expect("a connection"), &script, &heard));
            }
        });
        Self { address, asked }
    }

    /// A run of the client over one connection, with at most so many requests.
    fn load(&self, at_most: u32) -> Output {
        load(self.address, "/page", &["--connections", "1", "--seconds", "60", "--at-most", &at_most.to_string()])
    }
}

fn play(mut stream: TcpStream, script: &[String], heard: &Mutex<Vec<String>>) {
    let mut step = 0;
    while let Some(line) = request(&mut stream) {
        heard.lock().expect("no panic").push(line);
        let answer = &script[step.min(script.len() - 1)];
        let ends = answer.is_empty() || answer.ends_with(END);
        // Writes each part by itself.
        let written = answer.trim_end_matches(END).split('|').all(|part| stream.write_all(part.as_bytes()).is_ok());
        if ends || !written {
            return;
        }
        step += 1;
    }
}

fn request(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()?.lines().next().map(str::to_owned)
}

/// From now on the port refuses connections, and no other program can bind it while the listener lives. Dropping the
/// listener isn't enough: a process that another test is starting may hold it for a moment, too.
fn stop_listening(listener: &TcpListener) {
    rustix::net::shutdown(listener, rustix::net::Shutdown::Both).expect("a listener");
}

fn load(address: SocketAddr, path: &str, options: &[&str]) -> Output {
    let mut reference = tempfile::NamedTempFile::new().expect("a file");
    reference.write_all(BODY).expect("a reference");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench-http"));
    command.arg("load").arg("--reference").arg(reference.path()).args(options).arg(format!("http://{address}{path}"));
    command.output().expect("bench-http")
}

/// The output line of a successful run.
fn line(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    let text = std::str::from_utf8(&output.stdout).expect("text");
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(text).expect("JSON")
}

fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// The counts if the first answer is good, the second is faulty, and the loop goes on with a new connection.
fn errors_of(second: &str) -> Value {
    let line = line(&Scripted::start(&[GOOD, second]).load(3));
    assert_eq!(line["errors"].as_object().map(serde_json::Map::len), Some(1), "{line}");
    line["errors"].clone()
}

#[test]
fn whole_answers_are_counted_with_their_bytes_and_times() {
    let line = line(&Scripted::start(&[GOOD]).load(7));
    assert_eq!(line["requests"], 7);
    assert_eq!(line["bytes"], 7 * GOOD.len());
    assert_eq!(line["errors"], serde_json::json!({}));
    for time in ["micros", "p50", "p99"] {
        assert!(line[time].as_f64().is_some_and(|time| time > 0.0), "{line}");
    }
    assert!(line["cpu_micros"].is_u64(), "{line}");
}

#[test]
fn each_time_lies_in_a_bucket() {
    let line = line(&Scripted::start(&[GOOD]).load(7));
    let buckets: Vec<(u64, u64)> = serde_json::from_value(line["buckets"].clone()).expect("pairs");
    assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 7);
    assert!(buckets.is_sorted_by(|left, right| left.0 < right.0), "{buckets:?}");
}

#[test]
fn a_connection_for_each_request_asks_nothing_before_the_clock() {
    // The server ends each connection after one answer. A second answer would be different.
    let server = Scripted::start(&[GOOD, ""]);
    let line =
        line(&load(server.address, "/", &["--anew", "--connections", "3", "--seconds", "60", "--at-most", "20"]));
    assert_eq!((&line["requests"], &line["errors"]), (&Value::from(20), &serde_json::json!({})));
    assert_eq!(server.asked.lock().expect("no panic").len(), 20);
}

#[test]
fn an_answer_may_end_with_its_connection() {
    let load = |answer: &str| {
        let server = Scripted::start(&[answer]);
        line(&load(server.address, "/", &["--anew", "--connections", "1", "--seconds", "60", "--at-most", "3"]))
    };
    assert_eq!(load(&format!("HTTP/1.0 200 OK\r\n\r\nhello{END}"))["requests"], 3);
    assert_eq!(load(&format!("HTTP/1.0 200 OK\r\n\r\nhell{END}"))["errors"], serde_json::json!({"read": 3}));
}

#[test]
fn requests_on_connections_of_their_own_fail_one_by_one() {
    let server = Scripted::start(&["HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"]);
    let output = load(server.address, "/", &["--anew", "--connections", "2", "--seconds", "60", "--at-most", "9"]);
    assert_eq!(line(&output)["errors"], serde_json::json!({"status": 9}));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    stop_listening(&listener);
    let output = load(address, "/", &["--anew", "--connections", "2", "--seconds", "60", "--at-most", "9"]);
    assert_eq!(line(&output)["errors"], serde_json::json!({"connect": 9}));
}

#[test]
fn the_last_answers_are_waited_for() {
    // Two requests are under way when the last one may be sent.
    let slow: String = GOOD.chars().flat_map(|char| [char, '|']).collect();
    let server = Scripted::start(&[GOOD, &slow]);
    let line = line(&load(server.address, "/", &["--connections", "3", "--seconds", "60", "--at-most", "5"]));
    assert_eq!(line["requests"], 5);
}

#[test]
fn an_answer_may_come_byte_by_byte() {
    let pieces: String = GOOD.chars().flat_map(|char| [char, '|']).collect();
    assert_eq!(line(&Scripted::start(&[&pieces]).load(3))["requests"], 3);
}

#[test]
fn a_number_in_the_path_is_another_in_each_request() {
    let server = Scripted::start(&[GOOD]);
    line(&load(server.address, "/a-{}", &["--connections", "1", "--seconds", "60", "--at-most", "4"]));
    let asked = server.asked.lock().expect("no panic");
    let numbered: Vec<String> = (0..5).map(|number| format!("GET /a-{number} HTTP/1.1")).collect();
    assert_eq!(asked[..], numbered);
}

#[test]
fn numbers_begin_again() {
    let server = Scripted::start(&[GOOD]);
    let options = ["--names", "2", "--connections", "1", "--seconds", "60", "--at-most", "3"];
    line(&load(server.address, "/a-{}", &options));
    let asked = server.asked.lock().expect("no panic");
    assert_eq!(asked[..], [0, 1, 0, 1].map(|number| format!("GET /a-{number} HTTP/1.1")));
}

#[test]
fn each_number_may_have_a_body_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, body) in ["hello", "hi"].iter().enumerate() {
        std::fs::write(folder.path().join(format!("{number}.txt")), body).expect("a file");
    }
    let hi = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let ask = |answers: &[&str]| {
        let server = Scripted::start(answers);
        let mut command = Command::new(env!("CARGO_BIN_EXE_bench-http"));
        command.args(["load", "--names", "2", "--connections", "1", "--seconds", "60", "--at-most", "3"]);
        command.arg("--reference").arg(folder.path().join("{}.txt"));
        command.arg(format!("http://{}/{{}}.txt", server.address)).output().expect("bench-http")
    };
    let right = line(&ask(&[GOOD, hi, GOOD, hi]));
    assert_eq!((&right["requests"], &right["bytes"]), (&Value::from(3), &Value::from(GOOD.len() + 2 * hi.len())));
    assert_eq!(line(&ask(&[GOOD, hi, hi, GOOD]))["errors"], serde_json::json!({"length": 2}));
    assert!(refusal(&ask(&[hi])).contains("another length"));
}

#[test]
fn a_server_that_closes_after_an_answer_is_asked_on_another_connection() {
    let closing = GOOD.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    // A new connection begins with the good answer again.
    let server = Scripted::start(&[GOOD, &closing, ""]);
    let line = line(&server.load(6));
    assert_eq!((&line["requests"], &line["errors"]), (&Value::from(6), &serde_json::json!({})));
}

#[test]
fn what_fails_is_counted_by_its_kind() {
    // Each new connection begins with the good answer: the first and the third of three requests fail.
    assert_eq!(errors_of(""), serde_json::json!({"read": 2}));
    for cut in ["HTTP/1.1 200 OK\r\nCont", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"] {
        assert_eq!(errors_of(&format!("{cut}{END}")), serde_json::json!({"read": 2}));
    }
    assert_eq!(errors_of("HTTP/1.1 503 No\r\nContent-Length: 5\r\n\r\nhello"), serde_json::json!({"status": 2}));
    assert_eq!(errors_of("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello!"), serde_json::json!({"length": 2}));
    assert_eq!(errors_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!"), serde_json::json!({"length": 2}));
    assert_eq!(errors_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), serde_json::json!({"length": 2}));
    assert_eq!(errors_of("hello"), serde_json::json!({"head": 2}));
}

#[test]
fn an_answer_that_never_becomes_whole_is_a_failure() {
    let server = Scripted::start(&[GOOD, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"]);
    let line = line(&load(server.address, "/", &["--connections", "1", "--seconds", "2"]));
    assert_eq!(line["errors"], serde_json::json!({"timeout": 1}));
}

#[test]
fn answers_that_are_on_their_way_when_the_time_is_over_count_where_they_are_waited_for() {
    // The server answers the second request long after the end of the client's window.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut asked = 0;
        while request(&mut stream).is_some() {
            asked += 1;
            if asked > 1 {
                std::thread::sleep(LATE);
            }
            stream.write_all(GOOD.as_bytes()).expect("an answer");
        }
        asked
    });
    let line = line(&load(address, "/", &["--connections", "1", "--seconds", "0.001", "--finish", "60"]));
    assert_eq!((&line["requests"], &line["errors"]), (&Value::from(1), &serde_json::json!({})));
    assert!(line["micros"].as_u64().is_some_and(|micros| micros >= LATE.as_micros() as u64), "{line}");
    assert_eq!(server.join().expect("no panic"), 2);
}

#[test]
fn a_server_that_is_gone_ends_the_window() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        // When the first request is answered, nothing listens any more. After the second request the connection ends,
        // too.
        stop_listening(&listener);
        request(&mut stream).expect("a request");
        stream.write_all(GOOD.as_bytes()).expect("an answer");
        request(&mut stream).expect("another request");
        listener
    });
    let line = line(&load(address, "/", &["--connections", "1", "--seconds", "60"]));
    drop(server.join().expect("no panic"));
    assert_eq!(line["errors"], serde_json::json!({"read": 1, "connect": 1}));
}

#[test]
fn a_first_answer_that_is_not_the_reference_is_nothing_to_measure() {
    let wrong = [
        ("HTTP/1.1 404 No\r\nContent-Length: 5\r\n\r\nhello", "is not 200"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhell", "another length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello", "other bytes"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", "closes the connection"),
        ("nonsense", "none of HTTP/1"),
        ("", "ends too early"),
    ];
    for (answer, why) in wrong {
        let said = refusal(&Scripted::start(&[answer]).load(1));
        assert!(said.contains("first answer on connection 1") && said.contains(why), "{said}");
    }
}

#[test]
fn what_cannot_be_asked_is_refused_with_a_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    stop_listening(&listener);
    assert!(refusal(&load(address, "/", &[])).contains(&format!("connecting to {address}: ")));
    assert!(refusal(&load(address, "", &[])).contains("no path"));
    for seconds in ["0", "-1", "soon"] {
        let output = load(address, "/", &[&format!("--seconds={seconds}")]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    let without = ["load", "--reference", "no-such-file", "http://127.0.0.1:1/"];
    let output = Command::new(env!("CARGO_BIN_EXE_bench-http")).args(without).output().expect("bench-http");
    assert!(refusal(&output).contains("reading no-such-file"));
}
