//! Objects that the volumes of a fleet share: what a fill at one has made, a fill at another one gets.
//!
//! ```text
//! Client of crates/fleet-client ──Unix socket──> Sharing ──> eyewall-second-level
//! ```
//! An object carries the line of the log up to which it is right ([`Epochs`]), taken when the work on it began. The agent gives an object to
//! a fill only if no later line covers it, by the fleet's notes. A purge of a program in this volume has no line yet, so nothing is given
//! while such purges are on their way. A purge that comes later is noted in the volume after the fill has begun, and the volume judges by that.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use eyewall::{Cache, Foreign};
use eyewall_fleet::{AsOf, Subject};
use eyewall_fleet_client::protocol::{self, MESSAGE_BYTES_MAX, Offer, Request};
use eyewall_fleet_client::socket_of;
use eyewall_fleet_redis::Fleet;
use eyewall_second_level::SecondLevel;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use crate::epochs::Epochs;

/// The first part of all keys: a server of the fleet has other objects in the same store.
const KEYS: &[u8] = b"entry\0";
/// Objects without a time to live are kept that long.
const TTL_MAX: Duration = Duration::from_hours(24);
/// How long a client may take for its request, and for the answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(1);
/// How many clients are served at the same time. The others wait, and go on without an answer after their own timeout.
const CLIENTS_MAX: usize = 256;
const VERSION: u8 = 1;

/// What the connections of all clients need.
pub(crate) struct Sharing {
    pub(crate) cache: Cache,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) second_level: SecondLevel,
    pub(crate) epochs: Arc<Mutex<Epochs>>,
}

/// The socket of an agent. Its file goes with it.
pub(crate) struct Door {
    listener: UnixListener,
    path: PathBuf,
}

impl Door {
    /// Opens the socket beside a volume, for the users of the volume. The caller is the volume's only node, so a file that is there is left
    /// over.
    pub(crate) fn open(volume: &Path) -> io::Result<Self> {
        let path = socket_of(volume);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        let mode = volume.metadata()?.permissions().mode() & 0o666;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
        Ok(Self { listener, path })
    }

    /// Answers clients, until it is dropped.
    pub(crate) async fn serve(&self, sharing: Arc<Sharing>) {
        let places = Arc::new(Semaphore::new(CLIENTS_MAX));
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let sharing = Arc::clone(&sharing);
                    // A client that has gone needs no answer.
                    tokio::spawn(async move {
                        let _ = sharing.answer(stream).await;
                        drop(place);
                    });
                }
                // Descriptors have run out, for instance.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // The next agent removes what stays.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Sharing {
    async fn answer(&self, mut stream: UnixStream) -> io::Result<()> {
        match Request::decode(&in_time(read(&mut stream)).await?) {
            Some(Request::Ask(key)) => {
                let found = self.ask(&key).await;
                in_time(stream.write_all(&protocol::encode_answer(found.as_ref()))).await
            }
            Some(Request::Offer(offer)) => {
                self.offer(&offer);
                Ok(())
            }
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    async fn ask(&self, key: &[u8]) -> Option<Foreign> {
        self.fleet.as_of()?;
        let bytes = self.second_level.ask(&[KEYS, key].concat()).await?;
        let (as_of, object) = decode(&bytes)?;
        let is_right = self.fleet.allows(&as_of, Subject { address: "", key, tags: &object.tags });
        if !is_right {
            self.second_level.was_outdated();
        }
        Some(object).filter(|_| is_right)
    }

    fn offer(&self, offer: &Offer) {
        // A gap after this empties the epochs.
        if offer.volume != self.cache.identity() || self.fleet.as_of().is_none() {
            return;
        }
        let epochs = self.epochs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(as_of) = epochs.as_of(offer.epoch) else { return };
        let bytes = encode(as_of, &offer.object);
        drop(epochs);
        let ttl = offer.object.ttl.map_or(TTL_MAX, |ttl| ttl.saturating_add(offer.object.stale).min(TTL_MAX));
        self.second_level.offer(&[KEYS, &offer.key].concat(), Bytes::from(bytes), ttl);
    }
}

async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(CLIENT_TIMEOUT, work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn read(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u32_le().await? as usize;
    if length > MESSAGE_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut message = vec![0; length];
    stream.read_exact(&mut message).await?;
    Ok(message)
}

/// An object as the second level has it: version 1 | wall clock 8 | length of the place 2 | place | object.
fn encode(as_of: &AsOf, object: &Foreign) -> Vec<u8> {
    let place = as_of.to_text();
    let mut bytes = vec![VERSION];
    bytes.extend(wall_ms().to_le_bytes());
    bytes.extend((place.len() as u16).to_le_bytes());
    bytes.extend(place.as_bytes());
    bytes.extend(protocol::encode_object(object));
    bytes
}

/// The object, with the times that are left, if it is still fresh.
fn decode(bytes: &[u8]) -> Option<(AsOf, Foreign)> {
    let (version, rest) = bytes.split_first()?;
    let (then, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (place, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    let as_of = AsOf::parse(std::str::from_utf8(place).ok()?)?;
    let mut object = protocol::decode_object(rest)?;
    let age = Duration::from_millis(wall_ms().saturating_sub(u64::from_le_bytes(*then)));
    object.ttl = match object.ttl {
        None => None,
        Some(ttl) => Some(ttl.checked_sub(age).filter(|left| !left.is_zero())?),
    };
    (*version == VERSION).then_some((as_of, object))
}

fn wall_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use eyewall_fleet::Reign;

    use super::*;

    #[test]
    fn an_object_ages_in_the_store() {
        let as_of = AsOf { line: 7, written_in: Reign::new("reign"), reign: Reign::new("later") };
        let object = Foreign { value: b"value".to_vec(), ttl: Some(Duration::from_mins(1)), ..Foreign::default() };
        let mut bytes = encode(&as_of, &object);
        let (found, left) = decode(&bytes).unwrap();
        assert!(found == as_of && left.value == b"value" && left.ttl <= object.ttl);
        let earlier = wall_ms() - 50_000;
        bytes[1..9].copy_from_slice(&earlier.to_le_bytes());
        assert!(decode(&bytes).unwrap().1.ttl.unwrap() <= Duration::from_secs(10));
        bytes[1..9].copy_from_slice(&(earlier - 20_000).to_le_bytes());
        assert!(decode(&bytes).is_none(), "it has expired");
        let forever = encode(&as_of, &Foreign { ttl: None, ..object });
        assert_eq!(decode(&forever).unwrap().1.ttl, None);
        assert!(decode(&[&[2], &forever[1..]].concat()).is_none() && decode(&forever[..9]).is_none());
    }
}
