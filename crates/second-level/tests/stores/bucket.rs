//! A bucket of a test: a small server that speaks as much of S3 as a second level uses. It takes only requests that are signed.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The access key that it wants.
pub(crate) const ACCESS_KEY: &str = "AKIATEST";

pub(crate) struct Bucket {
    address: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    objects: Mutex<HashMap<String, Vec<u8>>>,
    delay_ms: AtomicU64,
    /// The status of all answers, if not zero.
    status: AtomicU64,
    asked: AtomicU64,
}

impl Bucket {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = format!("http://{}", listener.local_addr().expect("it is bound"));
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        // It ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || while answer(&stream, &state).is_some() {});
            }
        });
        Self { address, state }
    }

    /// The `endpoint` of the settings.
    pub(crate) fn url(&self) -> String {
        self.address.clone()
    }

    /// From now on each answer comes after this time.
    pub(crate) fn delay(&self, delay: Duration) {
        self.state.delay_ms.store(delay.as_millis() as u64, Ordering::SeqCst);
    }

    /// From now on each answer has this status; 0: as it should be.
    pub(crate) fn fail(&self, status: u64) {
        self.state.status.store(status, Ordering::SeqCst);
    }

    /// The paths of the objects.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.state.objects.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// How many requests there were.
    pub(crate) fn asked(&self) -> u64 {
        self.state.asked.load(Ordering::SeqCst)
    }
}

/// Answers one request. `None`: the connection has ended.
fn answer(mut stream: &TcpStream, state: &State) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        if line == "\r\n" {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let field = |name: &str| {
        lines.iter().filter_map(|line| line.split_once(": ")).find(|(found, _)| found.eq_ignore_ascii_case(name))
    };
    let length = field("content-length").and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut words = lines.first()?.split(' ');
    let (method, path) = (words.next()?, words.next()?.to_owned());
    state.asked.fetch_add(1, Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(state.delay_ms.load(Ordering::SeqCst)));
    let signed = format!("AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/");
    let is_signed = field("authorization").is_some_and(|(_, value)| value.starts_with(&signed));
    let mut objects = state.objects.lock().unwrap_or_else(PoisonError::into_inner);
    let (status, body) = match (state.status.load(Ordering::SeqCst), method) {
        (status, _) if status != 0 => (status, Vec::new()),
        _ if !is_signed => (403, Vec::new()),
        (_, "PUT") => {
            objects.insert(path, body);
            (200, Vec::new())
        }
        (_, "DELETE") => {
            objects.remove(&path);
            (204, Vec::new())
        }
        _ => objects.get(&path).map_or((404, Vec::new()), |object| (200, object.clone())),
    };
    drop(objects);
    let date = "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nETag: \"1\"";
    let head = format!("HTTP/1.1 {status} Status\r\n{date}\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), &body].concat()).ok()
}
