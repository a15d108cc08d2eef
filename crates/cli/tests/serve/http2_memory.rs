//! The memory of many stalled HTTP/2 streams goes back to the system when they end.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::client::{Reply, connect};
use crate::common::http2;
use crate::common::origin::Origin;
use crate::common::server::{Server, anonymous_bytes};

const CONNECTIONS: usize = 100;
const STREAMS: u32 = 100;
const PATIENCE: Duration = Duration::from_mins(1);

/// A connection whose streams all request `/page`, and take none of it, because their windows are empty.
fn stall(server: &Server) -> TcpStream {
    let mut bytes = http2::PREFACE.to_vec();
    bytes.extend(http2::frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    for number in 0..STREAMS {
        bytes.extend(http2::frame(1, 5, 2 * number + 1, http2::GET_PAGE));
    }
    let mut stream = connect(server.address);
    stream.write_all(&bytes).unwrap();
    // By then the heads of all responses have come.
    let (mut heads, mut said) = (0, Vec::new());
    while heads < STREAMS {
        let mut piece = [0; 16 << 10];
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "the server closed the connection");
        said.extend_from_slice(&piece[..count]);
        while let Some(length) = said.get(..9).map(|head| 9 + (usize::from(head[1]) << 8) + usize::from(head[2]))
            && said.len() >= length
        {
            heads += u32::from(said[3] == 1);
            said.drain(..length);
        }
    }
    stream
}

#[test]
fn memory_is_given_back_when_streams_end() {
    let origin = Origin::answering(|_| (200, "Cache-Control: max-age=600".to_owned(), vec![b'x'; 9_689]));
    let server = Server::over_origin(&origin.url());
    server.get_until("/page", Reply::is_hit);
    let before = anonymous_bytes(server.child.id());
    let stalled: Vec<TcpStream> = (0..CONNECTIONS).map(|_| stall(&server)).collect();
    let during = anonymous_bytes(server.child.id());
    assert!(during > before + (8 << 20), "{before} bytes, then {during}: they hold hardly anything");
    drop(stalled);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let after = anonymous_bytes(server.child.id());
        if after < before + (during - before) / 2 {
            return;
        }
        assert!(Instant::now() < deadline, "{before} bytes, then {during}, and {after} when they were gone");
        thread::sleep(Duration::from_millis(100));
    }
}
