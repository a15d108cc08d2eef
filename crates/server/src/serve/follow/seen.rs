//! A request that somebody follows.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use http::header::HOST;
use http::{Request, StatusCode};
use serde::Serialize;

use super::Followers;
use crate::host_name::without_user;
use crate::key::Scheme;
use crate::serve::date::push_rfc3339;
use crate::serve::outcome::{CLIENT_GONE, Outcome, Verdict};
use crate::serve::simple_request::SimpleRequest;
use crate::serve::unix_client::shown;

/// What a line says of a request.
#[derive(Clone, Copy)]
pub(crate) struct SeenRequest<'a> {
    pub(crate) method: &'a str,
    /// Path and query as the client sent them.
    pub(crate) target: &'a str,
    pub(crate) host: &'a [u8],
    pub(crate) scheme: Scheme,
}

impl<'a> SeenRequest<'a> {
    /// `scheme` is that of the client.
    pub(crate) fn of<B>(request: &'a Request<B>, scheme: Scheme) -> Self {
        let uri = request.uri();
        let field = || request.headers().get(HOST).map_or(&b""[..], |host| host.as_bytes());
        Self {
            method: request.method().as_str(),
            target: uri.path_and_query().map_or("", |target| target.as_str()),
            host: without_user(uri.authority().map_or_else(field, |authority| authority.as_str().as_bytes())),
            scheme,
        }
    }

    pub(crate) fn of_simple(request: &'a SimpleRequest<'_>) -> Self {
        Self { method: "GET", target: request.target, host: without_user(request.host), scheme: request.scheme }
    }
}

/// A request until its response has left. Dropping it gives its line to the followers, however it ended.
pub(crate) struct Seen {
    followers: Arc<Followers>,
    time: SystemTime,
    pub(super) started: Instant,
    pub(super) site: Arc<str>,
    client: IpAddr,
    pub(super) method: Box<str>,
    pub(super) host: Box<str>,
    pub(super) target: Box<str>,
    scheme: Scheme,
    pub(super) status: u16,
    pub(super) verdict: Verdict,
    reason: Option<Box<str>>,
    /// The time until the head of the response.
    pub(super) first_byte: Option<Duration>,
    origin: Option<Duration>,
    /// Bytes of the body that the system has taken. It needs no ordering: the last owner reads it.
    sent: AtomicU64,
}

/// A line, as JSON.
#[derive(Serialize)]
struct Line<'a> {
    time: Cow<'a, str>,
    site: &'a str,
    client: String,
    method: &'a str,
    scheme: &'a str,
    host: &'a str,
    target: &'a str,
    status: u16,
    verdict: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_byte_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin_us: Option<u64>,
    total_us: u64,
}

impl Seen {
    /// A request whose head was whole at this time.
    pub(crate) fn new(followers: &Arc<Followers>, request: SeenRequest<'_>, client: IpAddr, started: Instant) -> Self {
        Self {
            followers: Arc::clone(followers),
            time: SystemTime::now(),
            started,
            site: "-".into(),
            client,
            method: request.method.into(),
            host: String::from_utf8_lossy(request.host).into(),
            target: request.target.into(),
            scheme: request.scheme,
            status: CLIENT_GONE,
            verdict: Verdict::None,
            reason: None,
            first_byte: None,
            origin: None,
            sent: AtomicU64::new(0),
        }
    }

    pub(crate) fn belongs_to(&mut self, site: &Arc<str>) {
        self.site = Arc::clone(site);
    }

    /// Notes the head of the response, which is ready to be sent, and how long the request waited for its origin.
    pub(crate) fn answered(&mut self, status: StatusCode, outcome: &Outcome<'_>, origin: Option<Duration>) {
        (self.status, self.verdict) = (status.as_u16(), outcome.verdict);
        self.reason = outcome.reason.map(Into::into);
        (self.first_byte, self.origin) = (Some(self.started.elapsed()), origin);
    }

    /// The same for a hit of the fast path.
    pub(crate) fn answered_by_hit(&mut self, status: StatusCode, time: Duration) {
        (self.status, self.verdict, self.first_byte) = (status.as_u16(), Verdict::Hit, Some(time));
    }

    /// Counts bytes of the body that the system has taken.
    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Its line, without a line end.
    pub(super) fn line(&self) -> Vec<u8> {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let mut time = Vec::new();
        push_rfc3339(&mut time, self.time);
        let line = Line {
            time: String::from_utf8_lossy(&time),
            site: &self.site,
            client: shown(self.client).to_string(),
            method: &self.method,
            scheme: self.scheme.as_str(),
            host: &self.host,
            target: &self.target,
            status: self.status,
            verdict: self.verdict.label(),
            reason: self.reason.as_deref(),
            bytes: self.sent.load(Ordering::Relaxed),
            first_byte_us: self.first_byte.map(micros),
            origin_us: self.origin.map(micros),
            total_us: micros(self.started.elapsed()),
        };
        // Numbers and strings always have a JSON form.
        escaped(&serde_json::to_string(&line).unwrap_or_default())
    }
}

/// JSON without letters that control a terminal, which may be in paths and hosts of clients. JSON itself forbids only those below a blank.
fn escaped(json: &str) -> Vec<u8> {
    let mut escaped = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '\u{7f}'..='\u{9f}' => {
                // Writing to a string can't fail.
                let _ = write!(escaped, "\\u{:04x}", u32::from(letter));
            }
            letter => escaped.push(letter),
        }
    }
    escaped.into_bytes()
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.followers.tell(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_letter_of_a_line_controls_a_terminal() {
        let json = serde_json::to_string("a\u{9b}2J\u{7f}\u{e9}\u{1b}").unwrap();
        assert_eq!(escaped(&json), "\"a\\u009b2J\\u007f\u{e9}\\u001b\"".as_bytes());
    }
}
