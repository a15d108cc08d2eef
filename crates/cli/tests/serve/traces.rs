//! The spans of requests reach a collector: which requests have some, what they say, and what happens to spans that the collector doesn't take.

use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::admin::{Socket, token_file};
use crate::common::client::connect;
use crate::common::collector::{Collector, Span, hanging};
use crate::common::command::{eyewall, run};
use crate::common::metrics::Scrape;
use crate::common::origin::{Origin, nobody};
use crate::common::server::Server;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A server of one site, with these lines in `[server]` and in `[server.tracing]`.
fn server(origin: &Origin, lines: &str, tracing: &str) -> Server {
    Server::configured(&configuration(origin, lines, tracing))
}

fn configuration(origin: &Origin, lines: &str, tracing: &str) -> String {
    format!(
        "[server]\n{lines}\n[server.tracing]\n{tracing}\n[[site]]\nhosts = [\"test\"]\norigins = [\"{}\"]\n",
        origin.url()
    )
}

fn all_to(collector: &Collector) -> String {
    format!("otlp = \"{}\"\notlp_sample = 1", collector.url())
}

fn traceparent(flags: &str) -> String {
    format!("traceparent: 00-{TRACE}-{PARENT}-{flags}")
}

/// Ends the server gracefully, which sends all spans. Returns the spans of requests of clients, and those of requests to origins.
fn end(mut server: Server, collector: &Collector) -> (Vec<Span>, Vec<Span>) {
    stop(&mut server);
    let of_kind = |kind| collector.spans().into_iter().filter(|span| span.kind == kind).collect();
    (of_kind(2), of_kind(3))
}

fn stop(server: &mut Server) {
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_mins(1), "not {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_miss_has_a_child_that_the_origin_knows_and_a_hit_has_none() {
    let (collector, origin) = (Collector::new(), Origin::counting("Cache-Control: max-age=60"));
    let server = server(&origin, "", &all_to(&collector));
    // A miss, a hit of the fast path, and, by `TE`, one of the full path.
    for fields in [&[][..], &[], &["TE: trailers"]] {
        assert_eq!(server.ask("GET", "/page?q=secret", fields).status, 200);
    }
    let (served, asked) = end(server, &collector);
    assert_eq!((served.len(), asked.len()), (3, 1), "{served:?} {asked:?}");
    let verdicts: Vec<_> = served.iter().map(|span| span.get("eyewall.cache.verdict")).collect();
    assert_eq!(verdicts, ["miss", "hit", "hit"]);
    for span in &served {
        assert_eq!((span.name.as_str(), span.is_error, span.parent.as_str()), ("GET test", false, ""), "{span:?}");
        for (name, value) in [
            ("http.request.method", "GET"),
            ("url.scheme", "http"),
            ("url.path", "/page"),
            ("server.address", "test"),
            ("client.address", "127.0.0.1"),
            ("network.protocol.version", "1.1"),
            ("http.response.status_code", "200"),
            ("eyewall.site", "test"),
        ] {
            assert_eq!(span.get(name), value, "{name} of {span:?}");
        }
    }
    let (miss, child) = (&served[0], &asked[0]);
    assert_eq!((&child.trace, &child.parent), (&miss.trace, &miss.id));
    assert_eq!(origin.asked()[0].field("traceparent"), format!("00-{}-{}-03", child.trace, child.id));
    let url = format!("{}/page", origin.url());
    for (name, value) in [
        ("http.request.method", "GET"),
        ("url.full", url.as_str()),
        ("server.address", "127.0.0.1"),
        ("server.port", &origin.address.port().to_string()),
        ("http.response.status_code", "200"),
        ("network.protocol.version", "1.1"),
    ] {
        assert_eq!(child.get(name), value, "{name} of {child:?}");
    }
    let traces: std::collections::BTreeSet<_> = served.iter().map(|span| &span.trace).collect();
    assert_eq!(traces.len(), 3, "each request has a trace of its own");
    collector.posted(|posted| {
        assert_eq!((posted[0].head.method.as_str(), posted[0].head.target.as_str()), ("POST", "/v1/traces"));
        assert_eq!(posted[0].head.field("content-type"), "application/x-protobuf");
        assert_eq!(posted[0].resource["service.name"], "eyewall");
    });
}

