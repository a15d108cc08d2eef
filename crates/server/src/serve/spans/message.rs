//! Spans as a message of OTLP: protocol buffers whose names and numbers are those of opentelemetry-proto 1.5.
//!
//! Only the fields that Eyewall uses are here. A reader of protocol buffers takes the others for empty.

use std::time::Duration;

use http::HeaderValue;
use prost::Message;

use super::span::{self, Value};

/// The name of this program among services.
const SERVICE: &str = "eyewall";
/// The flag of a sampled trace (W3C Trace Context).
const SAMPLED: u32 = 1;
/// The code of a span that failed.
const ERROR: i32 = 2;

/// `ExportTraceServiceRequest`
#[derive(Clone, PartialEq, Message)]
pub(super) struct Request {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

/// `ExportTraceServiceResponse`
#[derive(Clone, PartialEq, Message)]
pub(super) struct Response {
    #[prost(message, optional, tag = "1")]
    pub(super) partial_success: Option<PartialSuccess>,
}

/// `ExportTracePartialSuccess`
#[derive(Clone, PartialEq, Message)]
pub(super) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(super) rejected_spans: i64,
    #[prost(string, tag = "2")]
    pub(super) error_message: String,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

/// `InstrumentationScope`
#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[expect(clippy::struct_field_names, reason = "the names are those of opentelemetry-proto")]
#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    flags: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Choice", tags = "1, 3")]
    choice: Option<Choice>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Choice {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

/// The process that spans come from.
pub(super) struct Origin {
    pub(super) host: String,
    pub(super) process: u32,
}

impl Origin {
    pub(super) fn of_this_process() -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { host, process: std::process::id() }
    }
}

/// The bytes of a request with these spans.
pub(super) fn encode(spans: impl Iterator<Item = span::Span>, origin: &Origin) -> Vec<u8> {
    let attributes = vec![
        text("service.name", SERVICE.to_owned()),
        text("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        text("host.name", origin.host.clone()),
        KeyValue::of("process.pid", Choice::Number(origin.process.into())),
    ];
    let scope = Scope { name: SERVICE.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans: spans.map(Span::from).collect() }];
    let resource_spans = vec![ResourceSpans { resource: Some(Resource { attributes }), scope_spans }];
    Request { resource_spans }.encode_to_vec()
}

impl From<span::Span> for Span {
    fn from(span: span::Span) -> Self {
        let span::Span { kind, ids, name, start, end, attributes, is_error, .. } = span;
        let attribute = |(key, value)| match value {
            Value::Text(value) => text(key, value.into_owned()),
            Value::Number(value) => KeyValue::of(key, Choice::Number(value)),
        };
        let state = ids.state.as_ref().and_then(|state: &HeaderValue| state.to_str().ok());
        Self {
            trace_id: ids.trace.to_vec(),
            span_id: ids.span.to_vec(),
            trace_state: state.unwrap_or_default().to_owned(),
            parent_span_id: ids.parent.map(|parent| parent.to_vec()).unwrap_or_default(),
            name,
            kind: kind as i32,
            start_time_unix_nano: nanoseconds(start),
            end_time_unix_nano: nanoseconds(end),
            attributes: attributes.into_iter().map(attribute).collect(),
            status: is_error.then_some(Status { code: ERROR }),
            flags: SAMPLED,
        }
    }
}

impl KeyValue {
    fn of(key: &str, choice: Choice) -> Self {
        Self { key: key.to_owned(), value: Some(AnyValue { choice: Some(choice) }) }
    }
}

fn text(key: &str, value: String) -> KeyValue {
    KeyValue::of(key, Choice::Text(value))
}

fn nanoseconds(since: Duration) -> u64 {
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::spans::span::tests::fixed;

    /// By Google's library for protocol buffers, with the messages of opentelemetry-proto: version 0.1.0 on the host `node`, process 7.
    const KNOWN: &str = "0a9a020a5f0a190a0c736572766963652e6e616d6512090a0765796577616c6c0a1a0a0f736572766963652e76657273696f\
        6e12070a05302e312e300a130a09686f73742e6e616d6512060a046e6f64650a110a0b70726f636573732e70696412021807\
        12b6010a100a0765796577616c6c1205302e312e3012a1010a10303132333435363738396162636465661208303132333435\
        36371a03613d31220866656463626139382a0d47455420612e6578616d706c6530023901acaaa4c955ea184102acaaa4c955\
        ea184a100a0875726c2e7061746812040a022f614a200a19687474702e726573706f6e73652e7374617475735f636f646512\
        0318f7034a130a0a6572726f722e7479706512050a033530337a021802850101000000";
    /// The same for a response: two spans were rejected because they are `too old`.
    const REJECTED: &str = "0a0b08021207746f6f206f6c64";

    fn bytes_of(digits: &str) -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    #[test]
    fn a_span_has_the_bytes_of_another_library() {
        let mut span = fixed();
        span.text("url.path", "/a");
        span.status(503);
        let origin = Origin { host: "node".to_owned(), process: 7 };
        assert_eq!(encode([span].into_iter(), &origin), bytes_of(KNOWN));
    }

    #[test]
    fn a_response_of_another_library_is_read() {
        let rejected = Response::decode(&*bytes_of(REJECTED)).unwrap().partial_success.unwrap();
        assert_eq!((rejected.rejected_spans, rejected.error_message.as_str()), (2, "too old"));
        assert!(Response::decode(&[][..]).unwrap().partial_success.is_none());
    }
}
