//! A line while it is made: from the head of a request until the last byte of its response has left.
//!
//! Values of the request are written into the line's one buffer when it comes, those of the response when its head is ready. The rest is
//! known at the end. Each value in the buffer has its length before it.

use std::io::Write as _;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use http::{HeaderMap, Response, StatusCode};

use super::Lines;
use super::escape::Escape;
use super::form::{Form, Part, Phase};
use super::logged_request::LoggedRequest;
use crate::config::log_format::Variable;
use crate::serve::date;
use crate::serve::outcome::{CLIENT_GONE, Outcome, Verdict};
use crate::serve::unix_client::shown;

/// Most lines need at most this many bytes.
const LINE_BYTES: usize = 384;
/// The length of a value that is absent.
const ABSENT: u32 = u32::MAX;

/// A line that is written when this is dropped, however the request ended.
pub(crate) struct Entry {
    lines: Lines,
    started: Instant,
    /// The values that are known, each with its length before it.
    values: Vec<u8>,
    /// Where the values of the response begin.
    response_at: usize,
    status: u16,
    /// The time until the head of the response.
    first_byte: Option<Duration>,
    /// The time until the origin's heads, if a request went to it.
    origin: Option<Duration>,
    /// Whether it is written if it is no error.
    is_sampled: bool,
    /// Bytes of the body that the system has taken. The task that sends them adds to it. It needs no ordering, because the last
    /// owner of the line writes it.
    sent: AtomicU64,
}

/// The head of a response.
pub(crate) enum ResponseFields<'a> {
    Map(&'a HeaderMap),
    /// As it is sent over HTTP/1.1.
    Head(&'a [u8]),
}

/// What a response says of itself.
struct Answer<'a> {
    fields: ResponseFields<'a>,
    verdict: Verdict,
    reason: Option<&'a str>,
    site: Option<&'a str>,
}

impl Entry {
    /// `started`: when the request's head was whole.
    pub(super) fn new(lines: Lines, request: &LoggedRequest<'_>, client: IpAddr, started: Instant) -> Self {
        let mut values = Vec::with_capacity(LINE_BYTES);
        let now = SystemTime::now();
        for variable in lines.form.values(Phase::Request) {
            push_value(&mut values, |text| push_of_request(text, variable, request, (client, now), lines.form.escape));
        }
        let (response_at, is_sampled) = (values.len(), lines.is_sampled());
        let (status, first_byte, origin, sent) = (CLIENT_GONE, None, None, AtomicU64::new(0));
        Self { lines, started, values, response_at, status, first_byte, origin, is_sampled, sent }
    }

    /// The line of bytes that were not a request.
    pub(super) fn of_refusal(lines: Lines, client: IpAddr, status: StatusCode) -> Self {
        let mut entry = Self::new(lines, &LoggedRequest::none(), client, Instant::now());
        entry.status = status.as_u16();
        entry
    }

    /// It is written, whatever the sample says.
    pub(super) fn certain(mut self) -> Self {
        self.is_sampled = true;
        self
    }

    /// Notes the head of the response, which is ready to be sent. `site` is the name of the request's site.
    pub(crate) fn answered<B>(
        &mut self,
        response: &Response<B>,
        outcome: &Outcome<'_>,
        site: Option<&str>,
        origin: Option<Duration>,
    ) {
        self.origin = origin;
        let fields = ResponseFields::Map(response.headers());
        let Outcome { verdict, reason, .. } = *outcome;
        self.note(response.status(), &Answer { fields, verdict, reason, site });
    }

    /// The same for a hit of the fast path with this head.
    pub(crate) fn answered_by_hit(&mut self, status: StatusCode, head: &[u8], site: Option<&str>) {
        let fields = ResponseFields::Head(head);
        self.note(status, &Answer { fields, verdict: Verdict::Hit, reason: None, site });
    }

