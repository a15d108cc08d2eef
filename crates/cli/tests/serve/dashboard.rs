//! The dashboard: its events say what clients counted, its page takes nothing from elsewhere, and no other site can use it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::admin::{Socket, ask_at, json as json_of, token_file};
use crate::common::client::{Reply, connect, parse};
use crate::common::origin::{Asked, Origin, nobody};
use crate::common::server::Server;
use crate::common::upgrading::Upgrading;

/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_mins(1);
const VERDICTS: [&str; 7] = ["hit", "stale", "revalidated", "miss", "pass", "error", "none"];

/// A stream of events.
struct Events {
    lines: BufReader<Box<dyn Read + Send>>,
}

impl Events {
    fn of(socket: &Socket) -> Self {
        Self::on(UnixStream::connect(socket.path()).unwrap(), &[])
    }

    fn at(address: SocketAddr, fields: &[&str]) -> Self {
        Self::on(TcpStream::connect(address).unwrap(), fields)
    }

    fn on(mut stream: impl Read + std::io::Write + Send + 'static, fields: &[&str]) -> Self {
        let fields = [&["Host: localhost"], fields].concat().join("\r\n");
        write!(stream, "GET /dashboard/events HTTP/1.1\r\n{fields}\r\n\r\n").unwrap();
        let mut lines = BufReader::new(Box::new(stream) as Box<dyn Read + Send>);
        let (mut line, mut head) = (String::new(), String::new());
        while line != "\r\n" {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "{head}");
            head.push_str(&line);
        }
        assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("content-type: text/event-stream"), "{head}");
        Self { lines }
    }

    /// Whether the server lets one more look.
    fn answers(socket: &Socket) -> bool {
        let mut stream = UnixStream::connect(socket.path()).unwrap();
        stream.write_all(b"GET /dashboard/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        status.ends_with(b"200")
    }

    /// The next event; `None` at the end.
    fn next(&mut self) -> Option<(String, Value)> {
        let (mut line, mut name) = (String::new(), String::new());
        loop {
            line.clear();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(told) = line.strip_prefix("event: ") {
                told.trim_end().clone_into(&mut name);
            }
            // Each piece of the body has whole events, between the lengths of the pieces.
            if let Some(data) = line.strip_prefix("data: ") {
                return Some((name, serde_json::from_str(data).unwrap()));
            }
        }
    }

    /// Reads events of this name until one is as wanted.
    fn until(&mut self, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let (found, data) = self.next().expect("the stream goes on");
            if found == name && is_so(&data) {
                return data;
            }
            assert!(start.elapsed() < PATIENCE, "still {data}");
        }
    }
}

fn answer(asked: &Asked) -> (u16, String, Vec<u8>) {
    let fields = match asked.target.as_str() {
        "/stale" => "Cache-Control: max-age=0, stale-while-revalidate=1000",
        "/checked" if asked.field("if-none-match") == "\"one\"" => {
            return (304, "Cache-Control: max-age=0\r\nETag: \"one\"".to_owned(), Vec::new());
        }
        "/checked" => "Cache-Control: max-age=0\r\nETag: \"one\"",
        "/broken" => return (500, String::new(), b"broken".to_vec()),
        target if target.starts_with("/page") => "Cache-Control: max-age=600\r\nXkey: page",
        _ => "Cache-Control: no-store",
    };
    (200, fields.to_owned(), vec![b'x'; 1000])
}

/// What a client has counted of a site.
#[derive(Default)]
struct Counted {
    verdicts: BTreeMap<&'static str, u64>,
    bytes: u64,
    errors: u64,
}

impl Counted {
    fn add(&mut self, verdict: &'static str, reply: &Reply) {
        *self.verdicts.entry(verdict).or_default() += 1;
        self.bytes += reply.body.len() as u64;
        self.errors += u64::from(reply.status >= 500);
    }

