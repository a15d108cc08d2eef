//! The well-behaved client: hits at a fixed rate, on connections that it keeps.
//!
//! The rate doesn't fall when the server is slow. A request counts from the time at which it was due, if the response before it was
//! late; if the client itself woke late, from the time at which it was sent.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::PAGE;
use crate::hostile::way::{Reached, Wire};

/// Requests a second, of all connections.
pub(super) const RATE: u32 = 500;
const CONNECTIONS: u32 = 5;
const REQUEST: &[u8] = b"GET /page HTTP/1.1\r\nHost: test\r\n\r\n";

/// How long the responses took, in milliseconds.
#[derive(Default)]
pub(super) struct Latencies {
    all: Vec<f64>,
    /// Requests without a whole hit.
    pub(super) failed: usize,
}

impl Latencies {
    /// Sends requests for some time.
    pub(super) fn measure(&mut self, reached: &Reached, window: Duration) {
        let begin = Instant::now();
        let found: Vec<_> = thread::scope(|scope| {
            let clients: Vec<_> =
                (0..CONNECTIONS).map(|number| scope.spawn(move || ask_until(reached, number, begin, window))).collect();
            clients.into_iter().map(|client| client.join().expect("it doesn't panic")).collect()
        });
        for (latencies, failed) in found {
            self.all.extend(latencies);
            self.failed += failed;
        }
        self.all.sort_by(f64::total_cmp);
    }

    /// In milliseconds.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let place = (self.all.len() as f64 * share) as usize;
        self.all.get(place).or(self.all.last()).copied().unwrap_or(f64::NAN)
    }
}

fn ask_until(reached: &Reached, number: u32, begin: Instant, window: Duration) -> (Vec<f64>, usize) {
    let pace = Duration::from_secs(1) * CONNECTIONS / RATE;
    let mut due = begin + pace * number / CONNECTIONS;
    let (mut latencies, mut failed, mut kept, mut buffer) = (Vec::new(), 0, None, vec![0; 2 * PAGE]);
    while due < begin + window {
        let wait = due.saturating_duration_since(Instant::now());
        thread::sleep(wait);
        let from = if wait.is_zero() { due } else { Instant::now() };
        let connected = kept.take().map_or_else(|| reached.try_connect(false), Ok);
        match connected.and_then(|mut stream| ask(&mut *stream, &mut buffer).map(|()| stream)) {
            Ok(stream) => kept = Some(stream),
            Err(_) => failed += 1,
        }
        latencies.push(from.elapsed().as_secs_f64() * 1e3);
        due += pace;
    }
    (latencies, failed)
}

/// One request, whose response has to be a whole hit.
fn ask(stream: &mut dyn Wire, buffer: &mut [u8]) -> io::Result<()> {
    stream.write_all(REQUEST)?;
    stream.flush()?;
    let mut filled = 0;
    loop {
        let count = stream.read(&mut buffer[filled..])?;
        filled += count;
        let so_far = &buffer[..filled];
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some(end) = so_far.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        if filled >= end + 4 + PAGE {
            let head = String::from_utf8_lossy(&so_far[..end]).to_ascii_lowercase();
            let is_hit = head.starts_with("http/1.1 200") && head.contains("cache-status: eyewall; hit");
            return if is_hit && filled == end + 4 + PAGE { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) };
        }
    }
}
