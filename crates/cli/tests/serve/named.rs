//! Request ids and trace contexts reach the origin, other nodes, the client and the access log, and no stored response keeps those of an
//! earlier request. `Server-Timing` is for those who may know.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::client::Reply;
use crate::common::origin::Origin;
use crate::common::server::Server;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// An origin that returns the names of each request, and lets all store the response.
fn echoing() -> Origin {
    Origin::answering(|asked| {
        let fields = format!(
            "Cache-Control: max-age=60\r\nX-Request-ID: {}\r\ntraceresponse: {}\r\nServer-Timing: db;dur=5",
            asked.field("x-request-id"),
            asked.field("traceparent")
        );
        (200, fields, b"body".to_vec())
    })
}

fn server(origin: &Origin, settings: &str, server: &str) -> Server {
    Server::configured(&format!(
        "[server]\n{server}\n[server.tracing]\n{settings}\n[[site]]\norigins = [\"{}\"]\n",
        origin.url()
    ))
}

/// The values of a field.
fn all<'a>(reply: &'a Reply, name: &str) -> Vec<&'a str> {
    reply.fields.iter().filter(|(field, _)| field == name).map(|(_, value)| value.as_str()).collect()
}

#[test]
fn no_stored_response_has_the_ids_of_an_earlier_request() {
    let origin = echoing();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let access_log =
        format!("access_log = {{ path = \"{}\", format = \"$cache $request_id $trace_id\" }}", log.display());
    let settings = "request_id = \"X-Request-ID\"\nreturn_request_id = true\ntrace_context = true";
    let mut server = server(&origin, settings, &access_log);
    let ask = |fields: &[&str]| server.ask("GET", "/", fields);
    let mut seen = Vec::new();
    // A miss, a hit of the fast path, and, by `TE`, one of the full path.
    for fields in [&["X-Request-ID: evil"][..], &["X-Request-ID: evil"], &["X-Request-ID: evil", "TE: trailers"]] {
        let reply = ask(fields);
        let ids = all(&reply, "x-request-id");
        assert!(ids.len() == 1 && ids[0].len() == 32, "{reply:?}");
        assert!(all(&reply, "traceresponse").is_empty(), "{reply:?}");
        seen.push(ids[0].to_owned());
    }
    assert!(ask(&[]).is_hit());
    assert_eq!(origin.asked().len(), 1);
    assert_eq!(origin.asked()[0].field("x-request-id"), seen[0]);
    let reply = server.ask("GET", "/", &[&format!("traceparent: {PARENT}")]);
    seen.push(reply.field("x-request-id").to_owned());
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    server.child.wait().unwrap();
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..3], [format!("miss {} -", seen[0]), format!("hit {} -", seen[1]), format!("hit {} -", seen[2])]);
    assert_eq!(lines[4], format!("hit {} {TRACE}", seen[3]));
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 4, "each request has an id of its own");
}

#[test]
fn an_id_of_a_trusted_proxy_is_kept_on_both_paths() {
    let origin = echoing();
    let settings = "request_id = \"X-Request-ID\"\nreturn_request_id = true";
    let server = server(&origin, settings, "trusted_proxies = [\"127.0.0.1\"]");
    for (target, fields) in [("/", &["X-Request-ID: a-1"][..]), ("/", &["X-Request-ID: a-1", "TE: trailers"])] {
        assert_eq!(all(&server.ask("GET", target, fields), "x-request-id"), ["a-1"]);
    }
    assert_eq!(all(&server.ask("GET", "/", &["X-Request-ID: a-1"]), "x-request-id"), ["a-1"]);
    assert_eq!(origin.asked()[0].field("x-request-id"), "a-1");
    server.ask("POST", "/", &["X-Request-ID: a-2", "Content-Length: 0"]);
    assert_eq!(origin.asked()[1].field("x-request-id"), "a-2");
    assert_ne!(server.ask("GET", "/", &["X-Request-ID: a b"]).field("x-request-id"), "a b");
}

#[test]
fn contexts_are_passed_on_begun_or_dropped() {
    let origin = echoing();
    let passing = server(&origin, "trace_context = true", "");
    let beginning = server(&origin, "trace_context = true\nsample = 1", "");
    let mut number = 0;
    let mut sent = |server: &Server, fields: &[&str]| {
        number += 1;
        server.ask("GET", &format!("/{number}"), fields);
        let asked = origin.asked().pop().unwrap();
        (asked.field("traceparent").to_owned(), asked.field("tracestate").to_owned())
    };
    let parent = format!("traceparent: {PARENT}");
    for server in [&passing, &beginning] {
        assert_eq!(sent(server, &[&parent, "tracestate: a=1"]), (PARENT.to_owned(), "a=1".to_owned()));
    }
    assert_eq!(sent(&passing, &["traceparent: 00-0-0-0", "tracestate: a=1"]), (String::new(), String::new()));
    assert_eq!(sent(&passing, &[]), (String::new(), String::new()));
    let (begun, state) = sent(&beginning, &["traceparent: 00-0-0-0", "tracestate: a=1"]);
    assert!(begun.len() == 55 && begun.starts_with("00-") && begun.ends_with("-03") && state.is_empty(), "{begun}");
}

#[test]
fn without_settings_the_fields_of_clients_reach_the_origin_as_they_are() {
    let origin = echoing();
    let server = Server::over_origin(&origin.url());
    server.ask("GET", "/", &["X-Request-ID: a b", "traceparent: wrong", "tracestate: A=1"]);
    let asked = origin.asked().pop().unwrap();
    assert_eq!(["x-request-id", "traceparent", "tracestate"].map(|name| asked.field(name)), ["a b", "wrong", "A=1"]);
}

#[test]
fn times_are_for_those_who_may_know_and_never_stored() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, "secret\n").unwrap();
    let origin = echoing();
    let by_token = server(&origin, &format!("server_timing_token_file = \"{}\"", token.display()), "");
    let timing = |server: &Server, fields: &[&str]| {
        let reply = server.ask("GET", "/", fields);
        all(&reply, "server-timing")
            .iter()
            .filter(|value| value.contains("cache;desc"))
            .map(|value| (*value).to_owned())
            .collect::<Vec<_>>()
    };
    let shown = ["Server-Timing-Token: secret"];
    let miss = timing(&by_token, &shown);
    assert!(miss.len() == 1 && miss[0].starts_with("cache;desc=\"miss\", origin;dur="), "{miss:?}");
    assert!(miss[0].contains(", total;dur="), "{miss:?}");
    assert!(timing(&by_token, &[]).is_empty() && timing(&by_token, &["Server-Timing-Token: secre"]).is_empty());
    let hit = timing(&by_token, &shown);
    assert!(hit.len() == 1 && hit[0].starts_with("cache;desc=\"hit\", total;dur="), "{hit:?}");
    assert_eq!(origin.asked()[0].field("server-timing-token"), "", "the origin never sees it");
    let by_network = server(&origin, "server_timing_from = [\"127.0.0.0/8\"]", "");
    assert_eq!((timing(&by_network, &[]).len(), timing(&by_network, &[]).len()), (1, 1));
    let elsewhere = server(&origin, "server_timing_from = [\"192.0.2.0/24\"]", "");
    assert!(timing(&elsewhere, &[]).is_empty());
}
