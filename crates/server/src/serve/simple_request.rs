//! A request that asks for a page and nothing else, as it lies in the bytes that came.
//!
//! Most requests are of this kind: GET, HTTP/1.1, one host, no body, no conditions, no demands on caches. What can be answered
//! from the volume at once is, without messages being made of it ([`Service::fast_hit`](super::service::Service::fast_hit)). All
//! others, and what turns out to be none of these, go to hyper as they came: here nothing is refused.

use std::mem::MaybeUninit;

use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue};
use httparse::{Header, Status};

use crate::key::Scheme;

/// Requests with more fields aren't simple. It is also what hyper takes by itself.
pub(crate) const FIELDS_MAX: usize = 100;

/// Fields that make a request something else: what they say has to be understood. In lower case.
const DEMANDS: [&str; 18] = [
    "te",
    "range",
    "expect",
    "pragma",
    "trailer",
    "upgrade",
    "if-match",
    "if-range",
    "keep-alive",
    "authorization",
    "cache-control",
    "if-none-match",
    "content-length",
    "http2-settings",
    "if-modified-since",
    "transfer-encoding",
    "if-unmodified-since",
    "proxy-authorization",
];

/// Where a parser puts the fields of a request.
pub(crate) type Room<'b> = [MaybeUninit<Header<'b>>; FIELDS_MAX];

/// A simple request.
pub(crate) struct SimpleRequest<'a> {
    /// Path and query; it begins with a slash.
    pub(crate) target: &'a str,
    pub(crate) host: &'a [u8],
    /// By which the client asked.
    pub(crate) scheme: Scheme,
    /// The client wants the connection to be closed after the response.
    pub(crate) is_last: bool,
    /// A trusted proxy has sent it.
    pub(crate) is_from_trusted_proxy: bool,
    /// All fields, in the order and the spelling of the client.
    fields: &'a [Header<'a>],
}

/// What is at the beginning of some bytes.
pub(crate) enum Parsed<'a> {
    /// The first bytes of a head, or nothing.
    Partial,
    /// A simple request, and the length of its head.
    Simple(SimpleRequest<'a>, usize),
    /// Another request: so many bytes are its own.
    Other(Length),
}

/// How many bytes belong to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Head, and body if there is one.
    Bytes(u64),
    /// It isn't known before it is understood, or there is no end: a chunked body, another protocol.
    Unknown,
    /// More than any message can have.
    TooLarge,
}

/// Looks at what a client has sent.
pub(crate) fn read<'a>(bytes: &'a [u8], room: &'a mut Room<'a>) -> Parsed<'a> {
    let mut request = httparse::Request::new(&mut []);
    let head_bytes = match request.parse_with_uninit_headers(bytes, room) {
        Ok(Status::Complete(head_bytes)) => head_bytes,
        Ok(Status::Partial) => return Parsed::Partial,
        Err(_) => return Parsed::Other(Length::Unknown),
    };
    let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
        return Parsed::Other(Length::Unknown);
    };
    let fields: &'a [Header<'a>] = request.headers;
    if version != 1 || method == "CONNECT" {
        return Parsed::Other(Length::Unknown);
    }
    let mut host = None;
    let mut is_last = false;
    let mut is_simple = method == "GET" && target.starts_with('/');
    for field in fields {
        if field.name.eq_ignore_ascii_case("host") {
            is_simple &= host.is_none();
            host = Some(field.value);
        } else if field.name.eq_ignore_ascii_case("connection") {
            let wishes = field.value.trim_ascii();
            let closes = wishes.eq_ignore_ascii_case(b"close");
            is_simple &= closes || wishes.eq_ignore_ascii_case(b"keep-alive");
            is_last |= closes;
        } else {
            is_simple &= !is_demand(field.name);
        }
    }
    match host {
        Some(host) if is_simple => Parsed::Simple(
            SimpleRequest { target, host, scheme: Scheme::Http, is_last, is_from_trusted_proxy: false, fields },
            head_bytes,
        ),
        _ => Parsed::Other(length(fields, head_bytes)),
    }
}

fn is_demand(name: &str) -> bool {
    DEMANDS.iter().any(|demand| demand.len() == name.len() && demand.eq_ignore_ascii_case(name))
}

