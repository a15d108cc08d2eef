//! The requests of fixtures/hostile-requests.toml, which also says what each may and may not do.

use std::io::{Read as _, Write as _};

use serde::Deserialize;

use super::way::{Reached, Way};
use super::{DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, literal};
use crate::common::http2;
use crate::common::origin::{Origin, respond};
use crate::common::server::Site;

const CORPUS: &str = include_str!("../../../../../fixtures/hostile-requests.toml");
const GOAWAY: u8 = 7;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    server: Kind,
    http1: Option<String>,
    http2: Option<Vec<(String, String)>>,
    #[serde(default)]
    body: String,
    expect: Expected,
    never: Option<String>,
    #[serde(default = "root")]
    after: String,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Origin,
    Files,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expected {
    Refused,
    Answered,
    Any,
}

/// What a server said, and whether that was a response of 2xx.
struct Said {
    is_answered: bool,
    bytes: Vec<u8>,
}

fn root() -> String {
    "/".to_owned()
}

/// An origin that repeats what a careless application would repeat.
fn careless() -> Origin {
    Origin::raw(|asked, stream| {
        let length = asked.field("content-length").parse().unwrap_or(0);
        let mut content = vec![0; length];
        let _ = stream.read_exact(&mut content);
        if asked.field("transfer-encoding") == "chunked" {
            let mut byte = [0];
            while !content.ends_with(b"0\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                content.extend(byte);
            }
        }
        let repeated = [
            "host",
            "x-forwarded-host",
            "x-forwarded-proto",
            "x-forwarded-for",
            "forwarded",
            "x_forwarded_host",
            "x_forwarded_for",
            "x-real-ip",
            "cf-connecting-ip",
            "proxy",
            "accept-language",
        ];
        let mut body = repeated.map(|name| format!("{name}: {}\n", asked.field(name))).concat();
        body += &String::from_utf8_lossy(&content);
        if asked.field("cookie").contains("session") {
            body += "secret";
            return respond(stream, 200, "Cache-Control: private, max-age=600", body.len(), body.as_bytes());
        }
        respond(stream, 200, "Cache-Control: max-age=600\r\nVary: Accept-Language", body.len(), body.as_bytes());
    })
}

fn by_http1(server: &Reached, request: &str) -> Said {
    let mut stream = server.connect();
    let request = match server.way {
        Way::Clear => request.to_owned(),
        Way::Tls => request.replace(" http://", " https://"),
    };
    let _ = stream.write_all(request.as_bytes());
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    Said { is_answered: bytes.starts_with(b"HTTP/1.1 2"), bytes }
}

fn by_http2(server: &Reached, fields: &[(String, String)], body: &str) -> Said {
    let mut stream = server.connect_http2();
    let of_scheme = |(name, value): &(String, String)| match (name.as_str(), value.as_str(), server.way) {
        (":scheme", "http", Way::Tls) => literal(name, "https"),
        _ => literal(name, value),
    };
    let block: Vec<u8> = fields.iter().flat_map(of_scheme).collect();
    let end = if body.is_empty() { END_STREAM } else { 0 };
    let mut request = http2::frame(HEADERS, END_HEADERS | end, 1, &block);
    if !body.is_empty() {
        request.extend(http2::frame(DATA, END_STREAM, 1, body.as_bytes()));
    }
    let _ = stream.write_all(&request);
    let mut said = Said { is_answered: false, bytes: Vec::new() };
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).is_err() {
            return said;
        }
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        if stream.read_exact(&mut payload).is_err() {
            return said;
        }
        let (kind, flags, is_ours) = (head[3], head[4], head[5..] == [0, 0, 0, 1]);
        // 200 and 204 have numbers (RFC 7541, appendix A).
        said.is_answered |= kind == HEADERS && matches!(payload.first(), Some(0x88 | 0x89));
        said.bytes.extend(payload);
        let ends = matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0;
        if kind == GOAWAY || is_ours && (kind == RST_STREAM || ends) {
            return said;
        }
    }
}

fn has(bytes: &[u8], word: &str) -> bool {
    String::from_utf8_lossy(bytes).contains(word)
}

/// Sends a case to a server of its own, and returns what is wrong.
fn faults(case: &Case, way: Way, send: impl Fn(&Reached) -> Said) -> Vec<String> {
    let (origin, site) = (careless(), Site::new());
    for name in ["secret", "root/.secret"] {
        site.write(name, "secret");
    }
    site.write("root/index.html", "public");
    let source = match case.server {
        Kind::Origin => format!("origins = [\"{}\"]", origin.url()),
        Kind::Files => format!("root = '{}'", site.path().join("root").display()),
    };
    let server = Reached::new(way, "", &source);
    let said = send(&server);
    let mut faults = Vec::new();
    let asked = origin.asked();
    match case.expect {
        Expected::Refused if said.is_answered => faults.push("it is answered".to_owned()),
        Expected::Refused if !asked.is_empty() => faults.push(format!("the origin got {asked:?}")),
        Expected::Answered if !said.is_answered => faults.push("it is refused".to_owned()),
        _ => {}
    }
    if case.server == Kind::Files && has(&said.bytes, "secret") {
        faults.push("it reads the file".to_owned());
    }
    for _ in 0..2 {
        let reply = server.get(&case.after);
        for word in ["evil", "secret"] {
            if has(&reply.body, word) && !case.after.contains(word) {
                faults.push(format!("another client gets {:?}", String::from_utf8_lossy(&reply.body)));
            }
        }
    }
    let got: Vec<String> = origin.asked().iter().map(|asked| format!("{asked:?}")).collect();
    for word in ["smuggled"].into_iter().chain(case.never.as_deref()) {
        faults.extend(got.iter().filter(|asked| asked.contains(word)).map(|asked| format!("the origin got {asked}")));
    }
    faults
}

fn corpus() -> Vec<Case> {
    toml::from_str::<Corpus>(CORPUS).unwrap().case
}

/// Sends all cases that have this form, on this way.
#[track_caller]
fn assert_none<T>(way: Way, form: impl Fn(&Case) -> Option<&T>, send: impl Fn(&Reached, &Case, &T) -> Said) {
    let cases = corpus();
    let sent = cases.iter().filter_map(|case| Some((case, form(case)?)));
    let found = sent.map(|(case, form)| (&case.name, faults(case, way, |server| send(server, case, form))));
    let lines =
        found.filter(|(_, faults)| !faults.is_empty()).map(|(name, faults)| format!("{name}: {}", faults.join("; ")));
    let lines: Vec<String> = lines.collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}

#[track_caller]
fn assert_none_by_http1(way: Way) {
    assert_none(way, |case| case.http1.as_ref(), |server, _, request| by_http1(server, request));
}

#[track_caller]
fn assert_none_by_http2(way: Way) {
    assert_none(way, |case| case.http2.as_ref(), |server, case, fields| by_http2(server, fields, &case.body));
}

#[test]
fn over_http1() {
    assert_none_by_http1(Way::Clear);
}

#[test]
fn over_http1_and_tls() {
    assert_none_by_http1(Way::Tls);
}

#[test]
fn over_http2() {
    assert_none_by_http2(Way::Clear);
}

#[test]
fn over_http2_and_tls() {
    assert_none_by_http2(Way::Tls);
}

#[test]
fn each_case_has_a_form_and_a_name_of_its_own() {
    let cases = corpus();
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert!(cases.iter().all(|case| case.http1.is_some() || case.http2.is_some()));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len());
}
