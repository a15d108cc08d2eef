//! A line while it is made: from the head of a request until the last byte of its response has left.

use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use http::header::{HOST, REFERER, USER_AGENT};
use http::{HeaderName, Request, Response, StatusCode, Version};

use super::escape::{push_bare, push_json, push_quoted};
use super::queue::Queue;
use crate::config::settings::LogFormat;
use crate::key::Scheme;
use crate::serve::date;
use crate::serve::outcome::{Outcome, Verdict};
use crate::serve::simple_request::SimpleRequest;
use crate::serve::unix_client::shown;

/// The status of a request whose client closed before the response, as in nginx.
const CLIENT_GONE: u16 = 499;
/// Most lines have at most this many bytes.
const LINE_BYTES: usize = 384;

/// A line that is written when this is dropped, however the request ended.
pub(crate) struct Entry {
    queue: Arc<Queue>,
    format: LogFormat,
    started: Instant,
    /// The line so far, without status, bytes and times.
    text: Vec<u8>,
    /// The place of status and bytes in `text`.
    split: usize,
    status: u16,
    /// The time until the head of the response.
    first_byte: Option<Duration>,
    /// The time until the origin's heads, if a request went to it.
    origin: Option<Duration>,
    /// Bytes of the body that the system has taken. The task that sends them adds to it. It needs no ordering, because the last
    /// owner of the line writes it.
    sent: AtomicU64,
}

/// The fields of a line about a request.
pub(crate) struct LoggedRequest<'a> {
    method: &'a str,
    target: &'a str,
    version: &'static str,
    scheme: Scheme,
    host: Option<&'a [u8]>,
    referer: Option<&'a [u8]>,
    user_agent: Option<&'a [u8]>,
}

impl<'a> LoggedRequest<'a> {
    /// `scheme` is that of the client.
    pub(crate) fn of<B>(request: &'a Request<B>, scheme: Scheme) -> Self {
        let named = |name: HeaderName| request.headers().get(name).map(http::HeaderValue::as_bytes);
        let authority = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        Self {
            method: request.method().as_str(),
            target: target(request),
            version: version(request.version()),
            scheme,
            host: authority.or_else(|| named(HOST)),
            referer: named(REFERER),
            user_agent: named(USER_AGENT),
        }
    }

    pub(crate) fn of_simple(request: &'a SimpleRequest<'_>) -> Self {
        Self {
            method: "GET",
            target: request.target,
            version: version(Version::HTTP_11),
            scheme: request.scheme,
            host: Some(request.host),
            referer: request.field("referer"),
            user_agent: request.field("user-agent"),
        }
    }
}

impl Entry {
    pub(super) fn of_request(
        queue: Arc<Queue>,
        format: LogFormat,
        request: &LoggedRequest<'_>,
        client: IpAddr,
    ) -> Self {
        let mut text = Vec::with_capacity(LINE_BYTES);
        let LoggedRequest { method, target, version, scheme, host, referer, user_agent } = *request;
        // Never fails on a vector.
        let split = match format {
            LogFormat::Combined => {
                let _ = write!(text, "{} - - [", shown(client));
                date::push_ncsa(&mut text, SystemTime::now());
                let _ = write!(text, "] \"{method} ");
                push_quoted(&mut text, target.as_bytes());
                let _ = write!(text, " {version}\" ");
                let split = text.len();
                for value in [referer, user_agent, host] {
                    text.extend_from_slice(b" \"");
                    push_quoted(&mut text, value.unwrap_or(b"-"));
                    text.push(b'"');
                }
                split
            }
            LogFormat::Json => {
                text.extend_from_slice(b"{\"time\":\"");
                date::push_rfc3339(&mut text, SystemTime::now());
                let _ = write!(text, "\",\"client\":\"{}\",\"method\":\"{method}\",\"target\":", shown(client));
                push_json(&mut text, target.as_bytes());
                let _ = write!(text, ",\"protocol\":\"{version}\",\"scheme\":\"{}\"", scheme.as_str());
                for (name, value) in [("host", host), ("referer", referer), ("user_agent", user_agent)] {
                    let Some(value) = value else { continue };
                    let _ = write!(text, ",\"{name}\":");
                    push_json(&mut text, value);
                }
                text.len()
            }
        };
        Self::new(queue, format, text, split)
    }

    /// The line of bytes that were not a request.
    pub(super) fn of_refusal(queue: Arc<Queue>, format: LogFormat, client: IpAddr, status: StatusCode) -> Self {
        let mut text = Vec::with_capacity(LINE_BYTES);
        let split = match format {
            LogFormat::Combined => {
                let _ = write!(text, "{} - - [", shown(client));
                date::push_ncsa(&mut text, SystemTime::now());
                text.extend_from_slice(b"] \"-\" ");
                let split = text.len();
                text.extend_from_slice(b" \"-\" \"-\" \"-\"");
                split
            }
            LogFormat::Json => {
                text.extend_from_slice(b"{\"time\":\"");
                date::push_rfc3339(&mut text, SystemTime::now());
                let _ = write!(text, "\",\"client\":\"{}\",\"method\":\"-\",\"target\":\"-\"", shown(client));
                text.len()
            }
        };
        let mut entry = Self::new(queue, format, text, split);
        entry.status = status.as_u16();
        entry
    }

    fn new(queue: Arc<Queue>, format: LogFormat, text: Vec<u8>, split: usize) -> Self {
        let (status, first_byte, origin, sent) = (CLIENT_GONE, None, None, AtomicU64::new(0));
        Self { queue, format, started: Instant::now(), text, split, status, first_byte, origin, sent }
    }