/// Of a request of HTTP/1.1 that isn't simple.
fn length(fields: &[Header<'_>], head_bytes: usize) -> Length {
    let mut body_bytes = None;
    for field in fields {
        if ["transfer-encoding", "upgrade"].iter().any(|name| field.name.eq_ignore_ascii_case(name)) {
            return Length::Unknown;
        }
        if field.name.eq_ignore_ascii_case("content-length") {
            let digits = str::from_utf8(field.value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let Some(bytes) = digits.and_then(|digits| digits.parse::<u64>().ok()).filter(|_| body_bytes.is_none())
            else {
                return Length::Unknown;
            };
            body_bytes = Some(bytes);
        }
    }
    match body_bytes.unwrap_or(0) {
        // Others read such a length as a negative number, or cut it off.
        body_bytes if i64::try_from(body_bytes).is_err() => Length::TooLarge,
        body_bytes => Length::Bytes(head_bytes as u64 + body_bytes),
    }
}

impl<'a> SimpleRequest<'a> {
    /// How many fields it has.
    pub(crate) fn field_count(&self) -> usize {
        self.fields.len()
    }

    /// The value of the first field of this name, in lower case.
    pub(crate) fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    }

    /// The value of the last field of this name, in lower case.
    pub(crate) fn last_field(&self, name: &str) -> Option<&'a [u8]> {
        self.values_from_the_last(name).next()
    }

    /// The values of all fields of this name, in lower case, the last first.
    pub(crate) fn values_from_the_last(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.fields.iter().rev().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    }

    /// Those fields that have one of these names, as hyper would give them.
    pub(crate) fn fields_of(&self, names: &[HeaderName]) -> HeaderMap {
        let mut found = HeaderMap::new();
        if names.is_empty() {
            return found;
        }
        for field in self.fields {
            let name = names.iter().find(|name| field.name.eq_ignore_ascii_case(name.as_str()));
            if let Some(name) = name
                // Whose host it is a trusted proxy may have said.
                && let Ok(value) = HeaderValue::from_bytes(if *name == HOST { self.host } else { field.value })
            {
                found.append(name.clone(), value);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE;

    use super::*;

    fn seen(text: &str) -> String {
        let mut room = [const { MaybeUninit::uninit() }; FIELDS_MAX];
        match read(text.as_bytes(), &mut room) {
            Parsed::Partial => "part".to_owned(),
            Parsed::Simple(request, bytes) => {
                let cookies = request.fields_of(&[COOKIE]).get_all(COOKIE).iter().count();
                let last = if request.is_last { ", last" } else { "" };
                format!(
                    "simple {} of {}, {cookies} cookies, {bytes}{last}",
                    request.target,
                    request.host.escape_ascii()
                )
            }
            Parsed::Other(Length::Bytes(bytes)) => format!("other {bytes}"),
            Parsed::Other(Length::Unknown) => "other".to_owned(),
            Parsed::Other(Length::TooLarge) => "too large".to_owned(),
        }
    }

    #[test]
    fn what_asks_for_a_page_is_simple() {
        for (text, expected) in [
            ("GET / HTTP/1.1\r\nConnection:  Close\r\nHost: x\r\n\r\n", "simple / of x, 0 cookies, 47, last"),
            ("GET /a?b HTTP/1.1\r\nHost: x\r\n\r\nGET", "simple /a?b of x, 0 cookies, 30"),
            ("GET / HTTP/1.1\r\ncookie: a=b\r\nHOST:x:80\r\nCookie: c\r\n\r\n", "simple / of x:80, 2 cookies, 53"),
            (
                "GET / HTTP/1.1\r\nHost: x\r\nConnection: Keep-Alive\r\nAccept: */*\r\n\r\n",
                "simple / of x, 0 cookies, 64",
            ),
        ] {
            assert_eq!(seen(text), expected, "{text}");
        }
    }

    #[test]
    fn what_asks_for_more_is_not() {
        for (line, fields) in [
            ("HEAD / HTTP/1.1", "Host: x\r\n"),
            ("GET http://x/ HTTP/1.1", "Host: x\r\n"),
            ("GET * HTTP/1.1", "Host: x\r\n"),
            ("GET / HTTP/1.1", ""),
            ("GET / HTTP/1.1", "Host: x\r\nhost: x\r\n"),
            ("GET / HTTP/1.1", "Host: x\r\nConnection: close, te\r\n"),
            ("GET / HTTP/1.1", "Host: x\r\nConnection: keep-alive, cookie\r\n"),
            ("GET / HTTP/1.1", "Host: x\r\nIf-None-Match: \"a\"\r\n"),
            ("GET / HTTP/1.1", "Host: x\r\nCACHE-CONTROL: no-cache\r\n"),
        ] {
            let text = format!("{line}\r\n{fields}\r\n");
            assert_eq!(seen(&text), format!("other {}", text.len()), "{text}");
        }
    }

    #[test]
    fn where_a_request_ends_is_known_or_not_told() {
        for (text, expected) in [
            ("", "part"),
            ("GET / HTTP/1.1\r\nHost: x\r\n", "part"),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\nabc", "other 54"),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\nContent-Length: 7\r\n\r\n", "other"),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +7\r\n\r\n", "other"),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n", "too large"),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775808\r\n\r\n", "too large"),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775807\r\n\r\n", "other 9223372036854775872"),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551616\r\n\r\n", "other"),
            ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "other"),
            ("GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", "other"),
            ("GET / HTTP/1.0\r\nHost: x\r\n\r\n", "other"),
            ("CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", "other"),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "other"),
            ("no request\r\n\r\n", "other"),
        ] {
            assert_eq!(seen(text), expected, "{text}");
        }
    }

    #[test]
    fn too_many_fields_are_left_to_others() {
        let fields: Vec<String> = (0..=FIELDS_MAX).map(|number| format!("x-{number}: 1\r\n")).collect();
        assert_eq!(seen(&format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", fields.concat())), "other");
    }
}
