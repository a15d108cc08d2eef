//! A span: what happened, between two times.

use std::borrow::Cow;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::HeaderValue;

/// The most bytes of a text.
const TEXT_BYTES_MAX: usize = 1024;
/// Longer states of a trace are left out.
const STATE_BYTES_MAX: usize = 512;

/// A side of a request, by its number in OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// This server answered it.
    Server = 2,
    /// This server sent it.
    Client = 3,
}

/// The names of a span.
#[derive(Debug, Clone)]
pub(crate) struct SpanIds {
    pub(super) trace: [u8; 16],
    pub(super) span: [u8; 8],
    /// `None`: the trace begins here.
    pub(super) parent: Option<[u8; 8]>,
    /// `tracestate`.
    pub(super) state: Option<HeaderValue>,
}

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(Cow<'static, str>),
    Number(i64),
}

/// A span.
#[derive(Debug)]
pub(crate) struct Span {
    pub(super) kind: Kind,
    pub(super) ids: SpanIds,
    pub(super) name: String,
    pub(super) start: Duration,
    /// Since 1970, as the start.
    pub(super) end: Duration,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) is_error: bool,
    /// When it began, by a clock that nobody sets.
    begun: Instant,
}

impl Span {
    /// A span that begins now, or began at that instant.
    pub(super) fn begin(kind: Kind, ids: SpanIds, begun: Instant) -> Self {
        let state = ids.state.filter(|state| state.len() <= STATE_BYTES_MAX);
        let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(begun.elapsed());
        let (name, attributes) = (String::new(), Vec::with_capacity(14));
        Self { kind, ids: SpanIds { state, ..ids }, name, start, end: start, attributes, is_error: false, begun }
    }

    /// It ends now.
    pub(super) fn end(&mut self) {
        self.end = self.start + self.begun.elapsed();
    }

    /// Adds a text.
    pub(super) fn text(&mut self, name: &'static str, text: impl Into<Cow<'static, str>>) {
        let mut text = text.into();
        if text.len() > TEXT_BYTES_MAX {
            text = text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned().into();
        }
        self.attributes.push((name, Value::Text(text)));
    }

    pub(super) fn number(&mut self, name: &'static str, number: impl Into<i64>) {
        self.attributes.push((name, Value::Number(number.into())));
    }

    /// Adds a method. Returns the word for it in the span's name.
    pub(super) fn method(&mut self, method: &str) -> &'static str {
        let known = known_method(method);
        self.text("http.request.method", known.unwrap_or("_OTHER"));
        if known.is_none() {
            self.text("http.request.method_original", method.to_owned());
        }
        known.unwrap_or("HTTP")
    }

    /// Adds the status of a response. From 500 on, it is an error.
    pub(super) fn status(&mut self, status: u16) {
        self.number("http.response.status_code", status);
        if status >= 500 {
            self.fail(status.to_string());
        }
    }

    /// It failed for this reason.
    pub(super) fn fail(&mut self, reason: impl Into<Cow<'static, str>>) {
        if !self.is_error {
            self.is_error = true;
            self.text("error.type", reason);
        }
    }
}

impl SpanIds {
    /// Those of a span inside of this one.
    pub(super) fn child(&self, span: [u8; 8]) -> Self {
        Self { span, parent: Some(self.span), ..self.clone() }
    }
}

/// The methods that the conventions know.
fn known_method(method: &str) -> Option<&'static str> {
    const KNOWN: [&str; 9] = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];
    KNOWN.into_iter().chain(["QUERY"]).find(|known| *known == method)
}

/// The path of a target, without the query. `None`: it is none.
pub(super) fn path_of(target: &str) -> Option<&str> {
    target.starts_with('/').then(|| target.split('?').next().unwrap_or_default())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A span whose names and times are known.
    pub(in super::super) fn fixed() -> Span {
        let ids = SpanIds {
            trace: *b"0123456789abcdef",
            span: *b"01234567",
            parent: Some(*b"fedcba98"),
            state: Some(HeaderValue::from_static("a=1")),
        };
        let mut span = Span::begin(Kind::Server, ids, Instant::now());
        (span.start, span.end) =
            (Duration::from_nanos(1_795_341_726_000_000_001), Duration::from_nanos(1_795_341_726_000_000_002));
        span.name = "GET a.example".to_owned();
        span
    }

    fn text<'a>(span: &'a Span, name: &str) -> Option<&'a str> {
        span.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| match value {
            Value::Text(text) => &**text,
            Value::Number(_) => "a number",
        })
    }

    #[test]
    fn long_texts_are_cut_and_long_states_are_left_out() {
        let mut span = fixed();
        span.text("url.path", "é".repeat(TEXT_BYTES_MAX));
        assert_eq!(text(&span, "url.path").unwrap().len(), TEXT_BYTES_MAX);
        span.text("url.scheme", format!("x{}", "é".repeat(TEXT_BYTES_MAX)));
        assert_eq!(text(&span, "url.scheme").unwrap().len(), TEXT_BYTES_MAX - 1);
        let long = HeaderValue::try_from("a".repeat(STATE_BYTES_MAX + 1)).unwrap();
        let ids = SpanIds { state: Some(long), ..span.ids };
        assert!(Span::begin(Kind::Client, ids, Instant::now()).ids.state.is_none());
    }

    #[test]
    fn an_unknown_method_is_no_part_of_the_name() {
        let mut span = fixed();
        assert_eq!((span.method("BREW"), span.method("GET")), ("HTTP", "GET"));
        assert_eq!(text(&span, "http.request.method_original"), Some("BREW"));
        assert_eq!(text(&span, "http.request.method"), Some("_OTHER"));
    }

    #[test]
    fn a_span_fails_once_and_from_500_on() {
        let mut span = fixed();
        span.status(404);
        assert!(!span.is_error && text(&span, "error.type").is_none());
        span.status(503);
        span.fail("later");
        assert!(span.is_error);
        assert_eq!(text(&span, "error.type"), Some("503"));
    }

    #[test]
    fn a_path_has_no_query() {
        for (target, path) in [("/a?b=c?d", Some("/a")), ("*", None), ("u:p@a:443", None), ("/", Some("/"))] {
            assert_eq!(path_of(target), path);
        }
    }
}
