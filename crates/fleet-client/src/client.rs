//! The client's end.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use eyewall::{Cache, Foreign, Made, SecondLevel};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::protocol::{self, MESSAGE_BYTES_MAX, Offer, Request};

/// How long a fill waits for the agent.
pub const WAIT: Duration = Duration::from_millis(250);
/// How long an agent that doesn't answer is left out.
const REST: Duration = Duration::from_secs(1);

/// The second level of a volume, by the agent beside it.
#[derive(Debug)]
pub struct Client {
    socket: PathBuf,
    /// Until when the agent is left out, in milliseconds of [`now_ms`].
    rests_until_ms: AtomicU64,
}

/// The same cache with the fleet's agent as its second level. Without effect for a volume without a path. If no agent runs, fills do without.
#[must_use]
pub fn join(cache: &Cache) -> Cache {
    match cache.path() {
        Some(path) => cache.with_second_level(Arc::new(Client::at(socket_of(path)))),
        None => cache.clone(),
    }
}

/// The socket of the agent of the volume at this path: `<name>.agent` beside it.
pub fn socket_of(volume: &Path) -> PathBuf {
    let mut name = volume.file_name().unwrap_or_default().to_owned();
    name.push(".agent");
    volume.with_file_name(name)
}

impl Client {
    /// A client of the agent at this socket.
    pub fn at(socket: PathBuf) -> Self {
        Self { socket, rests_until_ms: AtomicU64::new(0) }
    }

    /// Talks to the agent, unless it is left out.
    fn talk<T>(&self, talk: impl FnOnce(&mut Socket) -> io::Result<T>) -> Option<T> {
        if now_ms() < self.rests_until_ms.load(Relaxed) {
            return None;
        }
        let talked = self.connect().and_then(|mut socket| talk(&mut socket));
        if talked.is_err() {
            self.rests_until_ms.store(now_ms() + REST.as_millis() as u64, Relaxed);
        }
        talked.ok()
    }

    fn connect(&self) -> io::Result<Socket> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        // This also limits how long the connection waits for a place in a queue.
        socket.set_write_timeout(Some(WAIT))?;
        socket.set_read_timeout(Some(WAIT))?;
        socket.connect(&SockAddr::unix(&self.socket)?)?;
        Ok(socket)
    }
}

impl SecondLevel for Client {
    fn ask(&self, key: &[u8]) -> Option<Foreign> {
        let answer = self.talk(|socket| {
            socket.write_all(&Request::Ask(key.to_vec()).encode())?;
            let mut length = [0; 4];
            socket.read_exact(&mut length)?;
            let length = u32::from_le_bytes(length) as usize;
            if length > MESSAGE_BYTES_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let mut message = vec![0; length];
            socket.read_exact(&mut message)?;
            Ok(message)
        });
        protocol::decode_answer(&answer?)
    }

    fn offer(&self, made: &Made<'_>) {
        if made.value.len() + made.metadata.len() + made.key.len() > MESSAGE_BYTES_MAX / 2 {
            return;
        }
        let object = Foreign {
            value: made.value.to_vec(),
            metadata: made.metadata.to_vec(),
            tags: made.tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ttl: made.ttl,
            stale: made.stale,
        };
        let offer = Offer { volume: made.volume, epoch: made.begun.number(), key: made.key.to_vec(), object };
        // Nobody waits for it to arrive.
        let _ = self.talk(|socket| socket.write_all(&Request::Offer(offer).encode()));
    }
}

/// Milliseconds since the first call.
fn now_ms() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    // Otherwise the first moment would be zero, at which no client rests.
    START.get_or_init(Instant::now).elapsed().as_millis() as u64 + 1
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::os::unix::net::UnixListener;

    use eyewall::{Fill, FillOptions, Options};

    use super::*;

    fn fill(cache: &Cache, key: &str) -> Vec<u8> {
        let made = || Ok::<_, Infallible>(Fill::Value(b"made".to_vec()));
        let filled = cache.get_or_fill(key, Duration::from_secs(5), &FillOptions::new(), made).unwrap();
        filled.value().unwrap().to_vec()
    }

    fn message(stream: &mut impl io::Read) -> Vec<u8> {
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        let mut message = vec![0; u32::from_le_bytes(length) as usize];
        stream.read_exact(&mut message).unwrap();
        message
    }

    #[test]
    fn fills_ask_the_agent_and_offer_what_they_make() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        let cache = join(&Options::new().size(1 << 20).open(&path).unwrap());
        assert_eq!(fill(&cache, "without an agent"), b"made");
        let listener = UnixListener::bind(socket_of(cache.path().unwrap())).unwrap();
        let client = Client::at(socket_of(cache.path().unwrap()));
        let cache = cache.with_second_level(Arc::new(client));
        let identity = cache.identity();
        let agent = std::thread::spawn(move || {
            let object = Foreign { value: b"of another".to_vec(), ..Foreign::default() };
            for answer in [Some(object), None] {
                let mut stream = listener.accept().unwrap().0;
                assert!(matches!(Request::decode(&message(&mut stream)), Some(Request::Ask(_))));
                stream.write_all(&protocol::encode_answer(answer.as_ref())).unwrap();
            }
            let mut stream = listener.accept().unwrap().0;
            let Some(Request::Offer(offer)) = Request::decode(&message(&mut stream)) else { panic!("an offer") };
            assert_eq!((offer.volume, &offer.key[..], &offer.object.value[..]), (identity, &b"two"[..], &b"made"[..]));
            listener
        });
        assert_eq!((fill(&cache, "one"), fill(&cache, "two")), (b"of another".to_vec(), b"made".to_vec()));
        // The agent doesn't answer any more: one fill waits for it, and the next ones don't.
        let _listener = agent.join().unwrap();
        assert_eq!((fill(&cache, "three"), fill(&cache, "four")), (b"made".to_vec(), b"made".to_vec()));
    }
}