#[test]
fn a_refresh_in_the_background_is_a_part_of_the_request_that_began_it() {
    let (collector, origin) = (Collector::new(), Origin::counting("Cache-Control: max-age=60\r\nAge: 90"));
    let site = "[site.cache]\nstale_while_revalidate = \"1h\"\n";
    let text = configuration(&origin, "", &all_to(&collector)) + site;
    let server = Server::configured(&text);
    assert_eq!(server.get("/").text(), "1");
    assert_eq!(server.get("/").text(), "1");
    wait_until("asked again", || origin.asked().len() == 2);
    let (served, asked) = end(server, &collector);
    let verdicts: Vec<_> = served.iter().map(|span| span.get("eyewall.cache.verdict")).collect();
    assert_eq!((verdicts, asked.len()), (vec!["miss", "stale"], 2));
    let of_stale = asked.iter().find(|span| span.parent == served[1].id).unwrap();
    let seen = format!("00-{}-{}-03", served[1].trace, of_stale.id);
    assert_eq!(origin.asked()[1].field("traceparent"), seen);
}

#[test]
fn a_trusted_proxy_decides_and_is_the_parent() {
    let origin = Origin::counting("Cache-Control: no-store");
    for share in ["0", "1"] {
        let collector = Collector::new();
        let tracing = format!("otlp = \"{}\"\notlp_sample = {share}", collector.url());
        let server = server(&origin, "trusted_proxies = [\"127.0.0.1\"]", &tracing);
        for (path, flags) in [("/yes", "01"), ("/no", "00")] {
            server.ask("GET", path, &[&traceparent(flags), "tracestate: a=1", "X-Forwarded-For: 192.0.2.7"]);
        }
        let (served, asked) = end(server, &collector);
        assert_eq!((served.len(), asked.len()), (1, 1), "{served:?}");
        let (span, child) = (&served[0], &asked[0]);
        assert_eq!((span.trace.as_str(), span.parent.as_str(), span.state.as_str()), (TRACE, PARENT, "a=1"));
        assert_eq!((span.get("url.path"), span.get("client.address")), ("/yes", "192.0.2.7"));
        assert_eq!((child.trace.as_str(), &child.parent), (TRACE, &span.id));
    }
}

#[test]
fn the_flag_of_another_client_decides_nothing() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    for (share, flags) in [("0", "01"), ("1", "00")] {
        let collector = Collector::new();
        let server = server(&origin, "", &format!("otlp = \"{}\"\notlp_sample = {share}", collector.url()));
        // A miss and a hit.
        for _ in 0..2 {
            server.ask("GET", &format!("/{share}"), &[&traceparent(flags)]);
        }
        let (served, _) = end(server, &collector);
        assert_eq!(served.len(), if share == "1" { 2 } else { 0 });
        assert!(served.iter().all(|span| span.trace == TRACE && span.parent == PARENT), "{served:?}");
    }
}

#[test]
fn a_share_of_none_begins_no_trace() {
    let (collector, origin) = (Collector::new(), Origin::counting("Cache-Control: max-age=60"));
    let server = server(&origin, "", &format!("otlp = \"{}\"\notlp_sample = 0", collector.url()));
    for _ in 0..2 {
        server.get("/");
    }
    assert_eq!(origin.asked()[0].field("traceparent"), "");
    let (served, asked) = end(server, &collector);
    assert!(served.is_empty() && asked.is_empty() && collector.posted(<[_]>::is_empty));
}

#[test]
fn failures_are_errors_and_say_which() {
    let (collector, failing) = (Collector::new(), Origin::answering(|_| (503, String::new(), Vec::new())));
    let text = configuration(&failing, "", &all_to(&collector));
    let dead =
        format!("[[site]]\nhosts = [\"dead\"]\norigins = [\"http://{}\"]\norigin = {{ retries = 0 }}\n", nobody());
    let server = Server::configured(&(text + &dead));
    assert_eq!(server.get("/failing").status, 503);
    let mut stream = connect(server.address);
    stream.write_all(b"GET /dead HTTP/1.1\r\nHost: dead\r\nConnection: close\r\n\r\n").unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    let (served, asked) = end(server, &collector);
    let told = |spans: &[Span], path: &str| {
        let span = spans.iter().find(|span| (span.get("url.path").to_owned() + span.get("url.full")).ends_with(path));
        let span = span.unwrap();
        (span.is_error, span.get("error.type").to_owned(), span.get("http.response.status_code").to_owned())
    };
    let expected = |reason: &str, status: &str| (true, reason.to_owned(), status.to_owned());
    assert_eq!(told(&served, "/failing"), expected("503", "503"));
    assert_eq!(told(&asked, "/failing"), expected("503", "503"));
    assert_eq!(told(&served, "/dead"), expected("502", "502"));
    assert_eq!(told(&asked, "/dead"), expected("origin-unreachable", ""));
    let detail =
        served.iter().find(|span| span.name == "GET dead").map(|span| span.get("eyewall.cache.detail").to_owned());
    assert_eq!(detail.as_deref(), Some("origin-unreachable"));
}

