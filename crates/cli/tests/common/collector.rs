//! A collector of spans: it takes OTLP over HTTP, as OpenTelemetry's collector and Jaeger do.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use prost::Message;

use super::origin::{Asked, Origin, read};

/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_mins(1);

/// A collector that lives as long as the test.
pub(crate) struct Collector {
    origin: Origin,
    seen: Arc<Mutex<Seen>>,
}

/// A request that a collector got.
pub(crate) struct Posted {
    pub(crate) head: Asked,
    pub(crate) body: Vec<u8>,
    /// The spans that it has taken.
    pub(crate) spans: Vec<Span>,
    /// The attributes of the process.
    pub(crate) resource: BTreeMap<String, String>,
}

#[derive(Default)]
struct Seen {
    posted: Vec<Posted>,
}

/// A span, with ids in hexadecimal digits.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty if the trace begins with it.
    pub(crate) parent: String,
    pub(crate) state: String,
    pub(crate) name: String,
    /// 2 is a server's, 3 a client's.
    pub(crate) kind: i32,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) is_error: bool,
    /// In nanoseconds since 1970.
    start: u64,
}

/// The answer to a request of this number, from 1: a status, field lines, and a body.
pub(crate) type Answer = (u16, &'static str, &'static [u8]);

impl Span {
    pub(crate) fn get(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

impl Collector {
    /// Takes everything.
    pub(crate) fn new() -> Self {
        Self::answering(|_| (200, "", b""))
    }

    /// It takes the spans of a request if the status of the answer is 200.
    pub(crate) fn answering(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let notes = Arc::clone(&seen);
        let origin = Origin::silent(move |stream| while answer_one(stream, &notes, &answer).is_some() {});
        Self { origin, seen }
    }

    pub(crate) fn url(&self) -> String {
        self.origin.url()
    }

    /// What the function says of the requests so far.
    pub(crate) fn posted<T>(&self, look: impl FnOnce(&[Posted]) -> T) -> T {
        look(&self.seen.lock().unwrap().posted)
    }

    /// The spans so far, in the order in which they began.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> =
            self.posted(|posted| posted.iter().flat_map(|posted| posted.spans.clone()).collect());
        spans.sort_by_key(|span| span.start);
        spans
    }

    /// Waits until it has as many requests.
    pub(crate) fn until_posted(&self, count: usize) {
        let start = Instant::now();
        while self.posted(<[Posted]>::len) < count {
            assert!(start.elapsed() < PATIENCE, "{count} requests did not come");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Reads a request and answers it. `None`: the connection ended.
fn answer_one(stream: &mut (impl Read + Write), seen: &Mutex<Seen>, answer: &impl Fn(usize) -> Answer) -> Option<()> {
    let head = read(stream)?;
    let mut body = vec![0; head.field("content-length").parse().expect("it has a length")];
    stream.read_exact(&mut body).ok()?;
    let (number, decoded) = (seen.lock().unwrap().posted.len() + 1, Request::decode(&*body).expect("it is OTLP"));
    let (status, fields, text) = answer(number);
    let spans = if status == 200 { spans_of(&decoded) } else { Vec::new() };
    let resource = decoded.resource_spans[0].resource.as_ref().map(|resource| texts(&resource.attributes));
    let posted = Posted { head, body, spans, resource: resource.unwrap_or_default() };
    seen.lock().unwrap().posted.push(posted);
    let fields = if fields.is_empty() { String::new() } else { format!("{fields}\r\n") };
    let head = format!("HTTP/1.1 {status} Status\r\n{fields}Content-Length: {}\r\n\r\n", text.len());
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(text).ok()
}

/// A collector that takes requests and never answers, until the test drops the sender of this channel.
pub(crate) fn hanging() -> (Origin, std::sync::mpsc::Sender<()>) {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Mutex::new(released);
    let origin = Origin::silent(move |stream: &mut TcpStream| {
        let _ = read(stream);
        let _ = released.lock().unwrap().recv();
    });
    (origin, release)
}

fn spans_of(request: &Request) -> Vec<Span> {
    let scopes = request.resource_spans.iter().flat_map(|spans| &spans.scope_spans);
    scopes.flat_map(|scope| &scope.spans).map(Span::of).collect()
}

impl Span {
    fn of(span: &SpanMessage) -> Self {
        assert!(span.start > 0 && span.start <= span.end, "{span:?}");
        Self {
            trace: hexadecimal(&span.trace_id),
            id: hexadecimal(&span.span_id),
            parent: hexadecimal(&span.parent_span_id),
            state: span.trace_state.clone(),
            name: span.name.clone(),
            kind: span.kind,
            attributes: texts(&span.attributes),
            is_error: span.status.as_ref().is_some_and(|status| status.code == 2),
            start: span.start,
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn texts(attributes: &[Attribute]) -> BTreeMap<String, String> {
    let text = |attribute: &Attribute| {
        let value = attribute.value.clone().unwrap_or_default();
        (attribute.key.clone(), value.text.unwrap_or_else(|| value.number.unwrap_or_default().to_string()))
    };
    let texts: BTreeMap<_, _> = attributes.iter().map(text).collect();
    assert_eq!(texts.len(), attributes.len(), "each has a name of its own: {attributes:?}");
    texts
}

/// The messages of opentelemetry-proto, with the fields that tests look at.
#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
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
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<SpanMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct SpanMessage {
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
    start: u64,
    #[prost(fixed64, tag = "8")]
    end: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<Attribute>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<Value>,
}

/// One of both is there.
#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, optional, tag = "1")]
    text: Option<String>,
    #[prost(int64, optional, tag = "3")]
    number: Option<i64>,
}
