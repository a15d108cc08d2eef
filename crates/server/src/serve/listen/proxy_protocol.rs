//! The header of the PROXY protocol, by which a proxy of TCP names its client: versions 1 and 2.
//!
//! It comes before everything else, and only where it is configured: a server must not guess whether there is one (section 2 of the
//! specification, <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>). Exactly its bytes are read.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The bytes that both versions have at least.
const START_BYTES: usize = 12;
/// The most bytes of version 1, and the fixed ones of version 2.
const BYTES_MAX_V1: usize = 107;
const FIXED_BYTES_V2: usize = 16;
/// The most bytes behind the fixed ones of version 2: addresses, and the fields behind them, which are skipped.
const REST_BYTES_MAX_V2: usize = 16 << 10;
/// The low half of the byte behind the signature of version 2 is its command.
const LOCAL: u8 = 0x20;

/// The reason for which a connection has no header that counts. It is closed then.
#[derive(Debug, thiserror::Error)]
pub(super) enum HeaderError {
    #[error("this address is not in `proxy_protocol_from`")]
    Untrusted,
    #[error("it begins without a PROXY header")]
    Missing,
    #[error("its PROXY header is malformed: {0}")]
    Malformed(String),
    #[error("its PROXY header is longer than this server accepts")]
    TooLong,
    #[error("its PROXY header was not whole within {}", crate::units::duration(*.0))]
    Late(Duration),
    #[error("it ended within its PROXY header: {0}")]
    Ended(#[from] io::Error),
}

/// Reads the header, within `timeout`. The result is the address of the client; none if the proxy names no client, for instance in
/// its own health check. The address of the proxy counts then.
pub(super) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    timeout: Duration,
) -> Result<Option<SocketAddr>, HeaderError> {
    tokio::time::timeout(timeout, read_header(stream)).await.unwrap_or(Err(HeaderError::Late(timeout)))
}