#[test]
fn no_span_has_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let fields = folder.path().join("fields");
    token_file(&fields, "Authorization: Bearer of-the-collector\n");
    let (collector, origin) = (Collector::new(), Origin::counting("Set-Cookie: id=topsecret"));
    let tracing = format!("{}\notlp_headers_file = \"{}\"", all_to(&collector), fields.display());
    let server = server(&origin, "", &tracing);
    let mut stream = connect(server.address);
    let secrets = "Cookie: id=topsecret\r\nAuthorization: Basic topsecret\r\nReferer: http://a/?topsecret";
    let head = format!("GET http://user:topsecret@test/path?topsecret HTTP/1.1\r\nHost: test\r\n{secrets}\r\n");
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    server.ask("POST", "/form?topsecret", &["Content-Length: 0", "User-Agent: topsecret"]);
    let (served, _) = end(server, &collector);
    assert_eq!(served.len(), 2, "{served:?}");
    collector.posted(|posted| {
        let texts: Vec<_> = posted.iter().map(|one| String::from_utf8_lossy(&one.body)).collect();
        assert!(texts.iter().any(|text| text.contains("/form")), "{texts:?}");
        for (one, text) in posted.iter().zip(&texts) {
            assert!(!text.contains("topsecret") && !text.contains("of-the-coll"), "{text}");
            assert_eq!(one.head.field("authorization"), "Bearer of-the-collector");
        }
    });
}

#[test]
fn a_collector_that_is_busy_gets_the_spans_later() {
    // A wait of nothing, so that the usual one remains.
    let collector = Collector::answering(|number| match number {
        1 => (503, "Retry-After: 0", b""),
        2 => (429, "", b""),
        _ => (200, "", b""),
    });
    let (origin, socket) = (Origin::counting("Cache-Control: max-age=60"), Socket::new());
    let server = server(&origin, &socket.table(), &all_to(&collector));
    server.get("/");
    collector.until_posted(3);
    let (first, third) = collector.posted(|posted| (posted[0].body.clone(), posted[2].body.clone()));
    assert_eq!(first, third, "the same message");
    let page = Scrape::until(&socket, |scrape| scrape.sum("eyewall_spans_exported_total", &[]) == 2);
    assert_eq!(page.sum("eyewall_spans_lost_total", &[]), 0);
    assert_eq!(end(server, &collector).0.len(), 1);
}

#[test]
fn spans_that_a_collector_refuses_are_counted() {
    let collector = Collector::answering(|number| match number {
        1 => (400, "", b"no"),
        // A partial success that rejects two spans.
        _ => (200, "", b"\x0a\x02\x08\x02"),
    });
    let (origin, socket) = (Origin::counting("Cache-Control: max-age=60"), Socket::new());
    let server = server(&origin, &socket.table(), &all_to(&collector));
    server.get("/");
    Scrape::until(&socket, |scrape| scrape.sum("eyewall_spans_lost_total", &[]) == 2);
    for _ in 0..3 {
        server.get("/");
    }
    let counts = |scrape: &Scrape| {
        ["eyewall_spans_exported_total", "eyewall_spans_lost_total"].map(|name| scrape.sum(name, &[]))
    };
    Scrape::until(&socket, |scrape| counts(scrape)[0] + counts(scrape)[1] >= 5);
    let [exported, lost] = counts(&Scrape::of(&socket));
    assert!(lost >= 4, "{exported} {lost}");
}

#[test]
fn a_collector_that_is_down_is_logged_and_delays_no_end() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eyewall.toml");
    let text = configuration(
        &origin,
        "listen = [\"127.0.0.1:0\"]",
        &format!("otlp = \"http://{}\"\notlp_sample = 1", nobody()),
    );
    std::fs::write(&file, format!("[cache]\nsize = \"8M\"\n{text}")).unwrap();
    let mut server = Server::spawn(eyewall().args(["serve", "--config"]).arg(&file).stderr(Stdio::piped()));
    for _ in 0..3 {
        assert_eq!(server.get("/").status, 200);
    }
    stop(&mut server);
    let mut told = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(told.matches("can't send spans to the collector").count(), 1, "{told}");
}

