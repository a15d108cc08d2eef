//! A relay between servers and a Redis of a test: it cuts connections, delays what passes, and stops a direction.
//!
//! Nothing overtakes anything on one connection, as over TCP. Different connections are delayed differently.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// How often a stopped direction looks whether it may go on.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// How a relay treats its connections.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weather {
    /// It refuses new connections.
    pub(crate) is_closed: bool,
    /// The longest delay.
    pub(crate) delay: Duration,
    /// Requests to Redis wait.
    pub(crate) stops_requests: bool,
    /// Answers of Redis wait.
    pub(crate) stops_answers: bool,
}

/// The direction of some bytes.
#[derive(Debug, Clone, Copy)]
enum Way {
    Request,
    Answer,
}

pub(crate) struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    target: PathBuf,
    weather: Mutex<Weather>,
    connections: Mutex<Vec<(TcpStream, UnixStream)>>,
    bytes: AtomicU64,
}

impl Relay {
    /// A relay to a Unix socket.
    pub(crate) fn to(target: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let shared =
            Shared { target, weather: Mutex::default(), connections: Mutex::default(), bytes: AtomicU64::new(0) };
        let shared = Arc::new(shared);
        let relaying = Arc::clone(&shared);
        // The thread ends with the process of the tests.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                relaying.begin(&stream);
            }
        });
        Self { address, shared }
    }

    /// Its address for `redis` of the configuration.
    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Changes the weather. Closing also cuts the connections.
    pub(crate) fn set(&self, weather: Weather) {
        *self.shared.weather() = weather;
        if weather.is_closed {
            self.cut();
        }
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        for (client, server) in self.shared.connections().drain(..) {
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
    }

    /// The bytes that have passed, in both directions.
    pub(crate) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.set(Weather { is_closed: true, ..Weather::default() });
    }
}

impl Shared {
    fn weather(&self) -> MutexGuard<'_, Weather> {
        self.weather.lock().expect("nobody panics with it")
    }

    fn connections(&self) -> MutexGuard<'_, Vec<(TcpStream, UnixStream)>> {
        self.connections.lock().expect("nobody panics with it")
    }

    fn begin(self: &Arc<Self>, client: &TcpStream) {
        if self.weather().is_closed {
            return;
        }
        // Redis may be gone.
        let Ok(server) = UnixStream::connect(&self.target) else { return };
        let _ = client.set_nodelay(true);
        let copies = || Some((client.try_clone().ok()?, server.try_clone().ok()?));
        let (Some(kept), Some(requests), Some(answers)) = (copies(), copies(), copies()) else { return };
        self.connections().push(kept);
        let (one, other) = (Arc::clone(self), Arc::clone(self));
        thread::spawn(move || {
            one.pump(Way::Request, &requests.0, &requests.1);
            let _ = requests.1.shutdown(Shutdown::Both);
        });
        thread::spawn(move || {
            other.pump(Way::Answer, &answers.1, &answers.0);
            let _ = answers.0.shutdown(Shutdown::Both);
        });
    }

    fn pump(&self, way: Way, mut from: impl Read, mut to: impl Write) {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let passed = self.bytes.fetch_add(count as u64, Ordering::Relaxed);
            let delay = loop {
                let weather = *self.weather();
                let is_stopped = match way {
                    Way::Request => weather.stops_requests,
                    Way::Answer => weather.stops_answers,
                };
                if !is_stopped {
                    // Any number that differs from one piece to the next.
                    break weather.delay * (passed.wrapping_mul(2_654_435_761) >> 7 & 255) as u32 / 255;
                }
                thread::sleep(LOOK_EVERY);
            };
            thread::sleep(delay);
            if to.write_all(&bytes[..count]).is_err() {
                return;
            }
        }
    }
}
