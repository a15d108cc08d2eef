//! Lines, for any bytes of clients.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Request, Response, StatusCode};

use super::sinks::Sink;
use super::{Entry, Form, Lines, LoggedRequest, new_queue};
use crate::config::log_format::LogFormat;
use crate::key::Scheme;
use crate::serve::outcome::Outcome;

fn lines(format: &LogFormat, sample: f64) -> Lines {
    Lines { sink: Arc::new(Sink { queue: Arc::new(new_queue()) }), form: Arc::new(Form::of(format)), sample }
}

fn written(lines: &Lines) -> String {
    String::from_utf8(lines.sink.queue.take(Vec::new()).items).unwrap()
}

/// The line of a request with these fields, and of a response with this `Cache-Status`.
fn line(format: &LogFormat, target: &str, fields: &[(&str, &[u8])], status: Option<&str>, sent: usize) -> String {
    let lines = lines(format, 1.0);
    let mut request = Request::builder().uri(target);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(()).unwrap();
    let client = IpAddr::from([192, 0, 2, 7]);
    let mut entry = Entry::new(lines.clone(), &LoggedRequest::of(&request, Scheme::Https), client, Instant::now());
    if let Some(status) = status {
        let response = Response::builder().header("cache-status", status).header("x-a", "b\"c").body(()).unwrap();
        entry.answered(&response, &Outcome::of(&response), Some("a.org"), Some(Duration::from_micros(42)));
    }
    entry.sent(sent);
    drop(entry);
    written(&lines)
}

fn without_times(line: &str) -> String {
    let (start, rest) = line.split_once('[').unwrap();
    let (_, rest) = rest.split_once(']').unwrap();
    let mut words: Vec<&str> = rest.split(' ').collect();
    let count = words.len();
    for word in &mut words[count - 3..count - 1] {
        if word.parse::<u64>().is_ok() {
            *word = "T";
        }
    }
    format!("{start}[]{}", words.join(" "))
}

#[test]
fn a_combined_line_ends_with_the_cache_status_and_times() {
    for (target, fields, status, expected) in [
        (
            "/a?b=c",
            &[("host", &b"a.org"[..]), ("referer", b"http://b.org/"), ("user-agent", b"curl/8")][..],
            Some("Eyewall; hit; ttl=5"),
            "192.0.2.7 - - [] \"GET /a?b=c HTTP/1.1\" 200 7 \"http://b.org/\" \"curl/8\" \"a.org\" hit T T 42\n",
        ),
        (
            "http://a.org/",
            &[("user-agent", b"x\" 200 5\xff\t\\")],
            Some("Eyewall; fwd=uri-miss; fwd-status=200; stored"),
            "192.0.2.7 - - [] \"GET / HTTP/1.1\" 200 7 \"-\" \"x\\x22 200 5\\xFF\\x09\\x5C\" \"a.org\" miss T T 42\n",
        ),
        ("/", &[], None, "192.0.2.7 - - [] \"GET / HTTP/1.1\" 499 7 \"-\" \"-\" \"-\" - - T -\n"),
    ] {
        assert_eq!(without_times(&line(&LogFormat::Combined, target, fields, status, 7)), expected);
    }
}

