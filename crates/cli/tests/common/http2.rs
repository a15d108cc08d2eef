//! Frames of HTTP/2 as tests write them by hand (RFC 9113, section 4.1).

/// What a client begins with.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The fields of `GET http://test/page`: the first two by number, `:path` and `:authority` as literals (RFC 7541, appendix A).
pub(crate) const GET_PAGE: &[u8] = b"\x82\x86\x04\x05/page\x01\x04test";

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}
