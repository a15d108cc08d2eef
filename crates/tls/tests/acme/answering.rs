//! What an authority meets: a DNS server, and a web server at ports 80 and 443, here at others.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use eyewall_tls::acme::{Challenges, HTTP_PATH};
use eyewall_tls::clock::SystemClock;
use eyewall_tls::{Certificates, MinimumVersion, Tickets, server_config};
use rustls::ServerConnection;

/// A thread that answers at a socket, until it is dropped.
pub(crate) struct Answering {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Answering {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Answers each connection by itself.
    pub(crate) fn tcp(answer: impl Fn(TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let is_told = is_over.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_told.load(Ordering::Relaxed) {
                    return;
                }
                answer(stream.unwrap());
            }
        });
        Self { address, is_over, thread: Some(thread) }
    }

    /// HTTP-01 at a port of its own.
    pub(crate) fn http(challenges: impl Fn() -> Option<Arc<Challenges>> + Send + 'static) -> Self {
        Self::tcp(move |mut stream| {
            let mut line = String::new();
            let _ = BufReader::new(&stream).read_line(&mut line);
            let path = line.split(' ').nth(1).unwrap_or_default();
            let token = path.strip_prefix(HTTP_PATH).unwrap_or_default();
            let answer = challenges().and_then(|challenges| challenges.http_response(token));
            let (status, body) = answer.map_or(("404 Not Found", String::new()), |body| ("200 OK", body));
            let bytes = body.len();
            let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n{body}");
        })
    }

    /// DNS by TCP: every name is 127.0.0.1, and the TXT records of a name are the lines of a file in a folder.
    pub(crate) fn dns(folder: PathBuf) -> Self {
        Self::tcp(move |mut stream| {
            let mut bytes = [0; 2];
            while stream.read_exact(&mut bytes).is_ok() {
                let mut question = vec![0; usize::from(u16::from_be_bytes(bytes))];
                let _ = stream.read_exact(&mut question);
                let Some(answer) = resolve(&question, &folder) else { return };
                let bytes = (answer.len() as u16).to_be_bytes();
                let _ = stream.write_all(&[&bytes, &answer[..]].concat());
            }
        })
    }
}

/// Answers a handshake, which is all that TLS-ALPN-01 needs.
pub(crate) fn shake(mut stream: &TcpStream, certificates: Arc<Certificates>) {
    let tickets = Arc::new(Tickets::in_memory(Arc::new(SystemClock)).unwrap());
    let config = server_config(certificates, tickets, MinimumVersion::Tls12).unwrap();
    let mut connection = ServerConnection::new(config).unwrap();
    while connection.is_handshaking() && connection.complete_io(&mut stream).is_ok() {}
    connection.send_close_notify();
    let _ = connection.write_tls(&mut stream);
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
        let _ = self.thread.take().unwrap().join();
    }
}

/// The answer to a question of one name (RFC 1035, section 4).
fn resolve(question: &[u8], folder: &Path) -> Option<Vec<u8>> {
    const A: u16 = 1;
    const TXT: u16 = 16;
    let (head, mut rest) = question.split_at_checked(12)?;
    let mut labels = Vec::new();
    loop {
        let (length, after) = rest.split_first()?;
        if *length == 0 {
            rest = after;
            break;
        }
        let (label, after) = after.split_at_checked(usize::from(*length))?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        rest = after;
    }
    let kind = u16::from_be_bytes([*rest.first()?, *rest.get(1)?]);
    let asked = &question[12..question.len() - rest.len() + 4];
    let values: Vec<Vec<u8>> = match kind {
        A => vec![vec![127, 0, 0, 1]],
        TXT => {
            let lines = std::fs::read_to_string(folder.join(labels.join("."))).unwrap_or_default();
            lines.lines().map(|line| [&[line.len() as u8], line.as_bytes()].concat()).collect()
        }
        _ => Vec::new(),
    };
    // An answer, without an error, to one question.
    let mut answer = [&head[..2], &[0x81, 0x80, 0, 1, 0, values.len() as u8, 0, 0, 0, 0], asked].concat();
    for value in values {
        // The name of the question, the kind, the class, a minute, the value.
        answer.extend([0xc0, 12]);
        answer.extend(kind.to_be_bytes());
        answer.extend([0, 1, 0, 0, 0, 60]);
        answer.extend((value.len() as u16).to_be_bytes());
        answer.extend(value);
    }
    Some(answer)
}
