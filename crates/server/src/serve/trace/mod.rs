//! Names of requests that other programs know them by: request ids, and W3C trace contexts.
//!
//! ```text
//! request ──> Tracing ──> Ids   an extension of the request
//!                          ├──> origins and other nodes     origin/forwarded, proxy/home
//!                          ├──> the client, if it is to have the request id
//!                          ├──> the access log
//!                          └──> a recording, if the request is recorded                       spans
//! ```
//!
//! # Invariants
//! - Ids belong to one request. They are put into the heads that leave, never into those that are stored: a site stores no response field
//!   by which an origin might return them ([`Config`](crate::config::Config) adds them to `strip_response`).
//! - Keys, rules and variants see the client's own fields, on both paths.

mod context;
mod timing;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use eyewall_http::field::push_line;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use super::error::Error;
use super::outcome::Outcome;
use super::random;
use super::simple_request::SimpleRequest;
use super::spans::{Exporter, OriginSpan, Recording};
use crate::config::access_log::Share;
use crate::config::origin_url::OriginUrl;
use crate::config::trace as settings;
use context::{Context, TRACEPARENT, TRACESTATE, push_hex};
use timing::Timing;

/// The longest request id that is taken from a client.
const ID_BYTES_MAX: usize = 128;
/// The share of requests that are recorded, if a collector is configured and no share.
const RECORDED: Share = Share(0.01);

/// Which names requests get, by the configuration.
pub(crate) struct Tracing {
    /// The field of the request id.
    request_id: Option<HeaderName>,
    returns_id: bool,
    has_contexts: bool,
    /// The share of requests without a context that begin a trace.
    sample: f64,
    /// Where spans go, and the share of requests that are recorded.
    spans: Option<(Arc<Exporter>, f64)>,
    /// The clients that get `Server-Timing`.
    timing: Option<Timing>,
}

/// The names of one request.
#[derive(Debug)]
pub(crate) struct Ids {
    /// The field, and its value.
    request_id: Option<(HeaderName, HeaderValue)>,
    trace: Trace,
    /// `None`: the request is not recorded.
    recording: Option<Recording>,
}

#[derive(Debug)]
enum Trace {
    /// The client's fields stay as they are.
    Off,
    /// The fields of the client aren't valid, and no trace begins.
    Invalid,
    In(Context),
}

/// The fields of a request, by either path.
enum Fields<'a> {
    Map(&'a HeaderMap),
    Simple(&'a SimpleRequest<'a>),
}

impl Tracing {
    /// `None`: nothing is asked for. `exporter` is that of these settings.
    ///
    /// # Errors
    /// [`Error::TokenFile`].
    pub(crate) fn of(
        settings: Option<&settings::Tracing>,
        exporter: Option<Arc<Exporter>>,
    ) -> Result<Option<Self>, Error> {
        let Some(settings) = settings else { return Ok(None) };
        let settings::Tracing { request_id, return_request_id, sample, otlp_sample, .. } = settings;
        let request_id = request_id.as_ref().map(|name| name.get_ref().0.clone());
        let (has_contexts, timing) = (settings.has_contexts(), Timing::of(settings)?);
        Ok((request_id.is_some() || has_contexts || timing.is_some()).then(|| Self {
            request_id,
            returns_id: *return_request_id,
            has_contexts,
            sample: sample.0,
            spans: exporter.map(|exporter| (exporter, otlp_sample.unwrap_or(RECORDED).0)),
            timing,
        }))
    }

    /// Whether requests may be recorded.
    pub(crate) fn records(&self) -> bool {
        self.spans.is_some()
    }

    /// Whether a request gets `Server-Timing`. The token is removed from its fields.
    pub(crate) fn times(&self, client: IpAddr, fields: &mut HeaderMap) -> bool {
        self.timing.as_ref().is_some_and(|timing| timing.is_for(client, fields))
    }

    /// Whether a simple request may get it, which needs the full path.
    pub(crate) fn times_simple(&self, client: IpAddr, request: &SimpleRequest<'_>) -> bool {
        self.timing.as_ref().is_some_and(|timing| timing.concerns(client, request))
    }

    /// The names of a request with these fields.
    pub(crate) fn ids(&self, fields: &HeaderMap, is_trusted: bool) -> Ids {
        self.ids_of(&Fields::Map(fields), is_trusted)
    }

    /// The same for a simple request.
    pub(crate) fn ids_of_simple(&self, request: &SimpleRequest<'_>) -> Ids {
        self.ids_of(&Fields::Simple(request), request.is_from_trusted_proxy)
    }

    fn ids_of(&self, fields: &Fields<'_>, is_trusted: bool) -> Ids {
        let request_id = self.request_id.as_ref().map(|name| {
            let told = fields.only(name).filter(|told| is_trusted && is_id(told));
            let value = told.and_then(|told| HeaderValue::from_bytes(told).ok()).unwrap_or_else(new_id);
            (name.clone(), value)
        });
        let (trace, recording) = if self.has_contexts { self.trace(fields, is_trusted) } else { (Trace::Off, None) };
        Ids { request_id, trace, recording }
    }