    fn note(&mut self, status: StatusCode, answer: &Answer<'_>) {
        self.status = status.as_u16();
        self.first_byte = Some(self.started.elapsed());
        let Form { escape, .. } = *self.lines.form;
        for variable in self.lines.form.values(Phase::Response) {
            push_value(&mut self.values, |text| push_of_response(text, variable, answer, escape));
        }
    }

    /// Counts bytes of the body that the system has taken.
    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn write(&self, line: &mut Vec<u8>) {
        let total = self.started.elapsed();
        let (mut of_request, mut of_response) = self.values.split_at(self.response_at);
        let parts = &self.lines.form.parts;
        for (number, part) in parts.iter().enumerate() {
            let (start, variable) = match part {
                Part::Text(text) => {
                    line.extend_from_slice(text.as_bytes());
                    continue;
                }
                Part::Value(variable) => (None, variable),
                Part::Member(start, variable) => (Some(*start), variable),
            };
            let before = line.len();
            line.extend_from_slice(start.unwrap_or_default().as_bytes());
            let is_there = match Phase::of(variable) {
                Phase::Request => take_value(&mut of_request).map(|value| line.extend_from_slice(value)),
                Phase::Response => take_value(&mut of_response).map(|value| line.extend_from_slice(value)),
                Phase::End => self.push_of_end(line, variable, total),
            };
            match (is_there, start) {
                (Some(()), Some(start)) if start.ends_with('"') => line.push(b'"'),
                (None, Some(_)) => line.truncate(before),
                (None, None) if self.lines.form.escape == Escape::Quoted => line.push(b'-'),
                (None, None) if !is_in_string(&parts[..number]) => line.extend_from_slice(b"null"),
                (Some(()), _) | (None, None) => {}
            }
        }
    }

    fn push_of_end(&self, line: &mut Vec<u8>, variable: &Variable, total: Duration) -> Option<()> {
        match variable {
            Variable::Status => push_number(line, self.status.into()),
            Variable::BodyBytes => push_number(line, self.sent.load(Ordering::Relaxed)),
            Variable::RequestSeconds => push_seconds(line, total),
            Variable::RequestMicros => push_micros(line, total),
            Variable::FirstByteSeconds => push_seconds(line, self.first_byte?),
            Variable::FirstByteMicros => push_micros(line, self.first_byte?),
            Variable::OriginSeconds => push_seconds(line, self.origin?),
            Variable::OriginMicros => push_micros(line, self.origin?),
            _ => return None,
        }
        Some(())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.is_sampled || self.status >= 500 {
            self.lines.sink.queue.push(|lines| self.write(lines));
        }
    }
}

/// Appends a value that `push` writes, with its length before it. `push` writes nothing if the value is absent.
fn push_value(values: &mut Vec<u8>, push: impl FnOnce(&mut Vec<u8>) -> Option<()>) {
    let at = values.len();
    values.extend_from_slice(&ABSENT.to_le_bytes());
    if push(values).is_some() {
        // The head of a message has a megabyte at most.
        let length = u32::try_from(values.len() - at - size_of::<u32>()).unwrap_or(ABSENT);
        values[at..at + size_of::<u32>()].copy_from_slice(&length.to_le_bytes());
    }
}

/// The next value, if it is there.
fn take_value<'a>(values: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = values.split_first_chunk()?;
    let length = u32::from_le_bytes(*length);
    if length == ABSENT {
        *values = rest;
        return None;
    }
    let (value, rest) = rest.split_at_checked(length as usize)?;
    *values = rest;
    Some(value)
}