async fn read_header(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<SocketAddr>, HeaderError> {
    let mut header = vec![0; START_BYTES];
    stream.read_exact(&mut header).await?;
    if header == ppp::v2::PROTOCOL_PREFIX {
        return read_v2(stream, header).await;
    }
    if !header.starts_with(b"PROXY ") {
        return Err(HeaderError::Missing);
    }
    while header.last() != Some(&b'\n') {
        if header.len() == BYTES_MAX_V1 {
            return Err(HeaderError::TooLong);
        }
        // One by one: the next byte may belong to the client.
        header.push(stream.read_u8().await?);
    }
    let malformed = |error: ppp::v1::BinaryParseError| HeaderError::Malformed(error.to_string());
    let header = ppp::v1::Header::try_from(header.as_slice()).map_err(malformed)?;
    Ok(match header.addresses {
        ppp::v1::Addresses::Tcp4(tcp) => named(tcp.source_address.into(), tcp.source_port),
        ppp::v1::Addresses::Tcp6(tcp) => named(tcp.source_address.into(), tcp.source_port),
        ppp::v1::Addresses::Unknown => None,
    })
}

async fn read_v2(
    stream: &mut (impl AsyncRead + Unpin),
    mut header: Vec<u8>,
) -> Result<Option<SocketAddr>, HeaderError> {
    header.resize(FIXED_BYTES_V2, 0);
    stream.read_exact(&mut header[START_BYTES..]).await?;
    let rest = usize::from(u16::from_be_bytes([header[14], header[15]]));
    if rest > REST_BYTES_MAX_V2 {
        return Err(HeaderError::TooLong);
    }
    header.resize(FIXED_BYTES_V2 + rest, 0);
    stream.read_exact(&mut header[FIXED_BYTES_V2..]).await?;
    // The proxy's own connection, whatever the rest says.
    if header[START_BYTES] == LOCAL {
        return Ok(None);
    }
    let malformed = |error: ppp::v2::ParseError| HeaderError::Malformed(error.to_string());
    let header = ppp::v2::Header::try_from(header.as_slice()).map_err(malformed)?;
    if header.protocol != ppp::v2::Protocol::Stream {
        return Ok(None);
    }
    Ok(match header.addresses {
        ppp::v2::Addresses::IPv4(tcp) => named(tcp.source_address.into(), tcp.source_port),
        ppp::v2::Addresses::IPv6(tcp) => named(tcp.source_address.into(), tcp.source_port),
        ppp::v2::Addresses::Unix(_) | ppp::v2::Addresses::Unspecified => None,
    })
}

/// No client has the unspecified address.
fn named(address: IpAddr, port: u16) -> Option<SocketAddr> {
    (!address.is_unspecified()).then_some(SocketAddr::new(address, port))
}

/// Logs a connection that is closed for its header, at most once a minute.
pub(super) fn report(error: &HeaderError, peer: IpAddr) {
    static CLOSED: AtomicU64 = AtomicU64::new(0);
    let closed = CLOSED.fetch_add(1, Ordering::Relaxed) + 1;
    let peer = crate::serve::unix_client::shown(peer);
    if super::accept::should_log(&LOGGED) {
        tracing::warn!(%peer, %error, closed, "closed a connection where the PROXY protocol is configured (logged once a minute; `closed` counts all)");
    } else {
        tracing::debug!(%peer, %error, closed, "closed a connection where the PROXY protocol is configured");
    }
}

/// When the last report was.
static LOGGED: AtomicU64 = AtomicU64::new(0);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The result, and the bytes that were left.
    async fn read_from(mut bytes: &[u8]) -> (Result<Option<SocketAddr>, HeaderError>, &[u8]) {
        let result = read(&mut bytes, Duration::from_secs(1)).await;
        (result, bytes)
    }

    fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        [ppp::v2::PROTOCOL_PREFIX, &[command, family], &(rest.len() as u16).to_be_bytes(), rest].concat()
    }

    const IPV4: [u8; 12] = [192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x34, 0, 80];

    #[tokio::test]
    async fn both_versions_name_the_client_and_leave_its_bytes() {
        let ipv6 = [&[0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[7], &[0; 15], &[1], &[0, 5, 0, 80]].concat();
        // Fields behind the addresses.
        let fields = [&IPV4[..], &[4, 0, 3, 1, 2, 3, 0xe0, 0xff, 0xff]].concat();
        for (header, client) in [
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 4660 80\r\n".to_vec(), Some("192.0.2.7:4660")),
            (b"PROXY TCP6 2001:db8::7 ::1 5 80\r\n".to_vec(), Some("[2001:db8::7]:5")),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n".to_vec(), None),
            (b"PROXY TCP4 0.0.0.0 10.0.0.1 4660 80\r\n".to_vec(), None),
            (v2(0x21, 0x11, &IPV4), Some("192.0.2.7:4660")),
            (v2(0x21, 0x11, &fields), Some("192.0.2.7:4660")),
            (v2(0x21, 0x21, &ipv6), Some("[2001:db8::7]:5")),
            (v2(0x21, 0x21, &[0; 36]), None),
            (v2(0x20, 0x00, b""), None),
            (v2(0x20, 0x11, &IPV4), None),
            (v2(0x20, 0x11, b"less"), None),
            (v2(0x21, 0x00, b"anything"), None),
            (v2(0x21, 0x12, &IPV4), None),
            (v2(0x21, 0x31, &[b'a'; 216]), None),
        ] {
            let sent = [&header, &b"GET / HTTP/1.1"[..]].concat();
            let (found, left) = read_from(&sent).await;
            let client = client.map(|client| client.parse().unwrap());
            assert_eq!(found.unwrap(), client, "{}", String::from_utf8_lossy(&header));
            assert_eq!(left, b"GET / HTTP/1.1");
        }
    }

    #[tokio::test]
    async fn anything_else_is_refused() {
        let long = format!("PROXY TCP4 192.0.2.7 {}", "1".repeat(200));
        for (sent, expected) in [
            (&b"GET / HTTP/1.1\r\n"[..], "without a PROXY header"),
            (b"\r\n\r\n\0\r\nQUIX\n\x21\x11", "without a PROXY header"),
            (b"PROXY TCP4", "ended within"),
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 46", "ended within"),
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 4660 80\n", "malformed"),
            (b"PROXY TCP4 2001:db8::7 10.0.0.1 4660 80\r\n", "malformed"),
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 99999 80\r\n", "malformed"),
            (b"PROXY TCP4  192.0.2.7 10.0.0.1 1 80\r\n", "malformed"),
            (b"PROXY UDP4 192.0.2.7 10.0.0.1 1 80\r\n", "malformed"),
            (b"PROXY TCP4\xff192.0.2.7 10.0.0.1 1 80\r\n", "malformed"),
            (long.as_bytes(), "longer"),
            (&v2(0x31, 0x11, &IPV4), "malformed"),
            (&v2(0x22, 0x11, &IPV4), "malformed"),
            (&v2(0x21, 0x41, &IPV4), "malformed"),
            (&v2(0x21, 0x11, &IPV4[..11]), "malformed"),
            (&v2(0x21, 0x11, &vec![0; REST_BYTES_MAX_V2 + 1]), "longer"),
            (&v2(0x21, 0x11, &IPV4)[..20], "ended within"),
        ] {
            let error = read_from(sent).await.0.unwrap_err().to_string();
            assert!(error.contains(expected), "{}: {error}", String::from_utf8_lossy(sent));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_header_in_pieces_has_a_timeout() {
        let (mut near, mut far) = tokio::io::duplex(64);
        let reading = tokio::spawn(async move { read(&mut near, Duration::from_secs(5)).await });
        tokio::io::AsyncWriteExt::write_all(&mut far, b"PROXY TCP4 192.0.2.7 ").await.unwrap();
        let error = reading.await.unwrap().unwrap_err();
        assert!(matches!(error, HeaderError::Late(_)), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            start in prop::sample::select(vec![&b""[..], b"PROXY ", b"PROXY TCP6 ", ppp::v2::PROTOCOL_PREFIX]),
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let sent = [start, &bytes].concat();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let (result, left) = read_from(&sent).await;
                assert!(sent.ends_with(left));
                if let Ok(Some(client)) = result {
                    assert!(!client.ip().is_unspecified());
                }
            });
        }
    }
}
