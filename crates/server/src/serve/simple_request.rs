//! A simple request for a page, parsed in place in the received bytes.
//!
//! Most requests are simple: GET, HTTP/1.1, one host, no body, no conditions, no cache directives. Eyewall answers them from the
//! volume at once if it can, without building messages ([`Service::fast_hit`](super::service::Service::fast_hit)). All other
//! requests go to hyper unchanged; this module refuses nothing.

use std::mem::MaybeUninit;

use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue};
use httparse::{Header, Status};

use crate::key::Scheme;

/// Requests with more fields aren't simple. Hyper has the same limit by default.
pub(crate) const FIELDS_MAX: usize = 100;

/// Fields whose meaning needs the full path, in lower case.
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

/// The parser's memory for the fields of a request.
pub(crate) type Room<'b> = [MaybeUninit<Header<'b>>; FIELDS_MAX];

/// A simple request.
pub(crate) struct SimpleRequest<'a> {
    /// Path and query; it begins with a slash.
    pub(crate) target: &'a str,
    pub(crate) host: &'a [u8],
    /// The scheme of the client's request.
    pub(crate) scheme: Scheme,
    /// The client wants the connection closed after the response.
    pub(crate) is_last: bool,
    /// A trusted proxy has sent it.
    pub(crate) is_from_trusted_proxy: bool,
    /// All fields, in the order and the spelling of the client.
    fields: &'a [Header<'a>],
}

/// The beginning of the received bytes.
pub(crate) enum Parsed<'a> {
    /// An incomplete head, or nothing.
    Partial,
    /// A simple request, and the length of its head.
    Simple(SimpleRequest<'a>, usize),
    /// Another request, with its length.
    Other(Length),
}

/// The length of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Head, and body if there is one.
    Bytes(u64),
    /// Only hyper finds the end of the request: it has a chunked body, or is of another protocol.
    Unknown,
    /// The length is larger than a message can have.
    TooLarge,
}

/// Parses the bytes of a client.
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

/// The length of a request of HTTP/1.1 that isn't simple.
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
        // Other programs read such a length as a negative number, or truncate it.
        body_bytes if i64::try_from(body_bytes).is_err() => Length::TooLarge,
        body_bytes => Length::Bytes(head_bytes as u64 + body_bytes),
    }
}

impl<'a> SimpleRequest<'a> {
    /// How many fields it has.
    pub(crate) fn field_count(&self) -> usize {
        self.fields.len()
    }

    /// The values of all fields of this name, in lower case.
    pub(crate) fn values(&self, name: &str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        self.fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    }

    /// The value of the last field of this name, in lower case.
    pub(crate) fn last_field(&self, name: &str) -> Option<&'a [u8]> {
        self.values(name).next_back()
    }

    /// The fields with one of these names, in the form of hyper.
    pub(crate) fn fields_of(&self, names: &[HeaderName]) -> HeaderMap {
        let mut found = HeaderMap::new();
        if names.is_empty() {
            return found;
        }
        for field in self.fields {
            let name = names.iter().find(|name| field.name.eq_ignore_ascii_case(name.as_str()));
            if let Some(name) = name
                // A trusted proxy may have named another host.
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
    fn a_plain_request_for_a_page_is_simple() {
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
    fn a_request_with_conditions_or_a_body_is_not_simple() {
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
    fn the_length_of_a_request_is_right_or_unknown() {
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
    fn a_request_with_too_many_fields_is_not_simple() {
        let fields: Vec<String> = (0..=FIELDS_MAX).map(|number| format!("x-{number}: 1\r\n")).collect();
        assert_eq!(seen(&format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", fields.concat())), "other");
    }
}