    /// Notes when the request's head was whole.
    pub(super) fn begun(&mut self, started: Instant) {
        self.started = started;
    }

    /// Notes the head of the response, which is ready to be sent.
    pub(crate) fn answered<B>(&mut self, response: &Response<B>, outcome: &Outcome<'_>, origin: Option<Duration>) {
        self.status = response.status().as_u16();
        self.first_byte = Some(self.started.elapsed());
        self.origin = origin;
        self.push_cache_status(|line| push_outcome(line, outcome));
    }

    /// The same for a hit of the fast path.
    pub(crate) fn answered_by_hit(&mut self, status: StatusCode) {
        self.status = status.as_u16();
        self.first_byte = Some(self.started.elapsed());
        self.push_cache_status(|line| line.extend_from_slice(Verdict::Hit.label().as_bytes()));
    }

    /// Counts bytes of the body that the system has taken.
    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn push_cache_status(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        match self.format {
            LogFormat::Combined => {
                self.text.push(b' ');
                push(&mut self.text);
            }
            LogFormat::Json => {
                self.text.extend_from_slice(b",\"cache\":\"");
                push(&mut self.text);
                self.text.push(b'"');
            }
        }
    }

    fn write(&self, line: &mut Vec<u8>) {
        let (start, rest) = self.text.split_at(self.split);
        let (status, bytes) = (self.status, self.sent.load(Ordering::Relaxed));
        let (total, first_byte) = (self.started.elapsed().as_micros(), self.first_byte.map(|time| time.as_micros()));
        let origin = self.origin.map(|time| time.as_micros());
        line.extend_from_slice(start);
        // Never fails on a vector.
        let _ = match self.format {
            LogFormat::Combined => {
                let _ = write!(line, "{status} {bytes}");
                line.extend_from_slice(rest);
                let _ = match first_byte {
                    Some(first_byte) => write!(line, " {first_byte} {total}"),
                    None => write!(line, " - - {total}"),
                };
                match origin {
                    Some(origin) => writeln!(line, " {origin}"),
                    None => writeln!(line, " -"),
                }
            }
            LogFormat::Json => {
                let _ = write!(line, ",\"status\":{status},\"bytes\":{bytes}");
                line.extend_from_slice(rest);
                if let Some(first_byte) = first_byte {
                    let _ = write!(line, ",\"first_byte_us\":{first_byte}");
                }
                if let Some(origin) = origin {
                    let _ = write!(line, ",\"origin_us\":{origin}");
                }
                writeln!(line, ",\"total_us\":{total}}}")
            }
        };
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.queue.push(|lines| self.write(lines));
    }
}

/// Appends the word of a response and its reason, or `-` if the cache had no part in it.
fn push_outcome(line: &mut Vec<u8>, outcome: &Outcome<'_>) {
    let word = match outcome.verdict {
        Verdict::None => return line.push(b'-'),
        Verdict::Error => Verdict::Pass.label(),
        verdict => verdict.label(),
    };
    line.extend_from_slice(word.as_bytes());
    if let Some(reason) = outcome.reason {
        line.push(b':');
        push_bare(line, reason.as_bytes());
    }
}

/// The client's target at the host, mostly a path and a query.
fn target<B>(request: &Request<B>) -> &str {
    let uri = request.uri();
    match (uri.path_and_query(), uri.authority()) {
        (Some(target), _) => target.as_str(),
        (None, Some(authority)) => authority.as_str(),
        (None, None) => "-",
    }
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of a request with these fields, and of a response with this `Cache-Status`, without time and durations.
    fn line(format: LogFormat, target: &str, fields: &[(&str, &[u8])], status: Option<&str>, sent: usize) -> String {
        let queue = Arc::new(Queue::default());
        let mut request = Request::builder().uri(target);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        let client = IpAddr::from([192, 0, 2, 7]);
        let mut entry =
            Entry::of_request(Arc::clone(&queue), format, &LoggedRequest::of(&request, Scheme::Https), client);
        if let Some(status) = status {
            let response = Response::builder().header("cache-status", status).body(()).unwrap();
            entry.answered(&response, &Outcome::of(&response), Some(Duration::from_micros(42)));
        }
        entry.sent(sent);
        drop(entry);
        String::from_utf8(queue.take(Vec::new()).bytes).unwrap()
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
            assert_eq!(without_times(&line(LogFormat::Combined, target, fields, status, 7)), expected);
        }
    }

    #[test]
    fn the_reason_of_a_word_is_escaped() {
        let status = Some(r#"Eyewall; fwd=uri-miss; fwd-status=200; detail="in two \"words\"""#);
        let line = line(LogFormat::Combined, "/", &[], status, 7);
        assert!(line.contains(" pass:in\\x20two\\x20\\x5C\\x22words\\x5C "), "{line}");
    }

    #[test]
    fn a_json_line_is_an_object_for_any_bytes_of_the_client() {
        let fields = [("host", &b"a.org"[..]), ("user-agent", b"x\", \"status\": 5\xff\t\\")];
        let line = line(LogFormat::Json, "/a?b=c", &fields, Some("Eyewall; hit; ttl=-5"), 7);
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
            let queue = Arc::new(Queue::default());
            let client = IpAddr::from([192, 0, 2, 7]);
            drop(Entry::of_refusal(Arc::clone(&queue), format, client, StatusCode::BAD_REQUEST));
            let line = String::from_utf8(queue.take(Vec::new()).bytes).unwrap();
            assert!(line.contains(part), "{line}");
        }
    }
}
