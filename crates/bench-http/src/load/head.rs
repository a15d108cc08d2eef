//! The head of a response: its end, and whether the response is the expected one.

use std::mem::MaybeUninit;

use super::report::Kind;

/// No measured server sends more bytes or fields.
pub(crate) const BYTES_MAX: usize = 16 << 10;
const FIELDS_MAX: usize = 64;

/// The relevant parts of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// The bytes before the body.
    pub(crate) bytes: usize,
    /// Whether the server closes the connection after this response.
    pub(crate) closes: bool,
}

/// The head at the start of the received bytes, if it is complete. It must be a 200 whose `Content-Length` is
/// `length`, or whose body ends with the connection (RFC 9112, section 6.3) and so has the received length.
pub(crate) fn parse(received: &[u8], length: u64) -> Result<Option<Head>, Kind> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let bytes = match config.parse_response_with_uninit_headers(&mut response, received, &mut fields) {
        Ok(httparse::Status::Complete(bytes)) => bytes,
        Ok(httparse::Status::Partial) if received.len() < BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Partial) | Err(_) => return Err(Kind::Head),
    };
    if response.code != Some(200) {
        return Err(Kind::Status);
    }
    let (mut told, mut is_framed, mut closes) = (None, false, response.version == Some(0));
    for field in response.headers {
        // The length distinguishes most names.
        match field.name.len() {
            14 if field.name.eq_ignore_ascii_case("content-length") => {
                (told, is_framed) = (digits(field.value), true);
            }
            17 if field.name.eq_ignore_ascii_case("transfer-encoding") => is_framed = true,
            10 if field.name.eq_ignore_ascii_case("connection") => {
                closes = !field.value.eq_ignore_ascii_case(b"keep-alive");
            }
            _ => {}
        }
    }
    let ends_with_connection = closes && !is_framed;
    if told == Some(length) || ends_with_connection { Ok(Some(Head { bytes, closes })) } else { Err(Kind::Length) }
}

fn digits(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head_of(text: &str) -> Result<Option<Head>, Kind> {
        parse(text.as_bytes(), 5)
    }

    #[test]
    fn a_whole_head_says_where_the_body_begins() {
        let head = "HTTP/1.1 200 OK\r\nX: y\r\nCONTENT-length: 5\r\n\r\n";
        assert_eq!(head_of(&format!("{head}hello")), Ok(Some(Head { bytes: head.len(), closes: false })));
        assert_eq!(head_of(head), Ok(Some(Head { bytes: head.len(), closes: false })));
    }

    #[test]
    fn a_head_that_is_not_whole_is_waited_for() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        for end in 0..head.len() {
            assert_eq!(head_of(&head[..end]), Ok(None), "{end}");
        }
    }

    #[test]
    fn who_closes_is_known_by_version_and_connection() {
        let closes = |version: &str, connection: &str| {
            let head = head_of(&format!("HTTP/{version} 200 OK\r\n{connection}Content-Length: 5\r\n\r\n"));
            head.expect("a fit head").expect("a whole head").closes
        };
        assert!(!closes("1.1", ""));
        assert!(closes("1.1", "Connection: close\r\n"));
        assert!(closes("1.0", ""));
        assert!(!closes("1.0", "connection: Keep-Alive\r\n"));
    }

    #[test]
    fn a_body_without_a_length_ends_with_its_connection() {
        assert_eq!(head_of("HTTP/1.0 200 OK\r\n\r\nhello"), Ok(Some(Head { bytes: 19, closes: true })));
        assert_eq!(head_of("HTTP/1.1 200 OK\r\n\r\nhello"), Err(Kind::Length));
        assert_eq!(head_of("HTTP/1.0 200 OK\r\nContent-Length: five\r\n\r\n"), Err(Kind::Length));
        let chunked = "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(head_of(chunked), Err(Kind::Length));
    }

    #[test]
    fn what_is_no_head_is_told_from_a_wrong_one() {
        assert_eq!(head_of("hello HTTP\r\n\r\n"), Err(Kind::Head));
        assert_eq!(head_of(&format!("HTTP/1.1 200 OK\r\n{}", "A: b\r\n".repeat(65))), Err(Kind::Head));
        assert_eq!(head_of(&format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(BYTES_MAX))), Err(Kind::Head));
        assert_eq!(head_of("HTTP/1.1 503 No\r\nContent-Length: 5\r\n\r\n"), Err(Kind::Status));
        assert_eq!(head_of("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"), Err(Kind::Length));
        assert_eq!(head_of("HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n"), Err(Kind::Length));
        assert_eq!(head_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), Err(Kind::Length));
    }
}
