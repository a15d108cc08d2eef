//! The head of a response.

use std::mem::MaybeUninit;
use std::ops::Range;

use bytes::BytesMut;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};
use httparse::{ParserConfig, Status};
use hyper::ext::ReasonPhrase;

use super::body::Framing;

/// The most fields of a head.
pub(super) const FIELDS_MAX: usize = 100;

/// The head of a response to a GET.
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) version: Version,
    /// If it isn't that of the status.
    pub(super) reason: Option<ReasonPhrase>,
    pub(super) fields: HeaderMap,
    pub(super) framing: Framing,
    /// Whether the origin keeps the connection for another request.
    pub(super) is_kept: bool,
}

/// Why a head makes no sense.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    TooLarge,
    Other(&'static str),
}

impl From<httparse::Error> for Malformed {
    fn from(error: httparse::Error) -> Self {
        match error {
            httparse::Error::TooManyHeaders => Self::TooLarge,
            _ => Self::Other("the response is not HTTP/1.1"),
        }
    }
}

/// Whether a head may end in these bytes.
pub(super) fn may_end(bytes: &[u8]) -> bool {
    bytes.windows(3).any(|end| end == b"\n\r\n" || end.starts_with(b"\n\n")) || bytes.ends_with(b"\n\n")
}

/// Takes a head from the beginning of these bytes. `None`: it isn't complete.
pub(super) fn take(bytes: &mut BytesMut) -> Result<Option<Head>, Malformed> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut lines = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let parsed =
        ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes.as_ref(), &mut lines)?;
    let Status::Complete(length) = parsed else { return Ok(None) };
    // A whole head has all three.
    let (Some(code), Some(minor), Some(words)) = (response.code, response.version, response.reason) else {
        return Ok(None);
    };
    let status = StatusCode::from_u16(code).map_err(|_| Malformed::Other("the response has no valid status"))?;
    let reason = Some(words).filter(|words| status.canonical_reason() != Some(*words));
    let reason = reason.and_then(|words| ReasonPhrase::try_from(words.as_bytes()).ok());
    let version = if minor == 1 { Version::HTTP_11 } else { Version::HTTP_10 };
    let mut places = [const { (0, 0, 0, 0) }; FIELDS_MAX];
    let count = response.headers.len();
    for (place, line) in places.iter_mut().zip(response.headers.iter()) {
        let (name, value) = (place_of(bytes, line.name.as_bytes()), place_of(bytes, line.value));
        *place = (name.start, name.end, value.start, value.end);
    }
    let head = bytes.split_to(length).freeze();
    let mut fields = HeaderMap::with_capacity(count);
    let malformed = || Malformed::Other("the response has a malformed field");
    for &(name, name_end, value, value_end) in &places[..count] {
        let name = HeaderName::from_bytes(&head[name..name_end]).map_err(|_| malformed())?;
        let value = HeaderValue::from_maybe_shared(head.slice(value..value_end)).map_err(|_| malformed())?;
        fields.append(name, value);
    }
    let framing = framing(status, version, &fields)?;
    let is_kept = is_kept(version, &fields) && status != StatusCode::SWITCHING_PROTOCOLS;
    Ok(Some(Head { status, version, reason, fields, framing, is_kept }))
}

/// Where a part of these bytes lies in them.
fn place_of(bytes: &BytesMut, part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr() - bytes.as_ptr().addr();
    start..start + part.len()
}

/// How long the body is (RFC 9112, section 6.3).
fn framing(status: StatusCode, version: Version, fields: &HeaderMap) -> Result<Framing, Malformed> {
    if status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        return Ok(Framing::Length(0));
    }
    if let Some(codings) = fields.get_all(TRANSFER_ENCODING).iter().next_back() {
        let last = codings.as_bytes().rsplit(|byte| *byte == b',').next().unwrap_or_default();
        return match version {
            Version::HTTP_10 => Err(Malformed::Other("HTTP/1.0 has no Transfer-Encoding")),
            _ if last.trim_ascii().eq_ignore_ascii_case(b"chunked") => Ok(Framing::CHUNKED),
            _ => Ok(Framing::UntilEnd),
        };
    }
    let mut lengths =
        fields.get_all(CONTENT_LENGTH).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let Some(first) = lengths.next() else { return Ok(Framing::UntilEnd) };
    let malformed = Malformed::Other("the response has no valid Content-Length");
    let Some(length) = number(first) else { return Err(malformed) };
    if lengths.all(|other| number(other) == Some(length)) { Ok(Framing::Length(length)) } else { Err(malformed) }
}