    fn by_verdict(&self) -> Vec<u64> {
        VERDICTS.map(|verdict| self.verdicts.get(verdict).copied().unwrap_or_default()).to_vec()
    }

    fn requests(&self) -> u64 {
        self.verdicts.values().sum()
    }
}

fn ask_of(server: &Server, host: &str, target: &str) -> Reply {
    let mut client = connect(server.address);
    write!(client, "GET {target} HTTP/1.1\r\nHost: {host}\r\nX-A: b\r\nConnection: close\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).unwrap();
    parse(&bytes, false)
}

#[test]
fn the_events_have_what_clients_counted() {
    let (socket, one, other) = (Socket::new(), Origin::answering(answer), Origin::answering(answer));
    let dead = format!("http://{}", nobody());
    let site = |host: &str, origin: &str| format!("[[site]]\nhosts = [\"{host}\"]\norigins = [\"{origin}\"]\n");
    let sites = [site("one", &one.url()), site("two", &other.url()), site("dead", &dead)].concat();
    let server = Server::configured(&format!("{}{sites}", socket.table()));
    let mut events = Events::of(&socket);
    let mut counted: BTreeMap<&str, Counted> = BTreeMap::new();
    for round in 0..3 {
        for (host, target, first, then) in [
            ("one", "/page/1", "miss", "hit"),
            ("one", "/page/2", "miss", "hit"),
            ("one", "/private", "pass", "pass"),
            ("one", "/checked", "miss", "revalidated"),
            ("one", "/broken", "pass", "pass"),
            ("two", "/page/1", "miss", "hit"),
            ("two", "/private", "pass", "pass"),
            ("dead", "/page", "error", "error"),
            ("unknown", "/", "none", "none"),
        ] {
            let reply = ask_of(&server, host, target);
            let verdict = if round == 0 { first } else { then };
            counted.entry(if host == "unknown" { "-" } else { host }).or_default().add(verdict, &reply);
        }
    }
    let all: u64 = counted.values().map(Counted::requests).sum();
    let sum = |value: &Value| value.as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum::<u64>();
    let bytes: u64 = counted.values().map(|counted| counted.bytes).sum();
    let bytes_of = |sample: &Value| -> u64 {
        sample["sites"].as_array().unwrap().iter().map(|site| site["bytes"].as_u64().unwrap()).sum()
    };
    let sample = events.until("sample", |sample| sum(&sample["verdicts"]) >= all && bytes_of(sample) >= bytes);
    assert_eq!(sum(&sample["verdicts"]), all);
    for (name, counted) in &counted {
        let site = sample["sites"].as_array().unwrap().iter().find(|site| site["name"] == *name).unwrap();
        assert_eq!(site["verdicts"], json!(counted.by_verdict()), "{name}");
        let found = (&site["requests"], &site["bytes"], &site["errors"]);
        assert_eq!(found, (&json!(counted.requests()), &json!(counted.bytes), &json!(counted.errors)), "{name}");
    }
    let asked = (one.asked().len() + other.asked().len()) as u64;
    let start = &sample["windows"]["start"];
    let requests = all - counted["-"].requests();
    // Each request to the dead site was one to its origin.
    assert_eq!(start["requests"], requests);
    assert_eq!(start["spared_requests"], requests - asked - counted["dead"].requests());
    assert_eq!(start["verdicts"], sample["verdicts"]);
    assert_eq!(sample["windows"]["hour"]["verdicts"], sample["verdicts"], "the server is younger");
    assert_eq!(start["hits"]["count"], counted["one"].verdicts["hit"] + counted["two"].verdicts["hit"]);
    assert_eq!(start["origins"]["count"], asked);
    let of_two = sample["origins"].as_array().unwrap().iter().find(|origin| origin["site"] == "two").unwrap();
    assert_eq!(of_two["requests"], other.asked().len());
    let of_dead = sample["origins"].as_array().unwrap().iter().find(|origin| origin["site"] == "dead").unwrap();
    let [failed, retries] =
        [&of_dead["errors"]["unreachable"], &of_dead["retries"]].map(|count| count.as_u64().unwrap());
    assert_eq!(failed - retries, 3, "{of_dead}");
    assert_eq!((&sample["volume"]["entries"], &sample["connections"][1]), (&json!(4), &json!(0)));
    let missed = events.until("sample", |sample| sample["missed"][0]["count"] == 3)["missed"].clone();
    let missed: BTreeMap<&str, u64> = missed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["key"].as_str().unwrap(), one["count"].as_u64().unwrap()))
        .collect();
    assert_eq!((missed["http://one/private"], missed["http://dead/page"], missed["http://two/page/1"]), (3, 3, 1));
}