    /// The trace of a request, and its recording. The flag of a trusted proxy decides whether it is recorded: so a trace is whole, or isn't
    /// there. A client must not decide it, because recording costs.
    fn trace(&self, fields: &Fields<'_>, is_trusted: bool) -> (Trace, Option<Recording>) {
        let found = fields.context();
        let recorded = self.spans.as_ref().filter(|(_, share)| match &found {
            Some(context) if is_trusted => context.is_sampled(),
            _ => random::is_within(*share),
        });
        match (found, recorded) {
            (found, Some((exporter, _))) => {
                let span = new_span();
                let (context, parent) = match found {
                    Some(context) => (context.with_span(span), Some(context.parent)),
                    None => (Context::new(new_trace(), true).with_span(span), None),
                };
                let recording = Recording::new(exporter, context.trace, span, (parent, context.state.as_ref()));
                (Trace::In(context), Some(recording))
            }
            (Some(context), None) => (Trace::In(context), None),
            (None, None) if random::is_within(self.sample) => {
                (Trace::In(Context::new(new_trace(), true).with_span(new_span())), None)
            }
            (None, None) if fields.has(&TRACEPARENT) || fields.has(&TRACESTATE) => (Trace::Invalid, None),
            (None, None) => (Trace::Off, None),
        }
    }

    /// The names of a request of another node. Its requests to origins are recorded if that node records the client's request, as parts of that.
    fn ids_of_peer(&self, fields: &HeaderMap) -> Ids {
        let context = Context::of_fields(fields).filter(|_| self.has_contexts);
        let recorded = self.spans.as_ref().zip(context.as_ref().filter(|context| context.is_sampled()));
        let recording = recorded.map(|((exporter, _), context)| {
            Recording::new(exporter, context.trace, context.parent, (None, context.state.as_ref()))
        });
        let unrecorded = Self { request_id: self.request_id.clone(), spans: None, timing: None, ..*self };
        Ids { recording, ..unrecorded.ids(fields, true) }
    }

    /// Removes a request id that an origin has given to another request from a response, and adds that of this one if clients get it.
    pub(crate) fn mark(&self, ids: &Ids, fields: &mut HeaderMap) {
        let Some((name, value)) = &ids.request_id else { return };
        fields.remove(name);
        if self.returns_id {
            fields.insert(name.clone(), value.clone());
        }
    }

    /// The same for the head of a response over HTTP/1.1.
    pub(crate) fn mark_head(&self, ids: &Ids, head: &mut Vec<u8>) {
        let Some((name, value)) = &ids.request_id else { return };
        remove_lines(head, name.as_str().as_bytes());
        if self.returns_id && head.ends_with(b"\r\n\r\n") {
            head.truncate(head.len() - 2);
            push_line(head, name.as_str().as_bytes(), value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
    }
}

impl Ids {
    /// Writes the fields for an origin, or for another node, in the place of those that are there.
    pub(crate) fn write(&self, fields: &mut HeaderMap) {
        if let Some((name, value)) = &self.request_id {
            fields.insert(name.clone(), value.clone());
        }
        match &self.trace {
            Trace::Off => {}
            Trace::Invalid => {
                fields.remove(TRACEPARENT);
                fields.remove(TRACESTATE);
            }
            Trace::In(context) => context.write(fields),
        }
    }

    /// Whether the request has no names.
    pub(crate) fn is_empty(&self) -> bool {
        self.request_id.is_none() && matches!(self.trace, Trace::Off)
    }

    /// The recording of the request, if it is recorded.
    pub(crate) fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// Begins the span of a request to an origin for this one, if it is recorded, and names it in the fields of that request.
    pub(crate) fn begin_request(
        &self,
        request: (&Method, &OriginUrl, &Uri),
        fields: &mut HeaderMap,
    ) -> Option<OriginSpan> {
        let (Some(recording), Trace::In(context)) = (&self.recording, &self.trace) else { return None };
        let span = new_span();
        context.with_span(span).write(fields);
        Some(OriginSpan::begin(recording, span, request))
    }

    pub(crate) fn request_id(&self) -> Option<&[u8]> {
        self.request_id.as_ref().map(|(_, value)| value.as_bytes())
    }

    /// The id of the trace, in hexadecimal digits.
    pub(crate) fn push_trace_id(&self, text: &mut Vec<u8>) -> Option<()> {
        let Trace::In(context) = &self.trace else { return None };
        push_hex(text, &context.trace);
        Some(())
    }
}

/// Adds `Server-Timing` to a response whose head took so long, and waited so long for origins.
pub(crate) fn write_timing(fields: &mut HeaderMap, outcome: &Outcome<'_>, origin: Option<Duration>, total: Duration) {
    timing::write(fields, timing::words(outcome), origin, total);
}

impl<'a> Fields<'a> {
    fn has(&self, name: &HeaderName) -> bool {
        match self {
            Self::Map(fields) => fields.contains_key(name),
            Self::Simple(request) => request.last_field(name.as_str()).is_some(),
        }
    }

    /// The value of a field, if there is one.
    fn only(&self, name: &HeaderName) -> Option<&'a [u8]> {
        match self {
            Self::Map(fields) => {
                let mut values = fields.get_all(name).iter();
                values.next().filter(|_| values.next().is_none()).map(HeaderValue::as_bytes)
            }
            Self::Simple(request) => {
                let mut values = request.values(name.as_str());
                values.next().filter(|_| values.next().is_none())
            }
        }
    }

    fn context(&self) -> Option<Context> {
        match self {
            Self::Map(fields) => Context::of_fields(fields),
            Self::Simple(request) => {
                Context::of(request.values(TRACEPARENT.as_str()), request.values(TRACESTATE.as_str()))
            }
        }
    }
}

/// Whether a request id may be taken over: it is short, and harmless wherever it is written.
fn is_id(text: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:=+/@".contains(byte);
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.iter().all(is_plain)
}

fn new_id() -> HeaderValue {
    let mut text = Vec::with_capacity(32);
    push_hex(&mut text, &new_trace());
    // Digits are always a valid value.
    HeaderValue::from_maybe_shared(bytes::Bytes::from(text)).unwrap_or_else(|_| HeaderValue::from_static("-"))
}

/// It is not zero, which would be invalid.
fn new_trace() -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(random::number() | 1).to_be_bytes());
    bytes[8..].copy_from_slice(&random::number().to_be_bytes());
    bytes
}

