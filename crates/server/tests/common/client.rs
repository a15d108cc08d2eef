//! A small HTTP client: it sends exactly what a test gives it, and shows exactly what comes back.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A test fails if the server hangs for this time.
const PATIENCE: Duration = Duration::from_mins(1);

/// A response as it came.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether the body was whole when the connection was closed.
    pub(crate) is_whole: bool,
}

impl Reply {
    /// The first field of this name, written small; an empty text if there is none.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
    }

    /// The `Cache-Status` that Eyewall added.
    pub(crate) fn cache(&self) -> &str {
        self.fields.iter().rev().find(|(field, _)| field == "cache-status").map_or("", |(_, value)| value)
    }

    pub(crate) fn is_hit(&self) -> bool {
        self.cache().starts_with("Eyewall; hit")
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is text")
    }
}

/// One request on a connection of its own. `fields` are lines without their ends.
pub(crate) fn ask(server: SocketAddr, method: &str, target: &str, fields: &[&str]) -> Reply {
    let mut stream = connect(server);
    send(&mut stream, method, target, fields);
    let mut bytes = Vec::new();
    // A server may reset a connection that it cuts off: the bytes before that are the reply.
    let _ = stream.read_to_end(&mut bytes);
    parse(&bytes, method == "HEAD")
}

pub(crate) fn get(server: SocketAddr, target: &str) -> Reply {
    ask(server, "GET", target, &[])
}

pub(crate) fn connect(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit can be set");
    stream
}

/// Sends a request that asks for the connection to be closed after it.
pub(crate) fn send(stream: &mut TcpStream, method: &str, target: &str, fields: &[&str]) {
    let mut request = format!("{method} {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n");
    for field in fields {
        request += field;
        request += "\r\n";
    }
    request += "\r\n";
    stream.write_all(request.as_bytes()).expect("the server takes a request");
}

/// Reads a message that ended with its connection.
pub(crate) fn parse(bytes: &[u8], is_head: bool) -> Reply {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no head in {:?}", String::from_utf8_lossy(bytes)));
    let head = std::str::from_utf8(&bytes[..end]).expect("the head is text");
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status line");
    let fields: Vec<(String, String)> = lines
        .map(|line| line.split_once(':').expect("a field"))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut reply =
        Reply { status: status.parse().expect("a status"), fields, body: bytes[end + 4..].to_vec(), is_whole: true };
    if reply.field("transfer-encoding") == "chunked" {
        (reply.body, reply.is_whole) = unchunk(&reply.body);
    } else if !is_head && reply.status != 304 && !reply.field("content-length").is_empty() {
        reply.is_whole = reply.field("content-length") == reply.body.len().to_string();
    }
    reply
}

/// The bytes of a chunked body, and whether its last chunk is there.
fn unchunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|window| window == b"\r\n") else { return (body, false) };
        let digits = std::str::from_utf8(&rest[..end]).expect("a chunk's size is text");
        let bytes = usize::from_str_radix(digits, 16).expect("a chunk's size");
        if bytes == 0 {
            return (body, true);
        }
        let Some(chunk) = rest.get(end + 2..end + 2 + bytes) else { return (body, false) };
        body.extend(chunk);
        rest = rest.get(end + 4 + bytes..).unwrap_or_default();
    }
}