fn push_of_request(
    text: &mut Vec<u8>,
    variable: &Variable,
    request: &LoggedRequest<'_>,
    (client, now): (IpAddr, SystemTime),
    escape: Escape,
) -> Option<()> {
    // Writing to a vector never fails.
    match variable {
        Variable::RemoteAddress => _ = write!(text, "{}", shown(client)),
        Variable::TimeLocal => date::push_ncsa(text, now),
        Variable::TimeIso => date::push_rfc3339(text, now),
        Variable::TimeSeconds => push_seconds(text, now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()),
        Variable::Request => match request.version {
            Some(version) => {
                let _ = write!(text, "{} ", request.method);
                escape.push(text, request.target.as_bytes());
                let _ = write!(text, " {version}");
            }
            None => text.push(b'-'),
        },
        Variable::Method => text.extend_from_slice(request.method.as_bytes()),
        Variable::Target => escape.push(text, request.target.as_bytes()),
        Variable::Path => escape.push(text, request.target.split('?').next().unwrap_or_default().as_bytes()),
        Variable::Query => escape.push(text, request.target.split_once('?')?.1.as_bytes()),
        Variable::Protocol => text.extend_from_slice(request.version?.as_bytes()),
        Variable::Scheme => {
            request.version?;
            text.extend_from_slice(request.scheme.as_str().as_bytes());
        }
        Variable::Host => escape.push(text, request.host?),
        Variable::RequestId => escape.push(text, request.ids?.request_id()?),
        Variable::TraceId => request.ids?.push_trace_id(text)?,
        Variable::RequestField(name) => escape.push(text, request.field(name)?),
        // Eyewall knows no users.
        _ => return None,
    }
    Some(())
}

fn push_of_response(text: &mut Vec<u8>, variable: &Variable, answer: &Answer<'_>, escape: Escape) -> Option<()> {
    match variable {
        Variable::ResponseField(name) => escape.push(text, answer.fields.field(name.as_str())?),
        Variable::Site => escape.push(text, answer.site?.as_bytes()),
        Variable::CacheStatus => text.extend_from_slice(word_of_nginx(answer.verdict)?.as_bytes()),
        Variable::Cache => {
            let word = match answer.verdict {
                // The cache had no part in it.
                Verdict::None => {
                    text.push(b'-');
                    return Some(());
                }
                Verdict::Error => Verdict::Pass.label(),
                verdict => verdict.label(),
            };
            text.extend_from_slice(word.as_bytes());
            if let Some(reason) = answer.reason {
                text.push(b':');
                escape.push_bare(text, reason.as_bytes());
            }
        }
        _ => return None,
    }
    Some(())
}

/// The word of `$upstream_cache_status`.
fn word_of_nginx(verdict: Verdict) -> Option<&'static str> {
    Some(match verdict {
        Verdict::Hit => "HIT",
        Verdict::Stale => "STALE",
        Verdict::Revalidated => "REVALIDATED",
        Verdict::Miss => "MISS",
        Verdict::Pass | Verdict::Error => "BYPASS",
        Verdict::None => return None,
    })
}

impl<'a> ResponseFields<'a> {
    /// The value of the first field of this name, in lower case.
    fn field(&self, name: &str) -> Option<&'a [u8]> {
        match self {
            Self::Map(fields) => fields.get(name).map(http::HeaderValue::as_bytes),
            Self::Head(head) => head.split(|byte| *byte == b'\n').skip(1).find_map(|line| {
                let colon = memchr::memchr(b':', line)?;
                line[..colon].eq_ignore_ascii_case(name.as_bytes()).then(|| line[colon + 1..].trim_ascii())
            }),
        }
    }
}

/// Whether the constant parts of a JSON form leave a string open. Values in it are escaped.
fn is_in_string(parts: &[Part]) -> bool {
    let (mut is_open, mut is_escaped) = (false, false);
    for part in parts {
        let Part::Text(text) = part else { continue };
        for byte in text.bytes() {
            is_open ^= byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
        }
    }
    is_open
}

fn push_number(line: &mut Vec<u8>, number: u64) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn push_micros(line: &mut Vec<u8>, time: Duration) {
    push_number(line, u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
}

/// Seconds with milliseconds, as nginx writes times.
fn push_seconds(line: &mut Vec<u8>, time: Duration) {
    // Never fails on a vector.
    let _ = write!(line, "{}.{:03}", time.as_secs(), time.subsec_millis());
}