#[test]
fn the_reason_of_a_word_is_escaped() {
    let status = Some(r#"Eyewall; fwd=uri-miss; fwd-status=200; detail="in two \"words\"""#);
    let line = line(&LogFormat::Combined, "/", &[], status, 7);
    assert!(line.contains(" pass:in\\x20two\\x20\\x5C\\x22words\\x5C "), "{line}");
}

#[test]
fn a_json_line_is_an_object_for_any_bytes_of_the_client() {
    let fields = [("host", &b"a.org"[..]), ("user-agent", b"x\", \"status\": 5\xff\t\\")];
    let line = line(&LogFormat::Json, "/a?b=c", &fields, Some("Eyewall; hit; ttl=-5"), 7);
    assert!(line.ends_with("}\n") && line.lines().count() == 1, "{line}");
    let mut object: serde_json::Value = serde_json::from_str(&line).unwrap();
    for (name, is_so) in [("time", serde_json::Value::is_string as fn(&serde_json::Value) -> bool)]
        .into_iter()
        .chain(["first_byte_us", "total_us"].map(|name| (name, serde_json::Value::is_u64 as _)))
    {
        assert!(is_so(&object.as_object_mut().unwrap().remove(name).unwrap()), "{line}");
    }
    let expected = serde_json::json!({
        "client": "192.0.2.7", "method": "GET", "target": "/a?b=c", "protocol": "HTTP/1.1", "scheme": "https",
        "host": "a.org",
        "user_agent": "x\", \"status\": 5\u{fffd}\t\\", "status": 200, "bytes": 7, "cache": "stale", "origin_us": 42
    });
    assert_eq!(object, expected);
}

#[test]
fn bytes_that_are_not_a_request_have_a_line_too() {
    for (format, part) in [
        (LogFormat::Combined, "] \"-\" 400 0 \"-\" \"-\" \"-\" - - "),
        (LogFormat::Json, "\"method\":\"-\",\"target\":\"-\",\"status\":400,\"bytes\":0,\"total_us\":"),
    ] {
        let lines = lines(&format, 1.0);
        drop(Entry::of_refusal(lines.clone(), IpAddr::from([192, 0, 2, 7]), StatusCode::BAD_REQUEST));
        let line = written(&lines);
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn a_form_of_the_operator_has_the_values_that_it_names() {
    let format = "$remote_addr $remote_user $request_method $uri?$args $scheme $host $site $status $body_bytes_sent \
                  $upstream_cache_status $cache $upstream_response_time $http_x_a $http_x_b $sent_http_x_a $sent_http_x_b"
        .parse()
        .unwrap();
    let fields = [("host", &b"h"[..]), ("x-a", b"1 \"2\"")];
    let hit = line(&format, "/a?b=c", &fields, Some("Eyewall; hit; ttl=5"), 7);
    assert_eq!(hit, "192.0.2.7 - GET /a?b=c https h a.org 200 7 HIT hit 0.000 1 \\x222\\x22 - b\\x22c -\n");
    let gone = line(&format, "/a", &fields, None, 0);
    assert_eq!(gone, "192.0.2.7 - GET /a?- https h - 499 0 - - - 1 \\x222\\x22 - - -\n");
}

#[test]
fn a_form_that_begins_with_a_brace_is_json_for_any_bytes() {
    let format =
        r#"{"a":"$http_x_a","line":"$request","s":$status,"b":"$sent_http_x_a$http_x_b","t":$msec}"#.parse().unwrap();
    let fields = [("x-a", &b"\"\\\xff\t}"[..])];
    let line = line(&format, "/a?\u{fc}", &fields, Some("Eyewall; hit; ttl=5"), 7);
    let object: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&object["a"], &object["s"], &object["b"]), (&"\"\\\u{fffd}\t}".into(), &200.into(), &"b\"c".into()));
    assert!(object["line"].as_str().unwrap().starts_with("GET /a?") && object["t"].is_f64(), "{line}");
}

#[test]
fn a_reason_with_blanks_is_json_too() {
    let status = Some(r#"Eyewall; fwd=uri-miss; fwd-status=200; detail="in two words""#);
    let line = line(&LogFormat::Json, "/", &[], status, 7);
    let object: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(object["cache"], "pass:in two words");
}

#[test]
fn a_sample_leaves_out_all_but_errors_of_the_server() {
    let lines = lines(&"$status".parse().unwrap(), 0.0);
    for status in [200, 404, 500, 599] {
        let request = Request::new(());
        let client = IpAddr::from([192, 0, 2, 7]);
        let mut entry = Entry::new(lines.clone(), &LoggedRequest::of(&request, Scheme::Http), client, Instant::now());
        let response = Response::builder().status(status).body(()).unwrap();
        entry.answered(&response, &Outcome::of(&response), None, None);
    }
    assert_eq!(written(&lines), "500\n599\n");
}

#[test]
fn a_hit_of_the_fast_path_finds_the_fields_of_its_head() {
    let lines = lines(&"$sent_http_etag $sent_http_x $cache".parse().unwrap(), 1.0);
    let request = Request::new(());
    let client = IpAddr::from([192, 0, 2, 7]);
    let mut entry = Entry::new(lines.clone(), &LoggedRequest::of(&request, Scheme::Http), client, Instant::now());
    entry.answered_by_hit(StatusCode::OK, b"HTTP/1.1 200 OK\r\nETag: \"a:b\"\r\nage: 1\r\n\r\n", None);
    drop(entry);
    assert_eq!(written(&lines), "\\x22a:b\\x22 - hit\n");
}