fn number(digits: &[u8]) -> Option<u64> {
    let digits = digits.trim_ascii();
    // Parsing would allow a sign.
    let is_number = digits.iter().all(u8::is_ascii_digit);
    str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

/// RFC 9112, section 9.3.
fn is_kept(version: Version, fields: &HeaderMap) -> bool {
    let has = |option: &[u8]| {
        let mut options =
            fields.get_all(CONNECTION).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
        options.any(|other| other.trim_ascii().eq_ignore_ascii_case(option))
    };
    !has(b"close") && (version == Version::HTTP_11 || has(b"keep-alive"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> Result<Option<Head>, Malformed> {
        take(&mut BytesMut::from(text))
    }

    fn head(lines: &str) -> Head {
        taken(&format!("{lines}\r\n\r\n")).unwrap().unwrap()
    }

    #[test]
    fn a_head_is_taken_once_it_is_whole_and_the_rest_stays() {
        let text = "HTTP/1.1 200 Fine\r\nA: 1\r\na:  2 \r\nContent-Length: 3\r\n\r\n";
        for end in 0..text.len() {
            assert!(matches!(taken(&text[..end]), Ok(None)), "{end}");
        }
        let mut bytes = BytesMut::from(format!("{text}abc").as_str());
        let head = take(&mut bytes).unwrap().unwrap();
        assert_eq!((head.status, head.version, &bytes[..]), (StatusCode::OK, Version::HTTP_11, &b"abc"[..]));
        assert_eq!(head.fields.get_all("a").iter().collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(head.reason.unwrap().as_bytes(), b"Fine");
    }

    #[test]
    fn the_end_of_a_head_is_found_wherever_its_bytes_are_cut() {
        for text in ["HTTP/1.1 200 OK\r\nA: 1\r\n\r\n", "HTTP/1.1 200 OK\nA: 1\n\n"] {
            let ends = (1..text.len()).filter(|end| may_end(&text.as_bytes()[..*end])).count();
            assert_eq!((ends, may_end(text.as_bytes())), (0, true), "{text:?}");
            assert!(may_end(&text.as_bytes()[text.len() - 3..]));
        }
    }

    #[test]
    fn the_end_of_the_body_is_found_as_by_hyper() {
        for (lines, expected) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 5", Framing::Length(5)),
            ("HTTP/1.1 200 OK\r\ncontent-length: 5, 5\r\ncontent-length: 5", Framing::Length(5)),
            ("HTTP/1.1 304 Not Modified\r\ncontent-length: 5", Framing::Length(0)),
            ("HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked", Framing::Length(0)),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 5", Framing::CHUNKED),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\ntransfer-encoding: x, Chunked", Framing::CHUNKED),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: identity", Framing::UntilEnd),
            ("HTTP/1.0 200 OK", Framing::UntilEnd),
        ] {
            assert_eq!(head(lines).framing, expected, "{lines}");
        }
        for lines in [
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6",
            "HTTP/1.1 200 OK\r\ncontent-length: 5, 6",
            "HTTP/1.1 200 OK\r\ncontent-length: +5",
            "HTTP/1.1 200 OK\r\ncontent-length:",
            "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551616",
            "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked",
            "HTTP/1.1 99 No",
            "HTTP/2.0 200 OK",
            "hello",
            "HTTP/1.1 200 OK\r\n a: 1",
            "HTTP/1.1 200 OK\r\na : 1",
        ] {
            assert!(matches!(taken(&format!("{lines}\r\n\r\n")), Err(Malformed::Other(_))), "{lines}");
        }
        let many = "a: 1\r\n".repeat(FIELDS_MAX + 1);
        assert!(matches!(taken(&format!("HTTP/1.1 200 OK\r\n{many}\r\n")), Err(Malformed::TooLarge)));
    }

    #[test]
    fn a_connection_is_kept_as_the_origin_says() {
        for (lines, expected) in [
            ("HTTP/1.1 200 OK", true),
            ("HTTP/1.1 200 OK\r\nconnection: keep-alive\r\nconnection: x, Close", false),
            ("HTTP/1.0 200 OK", false),
            ("HTTP/1.0 200 OK\r\nconnection: Keep-Alive", true),
            ("HTTP/1.1 101 Switching Protocols", false),
        ] {
            assert_eq!(head(lines).is_kept, expected, "{lines}");
        }
    }
}
