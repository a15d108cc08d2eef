//! Origins for tests. A function of the test answers each request, on a thread of its own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request as the origin got it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) fields: Vec<(String, String)>,
}

impl Asked {
    /// The field of this name, written small; an empty text if there is none.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
    }
}

/// An origin that lives as long as the test.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Origin {
    /// Answers the first request of each connection with the bytes that the function writes, and closes it. The function may read
    /// the request's body, and further requests by [`read`].
    pub(crate) fn raw(answer: impl Fn(&Asked, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&asked);
        let origin = Self::silent(move |stream| {
            let Some(asked) = read(stream) else { return };
            record.lock().unwrap().push(asked.clone());
            answer(&asked, stream);
        });
        Self { asked, ..origin }
    }

    /// Gives each new connection to the function, and then closes it. It notes no requests.
    pub(crate) fn silent(answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Self {
        Self::silent_at(SocketAddr::from(([127, 0, 0, 1], 0)), answer)
    }

    /// The same at this address, which is free.
    pub(crate) fn silent_at(address: SocketAddr, answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let answer = Arc::new(answer);
        // The thread ends with the process of the tests.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let answer = Arc::clone(&answer);
                thread::spawn(move || answer(&mut stream.expect("a connection")));
            }
        });
        Self { address, asked: Arc::default() }
    }

    /// Answers each request by 200, these field lines, and the number of the request as the body.
    pub(crate) fn counting(fields: &'static str) -> Self {
        let count = AtomicUsize::new(0);
        Self::answering(move |_| {
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            (200, fields.to_owned(), number.to_string().into_bytes())
        })
    }

    /// Answers each request by a status, field lines and a body.
    pub(crate) fn answering(answer: impl Fn(&Asked) -> (u16, String, Vec<u8>) + Send + Sync + 'static) -> Self {
        Self::raw(move |asked, stream| {
            let (status, fields, body) = answer(asked);
            respond(stream, status, &fields, body.len(), if asked.method == "HEAD" { b"" } else { &body });
        })
    }

    /// The requests that it got, in order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Writes a response. `fields` are lines without the last one's end; the length may be a lie.
pub(crate) fn respond(stream: &mut impl Write, status: u16, fields: &str, length: usize, body: &[u8]) {
    let fields = if fields.is_empty() { String::new() } else { format!("{fields}\r\n") };
    let head = format!("HTTP/1.1 {status} Status\r\n{fields}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    // The server may have closed, which the test checks.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

/// An address without a listener.
pub(crate) fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port is free")
}

/// The head of the next request on a connection, without its body; `None` if the connection ended.
pub(crate) fn read(stream: &mut impl Read) -> Option<Asked> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    let head = String::from_utf8(head).expect("the head is text");
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let fields = lines
        .filter_map(|line| {
            line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        })
        .collect();
    Some(Asked { method, target, fields })
}