#[test]
fn a_collector_that_hangs_delays_no_request_and_costs_spans() {
    let (collector, release) = hanging();
    let (origin, socket) = (Origin::counting("Cache-Control: max-age=60"), Socket::new());
    let mut server = server(&origin, &socket.table(), &format!("otlp = \"{}\"\notlp_sample = 1", collector.url()));
    server.get_until("/", crate::common::client::Reply::is_hit);
    let mut client = connect(server.address);
    // More than the batch on its way and the queue can hold.
    let (requests, each) = (30, 300);
    for _ in 0..requests {
        client.write_all("GET / HTTP/1.1\r\nHost: test\r\n\r\n".repeat(each).as_bytes()).unwrap();
        let mut answered = 0;
        let mut bytes = Vec::new();
        while answered < each {
            let mut piece = [0; 16 << 10];
            let count = client.read(&mut piece).unwrap();
            assert!(count > 0, "the server has closed");
            bytes.extend_from_slice(&piece[..count]);
            answered = bytes.windows(4).filter(|window| window == b"\r\n\r\n").count();
        }
        assert_eq!(answered, each);
    }
    Scrape::until(&socket, |scrape| scrape.sum("eyewall_spans_lost_total", &[]) > 0);
    assert_eq!(Scrape::of(&socket).sum("eyewall_spans_exported_total", &[]), 0);
    stop(&mut server);
    drop(release);
}

#[test]
fn a_reload_takes_another_collector_and_another_share() {
    let (first, second) = (Collector::new(), Collector::new());
    let (origin, socket) = (Origin::counting("Cache-Control: max-age=60"), Socket::new());
    let server = server(&origin, &socket.table(), &all_to(&first));
    server.get("/first");
    server.change(|text| text.replace(&first.url(), &second.url()));
    socket.reload();
    server.get("/second");
    server.change(|text| text.replace("otlp_sample = 1", "otlp_sample = 0"));
    socket.reload();
    server.get("/third");
    let (served, _) = end(server, &second);
    let paths: Vec<_> = served.iter().map(|span| span.get("url.path")).collect();
    assert_eq!(paths, ["/second"]);
    let paths: Vec<_> =
        first.spans().iter().filter(|span| span.kind == 2).map(|span| span.get("url.path").to_owned()).collect();
    assert_eq!(paths, ["/first"]);
}

#[test]
fn spans_leave_a_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    let fields = folder.path().join("fields");
    token_file(&fields, "X-Scope-OrgID: shop\n");
    let (collector, origin) = (Collector::new(), Origin::counting("Cache-Control: max-age=60"));
    // The resolver reads its files inside.
    let url = collector.url().replace("127.0.0.1", "localhost");
    let tracing = format!("otlp = \"{url}/\"\notlp_sample = 1\notlp_headers_file = \"{}\"", fields.display());
    let socket = Socket::new();
    let server = server(&origin, &format!("sandbox = \"on\"\n{}", socket.table()), &tracing);
    server.get("/one");
    token_file(&fields, "X-Scope-OrgID: other\n");
    socket.reload();
    server.get("/two");
    assert_eq!(end(server, &collector).0.len(), 2);
    let told = collector
        .posted(|posted| posted.iter().map(|one| one.head.field("x-scope-orgid").to_owned()).collect::<Vec<_>>());
    assert!(told.contains(&"shop".to_owned()) && told.contains(&"other".to_owned()), "{told:?}");
}

#[test]
fn wrong_settings_are_reported_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let (file, fields) = (folder.path().join("eyewall.toml"), folder.path().join("fields"));
    token_file(&fields, "top secret\n");
    let with_fields = format!("otlp = \"http://127.0.0.1:1\"\notlp_headers_file = \"{}\"", fields.display());
    for (tracing, code, words) in [
        ("otlp = \"http://127.0.0.1:1/?key=x\"", 2, "can't have a query"),
        ("otlp_sample = 0.5", 2, "has no effect without `otlp`"),
        (with_fields.as_str(), 3, "line 1 is no field"),
    ] {
        let server = format!("[server]\nlisten = [\"127.0.0.1:0\"]\n[server.tracing]\n{tracing}\n");
        std::fs::write(&file, format!("{server}[[site]]\nroot = {:?}\n", folder.path())).unwrap();
        let ended = run(eyewall().args(["serve", "--config"]).arg(&file), b"");
        assert_eq!((ended.code, ended.text()), (code, ""), "{}", ended.stderr);
        assert!(ended.stderr.contains(words) && !ended.stderr.contains("top secret"), "{}", ended.stderr);
    }
}