#[test]
fn the_page_is_whole_and_takes_nothing_from_elsewhere() {
    let (socket, origin) = (Socket::new(), Origin::answering(answer));
    let server = Server::configured(&format!("{}[[site]]\norigins = [\"{}\"]\n", socket.table(), origin.url()));
    server.get("/page");
    let get = |target: &str| socket.ask("GET", target, &[], "");
    let start = get("/");
    assert_eq!((start.status, start.field("location")), (303, "dashboard"));
    let page = get("/dashboard");
    let policy = page.field("content-security-policy").to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"), "{policy}");
    assert_eq!((page.field("x-frame-options"), page.field("cache-control")), ("DENY", "no-store"));
    let text = page.text();
    let attributes = text.split('"').collect::<Vec<_>>();
    let files = attributes.windows(2).filter(|pair| pair[0].ends_with("src=") || pair[0].ends_with("href="));
    let files: Vec<&str> = files.map(|pair| pair[1]).filter(|file| !file.starts_with('#')).collect();
    assert!(files.len() >= 4 && files.iter().all(|file| file.starts_with("dashboard/")), "{files:?}");
    assert!(!text.contains("<style") && !text.contains(" style=") && !text.contains("onclick"), "{text}");
    for file in
        files.iter().chain(&["dashboard/words.js", "dashboard/charts.js", "dashboard/advice.js", "dashboard/lookup.js"])
    {
        let found = get(&format!("/{file}"));
        assert_eq!((found.status, found.field("x-content-type-options")), (200, "nosniff"), "{file}");
        let elsewhere = found.text().replace("http://www.w3.org/2000/svg", "").replace("/^http:\\/\\//", "");
        assert!(!elsewhere.contains("://"), "{file} names another host");
    }
    assert!(text.contains("<td>1<td>0.0 %") && text.contains("<th>*<td>1"), "the table has the figures: {text}");
    let head = socket.ask("HEAD", "/dashboard", &[], "");
    assert_eq!((head.status, head.body.len()), (200, 0));
    for (method, target) in [("POST", "/dashboard"), ("POST", "/"), ("PUT", "/dashboard/events")] {
        assert_eq!(socket.ask(method, target, &[], "").status, 405, "{method} {target}");
    }
}

