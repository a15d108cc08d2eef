//! Responses over HTTP/2 stay within their memory limit: Eyewall first resets the stream that has been stalled for longest.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use crate::common::client::connect;
use crate::common::http2;
use crate::common::origin::Origin;
use crate::common::server::Server;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;
/// Room for 32 responses from the cache.
const LIMIT: &str = "128K";
/// The length of the page.
const PAGE: usize = 9000;
/// More stalled streams than `LIMIT` allows.
const STREAMS: u32 = 50;

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

struct Client(TcpStream);

impl Client {
    /// The initial window of each stream.
    fn connect(server: &Server, window: u32) -> Self {
        let mut client = Self(connect(server.address));
        client.0.write_all(http2::PREFACE).unwrap();
        // SETTINGS_INITIAL_WINDOW_SIZE
        client.send(SETTINGS, 0, 0, &[&[0, 4], window.to_be_bytes().as_slice()].concat());
        client.send(SETTINGS, ACK, 0, &[]);
        client
    }

    fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.0.write_all(&http2::frame(kind, flags, stream, payload)).unwrap();
    }

    fn get(&mut self, stream: u32) {
        self.send(HEADERS, END_STREAM | END_HEADERS, stream, http2::GET_PAGE);
    }

    fn read(&mut self) -> Frame {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).expect("the server sends a frame");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).unwrap();
        let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
        Frame { kind: head[3], flags: head[4], stream, payload }
    }

    /// The next stream that is reset.
    fn reset(&mut self) -> u32 {
        loop {
            let frame = self.read();
            if frame.kind == RST_STREAM {
                return frame.stream;
            }
        }
    }

    /// The whole body of a stream.
    fn body(&mut self, stream: u32) -> usize {
        let mut bytes = 0;
        loop {
            let frame = self.read();
            assert!(frame.kind != RST_STREAM || frame.stream != stream, "it is reset");
            if frame.kind == DATA && frame.stream == stream {
                bytes += frame.payload.len();
                if frame.flags & END_STREAM != 0 {
                    return bytes;
                }
            }
        }
    }
}

/// An origin that answers with `fields` and this many bytes.
fn origin(fields: &'static str, bytes: usize) -> Origin {
    Origin::answering(move |_| (200, fields.to_owned(), vec![b'x'; bytes]))
}

fn server(limit: &str, origin: &Origin) -> Server {
    let limits = format!("[server]\n[server.limits]\nstream_bytes = \"{limit}\"\n");
    Server::configured(&format!("{limits}[[site]]\norigins = [\"{}\"]\n", origin.url()))
}

#[test]
fn the_oldest_is_reset_and_others_are_served() {
    let origin = origin("Cache-Control: max-age=60", PAGE);
    let server = server(LIMIT, &origin);
    // From now on it is stored.
    assert_eq!(server.get("/page").body.len(), PAGE);
    let mut stalled = Client::connect(&server, 0);
    let mut reset = Vec::new();
    let last = STREAMS * 2 - 1;
    for stream in (1..=last).step_by(2) {
        stalled.get(stream);
        loop {
            let frame = stalled.read();
            if frame.kind == RST_STREAM {
                reset.push(frame.stream);
            }
            assert_ne!(frame.kind, DATA, "there is no window");
            if frame.kind == HEADERS && frame.stream == stream {
                break;
            }
        }
    }
    let first: Vec<u32> = (1..).step_by(2).take(reset.len()).collect();
    assert!(reset.len() >= 10 && reset == first, "{reset:?}");

    let mut reading = Client::connect(&server, 65_535);
    reading.get(1);
    assert_eq!(reading.body(1), PAGE);
    // The other streams are intact.
    stalled.send(WINDOW_UPDATE, 0, last, &60_000_u32.to_be_bytes());
    assert_eq!(stalled.body(last), PAGE);
}

#[test]
fn a_connection_whose_streams_cannot_be_reset_is_closed() {
    let origin = origin("Cache-Control: max-age=60", PAGE);
    let server = server(LIMIT, &origin);
    assert_eq!(server.get("/page").body.len(), PAGE);
    // A window of one byte is enough for hyper to take all of the body.
    let mut stalled = Client::connect(&server, 1);
    for stream in (1..STREAMS * 2).step_by(2) {
        stalled.get(stream);
    }
    // It ends, or is reset if the client sends more.
    match stalled.0.read_to_end(&mut Vec::new()) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    assert_eq!(server.get("/page").body.len(), PAGE);
}

#[test]
fn responses_of_an_origin_count_too() {
    let origin = origin("Cache-Control: no-store", 1 << 20);
    let server = server("256K", &origin);
    let mut stalled = Client::connect(&server, 0);
    for stream in [1, 3, 5] {
        stalled.get(stream);
    }
    assert_eq!(stalled.reset(), 1);
}

#[test]
fn bytes_that_arrive_while_the_client_takes_nothing_count_too() {
    let origin = origin("Cache-Control: max-age=60", 1 << 20);
    let server = server("512K", &origin);
    let mut stalled = Client::connect(&server, 0);
    stalled.get(1);
    assert_eq!(stalled.reset(), 1);
}

#[test]
fn zero_turns_the_limit_off() {
    let origin = origin("Cache-Control: no-store", 1 << 20);
    let server = server("0", &origin);
    let mut client = Client::connect(&server, 0);
    for stream in [1, 3, 5] {
        client.get(stream);
    }
    client.send(WINDOW_UPDATE, 0, 0, &(2_u32 << 20).to_be_bytes());
    client.send(WINDOW_UPDATE, 0, 1, &(2_u32 << 20).to_be_bytes());
    assert_eq!(client.body(1), 1 << 20);
}