fn new_span() -> [u8; 8] {
    (random::number() | 1).to_be_bytes()
}

/// Removes the lines of a field from a head.
fn remove_lines(head: &mut Vec<u8>, name: &[u8]) {
    let mut start = 0;
    while let Some(length) = memchr::memchr(b'\n', &head[start..]).map(|end| end + 1) {
        let line = &head[start..start + length];
        if line.get(name.len()) == Some(&b':') && line[..name.len()].eq_ignore_ascii_case(name) {
            head.drain(start..start + length);
        } else {
            start += length;
        }
    }
}

/// The names of a request of another node, which it was asked for.
pub(crate) fn of_peer(tracing: Option<&Arc<Tracing>>, fields: &HeaderMap) -> Option<Arc<Ids>> {
    tracing.map(|tracing| Arc::new(tracing.ids_of_peer(fields)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn tracing(sample: f64) -> Tracing {
        let request_id = Some(HeaderName::from_static("x-request-id"));
        Tracing { request_id, returns_id: true, has_contexts: true, sample, spans: None, timing: None }
    }

    fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn an_id_is_taken_from_a_trusted_client_if_it_is_harmless() {
        let id = |told: &'static str, is_trusted| {
            let ids = tracing(0.0).ids(&fields(&[("x-request-id", told)]), is_trusted);
            String::from_utf8(ids.request_id().unwrap().to_vec()).unwrap()
        };
        assert_eq!(id("a-1", true), "a-1");
        for (told, is_trusted) in [("a-1", false), ("a b", true), ("", true), ("a\"", true)] {
            let made = id(told, is_trusted);
            assert!(made.len() == 32 && made != id(told, is_trusted), "{made}");
        }
    }

    #[test]
    fn a_trace_is_passed_on_begun_or_dropped() {
        let sent = |sample, lines: &[(&'static str, &'static str)]| {
            let mut sent = fields(lines);
            tracing(sample).ids(&fields(lines), false).write(&mut sent);
            let text = |name| sent.get(name).map(|value: &HeaderValue| value.to_str().unwrap().to_owned());
            (text("traceparent"), text("tracestate"))
        };
        let state = Some("a=1".to_owned());
        assert_eq!(sent(0.0, &[("traceparent", PARENT), ("tracestate", "a=1")]), (Some(PARENT.to_owned()), state));
        assert_eq!(sent(0.0, &[]), (None, None));
        assert_eq!(sent(0.0, &[("traceparent", "no"), ("tracestate", "a=1")]), (None, None));
        let (parent, state) = sent(1.0, &[("traceparent", "no"), ("tracestate", "a=1")]);
        assert!(parent.is_some_and(|parent| parent.len() == 55 && parent.ends_with("-03")) && state.is_none());
    }

    #[test]
    fn a_head_has_the_id_of_its_request_alone() {
        let ids = tracing(0.0).ids(&fields(&[("x-request-id", "new")]), true);
        let mut head =
            b"HTTP/1.1 200 OK\r\nX-Request-Id: old\r\nx-request-idx: 1\r\nx-request-id: old\r\n\r\n".to_vec();
        tracing(0.0).mark_head(&ids, &mut head);
        assert_eq!(head, b"HTTP/1.1 200 OK\r\nx-request-idx: 1\r\nx-request-id: new\r\n\r\n");
        let mut map = fields(&[("x-request-id", "old")]);
        Tracing { returns_id: false, ..tracing(0.0) }.mark(&ids, &mut map);
        assert!(map.is_empty());
    }
}