#[test]
fn without_script_the_page_has_the_advice_as_tables() {
    let (socket, origin) = (Socket::new(), Origin::answering(answer));
    let server = Server::configured(&format!("{}[[site]]\norigins = [\"{}\"]\n", socket.table(), origin.url()));
    let page = || socket.ask("GET", "/dashboard", &[], "").text().to_owned();
    // The advice is made after the first look, and again when it is old.
    let until = |is_so: &dyn Fn(&str) -> bool| {
        let start = Instant::now();
        loop {
            let page = page();
            if is_so(&page) {
                return page;
            }
            assert!(start.elapsed() < PATIENCE, "still {page}");
        }
    };
    until(&|page| page.contains("no requests yet"));
    for _ in 0..9 {
        server.get("/page/a&b");
        server.get("/private");
    }
    let page = until(&|page| page.contains("<caption>Hits by size, from a sample of 18 requests"));
    for part in [
        "<tr><th>8 MiB (now)<td>44.4 %",
        "<tr><th>the origin forbids to store it<td>no-store<td>*<td>50.0 %",
        "<caption>What would help",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(page.contains("/page/a&amp;b") && !page.contains("a&b"), "{page}");
}

#[test]
fn a_page_of_another_site_sees_and_changes_nothing() {
    let (socket, origin) = (Socket::new(), Origin::answering(answer));
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    token_file(&token, "secret\n");
    let admin = format!("{}token_file = \"{}\"\nhosts = [\"cache.example\"]\n", socket.table(), token.display());
    let server = Server::configured(&format!("{admin}[[site]]\nhosts = [\"one\"]\norigins = [\"{}\"]\n", origin.url()));
    server.get_until("http://one/page", Reply::is_hit);
    let purge = r#"{"url": "http://one/page"}"#;
    let bearer = "Authorization: Bearer secret";
    let own = "Origin: http://localhost";
    for (fields, status) in [
        // A form of another site, of a page in a frame without an origin, and a script there that may not read the answer.
        (&["Origin: http://evil.example", "Content-Type: text/plain"][..], 403),
        (&["Origin: null", "Content-Type: application/x-www-form-urlencoded"], 403),
        (&["Sec-Fetch-Site: cross-site", "Content-Type: text/plain"], 403),
        (&["Sec-Fetch-Site: same-site"], 403),
        (&["Origin: http://localhost:81"], 403),
        (&["Origin: http://evil.example", bearer], 403),
        // This server's own page, without a token and with a wrong one.
        (&[own, "Sec-Fetch-Site: same-origin"], 401),
        (&["Sec-Fetch-Site: same-origin"], 401),
        (&[own, "Authorization: Bearer wrong"], 401),
        // Another name for this address.
        (&["Host: evil.example"], 400),
    ] {
        let reply = socket.ask("POST", "/purge", fields, purge);
        assert_eq!(reply.status, status, "{fields:?}: {}", reply.text());
    }
    let named_with = |more: &str, host: &str, method: &str, target: &str| {
        let mut stream = UnixStream::connect(socket.path()).unwrap();
        write!(
            stream,
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\n{more}Content-Length: {}\r\nConnection: close\r\n\r\n{purge}",
            purge.len()
        )
        .unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        parse(&bytes, false).status
    };
    let named = |host: &str, method: &str, target: &str| named_with("", host, method, target);
    // A page of another site doesn't know the token.
    assert_eq!(named_with(&format!("{bearer}\r\n"), "cache.internal", "GET", "/status"), 200);
    for target in ["/dashboard", "/dashboard/events", "/status", "/metrics"] {
        assert_eq!(named("evil.example:80", "GET", target), 421, "{target}");
        assert_eq!(
            socket.ask("GET", target, &["Origin: http://evil.example"], "").status == 403,
            target != "/dashboard"
        );
    }
    assert_eq!(named("evil.example", "POST", "/purge"), 421);
    assert_eq!(named("evil.example@localhost", "POST", "/purge"), 400);
    for host in ["localhost:8080", "my.localhost", "127.0.0.1", "[::1]:80", "CACHE.example"] {
        assert_eq!(named(host, "GET", "/status"), 200, "{host}");
    }
    assert!(server.get("http://one/page").is_hit(), "nothing of it was purged");
    // What the page itself does, and what programs do.
    let mut events = Events::of(&socket);
    let preview = r#"{"tag": "page", "preview": true}"#;
    let report = json_of(&socket.ask("POST", "/purge", &[own, bearer], preview));
    assert_eq!((&report["purged"][0]["result"], &report["purged"][0]["entries"]), (&json!("previewed"), &json!(1)));
    assert!(server.get("http://one/page").is_hit(), "a preview purges nothing");
    assert_eq!(socket.ask("POST", "/purge", &[own, "Sec-Fetch-Site: same-origin", bearer], purge).status, 200);
    let news = events.until("purges", |news| news[0]["number"] == 1);
    assert_eq!((&news[0]["name"], &news[0]["result"]), (&json!("http://one/page"), &json!("found")));
    assert!(!server.get("http://one/page").is_hit());
    assert_eq!(socket.purge(r#"{"everything": true}"#).status, 200);
    events.until("purges", |news| news[0]["what"] == "everything" && news[0]["number"] == 2);
}

#[test]
fn at_an_address_the_page_shows_nothing_without_the_token_unless_the_configuration_says_so() {
    let origin = Origin::answering(answer);
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    token_file(&token, "secret\n");
    let site = format!("[[site]]\norigins = [\"{}\"]\n", origin.url());
    for may_read in [false, true] {
        let server = Server::configured(&format!(
            "[server.admin]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"{}\"\nread_without_token = {may_read}\n{site}",
            token.display()
        ));
        let address =
            server.announced.lines().find_map(|line| line.strip_prefix("admin        http://")?.strip_suffix('/'));
        let address = address.unwrap().parse().unwrap();
        let own = "Origin: http://localhost";
        let page = ask_at(address, "GET", "/dashboard", &[], "");
        assert_eq!((page.status, page.text().contains("<caption>Sites")), (200, may_read));
        assert_eq!(ask_at(address, "GET", "/dashboard/page.js", &[], "").status, 200);
        let question = r#"{"url": "http://one/page"}"#;
        let denied = if may_read { 200 } else { 401 };
        assert_eq!(ask_at(address, "GET", "/status", &[], "").status, denied);
        assert_eq!(ask_at(address, "POST", "/explain", &[own], question).status, denied);
        assert_eq!(ask_at(address, "GET", "/requests", &[], "").status, 401, "its lines name clients");
        for target in ["/purge", "/reload", "/upgrade"] {
            assert_eq!(ask_at(address, "POST", target, &[own], question).status, 401, "{target}");
        }
        let fields: &[&str] = if may_read { &[] } else { &["Authorization: Bearer secret"] };
        if !may_read {
            assert_eq!(ask_at(address, "GET", "/dashboard/events", &[], "").status, 401);
        }
        Events::at(address, fields).until("sample", |sample| sample["uptime_seconds"].is_u64());
    }
}

#[test]
fn viewers_are_bounded_and_streams_end_with_the_server() {
    const VIEWERS_MAX: usize = 16;
    let (socket, origin) = (Socket::new(), Origin::answering(answer));
    let mut server = Server::configured(&format!("{}[[site]]\norigins = [\"{}\"]\n", socket.table(), origin.url()));
    let mut all: Vec<Events> = (0..VIEWERS_MAX).map(|_| Events::of(&socket)).collect();
    let refused = socket.ask("GET", "/dashboard/events", &[], "");
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(socket.ask("GET", "/status", &[], "").status, 200, "others have access");
    for events in &mut all {
        let (name, _) = events.next().unwrap();
        assert_eq!(name, "history");
    }
    drop(all.split_off(1));
    let mut last = all.pop().unwrap();
    // The server notices that they are gone when it answers the next one, or tells them something.
    let start = Instant::now();
    while !Events::answers(&socket) {
        assert!(start.elapsed() < PATIENCE);
    }
    let ended = std::thread::spawn(move || while last.next().is_some() {});
    kill_process(Pid::from_child(&server.child), Signal::TERM).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    ended.join().unwrap();
}

#[test]
fn an_upgrade_ends_the_stream_and_the_next_process_has_another() {
    let origin = Origin::answering(answer);
    let mut server = Upgrading::start(&format!("[[site]]\norigins = [\"{}\"]\n", origin.url()));
    let mut events = Events::of(&server.socket);
    let before = events.until("sample", |_| true)["process"].clone();
    assert_eq!(json!(server.upgrade()), before);
    while events.next().is_some() {}
    let sample = Events::of(&server.socket).until("sample", |_| true);
    assert_eq!(sample["process"], server.process());
}
