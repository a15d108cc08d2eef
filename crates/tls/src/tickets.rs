//! Session tickets (RFC 5077; RFC 8446, section 4.6.1), whose keys worker threads, processes and restarts share by a secret file.
//!
//! ```text
//! file     a line for each key, newest first:    start in seconds since 1970 " " 64 hexadecimal digits
//! ticket   name of the key (8 bytes) | nonce (12) | ciphertext | tag (16)
//! ```
//! The cipher is AES-256-GCM with a random nonce, which is safe for 2^32 tickets of a key (NIST SP 800-38D, section 8.3). A key's name is
//! the beginning of its SHA-256; the name is authenticated with the ticket.
//!
//! ```text
//! start                    12 h                    24 h                    36 h
//!   | makes and reads tickets | only reads tickets                           | is gone
//! ```
//! An attacker who learns a key can decrypt the connections of TLS 1.2 that its tickets resumed. So a dropped key is overwritten in memory,
//! and the file is replaced by one without it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};
use rustls::server::ProducesTickets;
use zeroize::Zeroizing;

use crate::clock::{Clock, locked, unix_seconds};
use crate::file::{self, FileLock, Stamp};

/// How long a key makes tickets, in seconds.
const PERIOD_SECONDS: u64 = 12 * 60 * 60;

/// How long a client may use a ticket, in seconds. RFC 8446 allows a week.
const TICKET_SECONDS: u32 = 24 * 60 * 60;

/// The keys that are kept: as many as the tickets of one outlive its period, and itself.
const KEYS: usize = 3;

/// After this time a key is neither used nor kept, in seconds.
const KEY_SECONDS_MAX: u64 = KEYS as u64 * PERIOD_SECONDS;

/// How long before its first use a key stands in the file, in seconds: all processes read the file meanwhile.
const LEAD_SECONDS: u64 = 60;

const KEY_BYTES: usize = 32;
const NAME_BYTES: usize = 8;
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;

/// Why there are no keys for tickets, or no new ones.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TicketError {
    /// The file can't be read or written.
    #[error("can't use the keys for session tickets in {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Others than the owner may read or write the file.
    #[error("other users may read the keys for session tickets in {0}; delete it, and Eyewall makes new ones", path.display())]
    OpenToOthers {
        /// The file.
        path: PathBuf,
    },
    /// A line is no key.
    #[error("line {line} of {} is no key for session tickets; delete the file, and Eyewall makes a new one", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes for a key for session tickets")]
    Random,
}

/// Makes and reads session tickets.
///
/// Handshakes read the keys behind an atomic pointer; [`Tickets::look`] puts others in their place. A ticket that can't be read costs a
/// full handshake, and nothing else.
pub struct Tickets {
    keys: ArcSwap<Vec<Arc<Key>>>,
    source: Option<Source>,
    clock: Arc<dyn Clock>,
}

/// The file that the keys are in. Only [`Tickets::look`] changes what is behind the locks.
struct Source {
    path: PathBuf,
    /// That of the file when it was last read.
    stamp: Mutex<Option<Stamp>>,
    /// The last reported error.
    error: Mutex<Option<String>>,
}

/// A key as the file has it.
struct Secret {
    start: u64,
    bytes: Zeroizing<[u8; KEY_BYTES]>,
}

/// A key in use. The library overwrites it when it is dropped.
struct Key {
    start: u64,
    name: [u8; NAME_BYTES],
    cipher: RandomizedNonceKey,
}

impl Tickets {
    /// Keys of this process alone: they are lost with it.
    ///
    /// # Errors
    /// [`TicketError::Random`].
    pub fn in_memory(clock: Arc<dyn Clock>) -> Result<Self, TicketError> {
        let key = Secret::new(unix_seconds(clock.now()))?.key()?;
        Ok(Self { keys: ArcSwap::from_pointee(vec![key]), source: None, clock })
    }

    /// The keys of a file, which is made if there is none: mode 0600, and a lock file beside it, named as the file with `.lock` behind.
    ///
    /// # Errors
    /// Those of the system; the file is broken, or others may read it.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, TicketError> {
        let source = Source { path: path.to_owned(), stamp: Mutex::default(), error: Mutex::default() };
        let tickets = Self { keys: ArcSwap::default(), source: Some(source), clock };
        if let Some(source) = &tickets.source {
            tickets.update(source)?;
        }
        Ok(tickets)
    }

    /// Takes over what others wrote to the file, and makes a new key when it is time. For the server's upkeep, every second or few:
    /// processes have to look within a minute to know a new key before it is used. Whether the keys are others now.
    ///
    /// # Errors
    /// As [`Tickets::open`], once for each cause until it changes. The keys in use stay until they are too old; then clients get no tickets.
    pub fn look(&self) -> Result<bool, TicketError> {
        let Some(source) = &self.source else { return self.rotate_in_memory() };
        let result = self.update(source);
        let text = result.as_ref().err().map(ToString::to_string);
        let mut reported = locked(&source.error);
        let is_known = text.is_some() && *reported == text;
        *reported = text;
        if is_known { Ok(false) } else { result }
    }

    fn rotate_in_memory(&self) -> Result<bool, TicketError> {
        let now = unix_seconds(self.clock.now());
        let keys = self.keys.load();
        if !is_due(keys.iter().map(|key| key.start), now) {
            return Ok(false);
        }
        let old = keys.iter().filter(|key| is_worth_keeping(key.start, now)).take(KEYS - 1);
        let new = std::iter::once(Secret::new(now)?.key()?).chain(old.cloned()).collect();
        self.keys.store(Arc::new(new));
        Ok(true)
    }

    fn update(&self, source: &Source) -> Result<bool, TicketError> {
        let now = unix_seconds(self.clock.now());
        source.make_if_missing(now)?;
        let is_read = self.read_if_changed(source)?;
        if !is_due(self.keys.load().iter().map(|key| key.start), now) {
            return Ok(is_read);
        }
        // One process makes the key under the lock; the others read the file afterwards.
        let lock = file::lock_of(&source.path);
        let Some(_lock) = FileLock::try_take(&lock).map_err(|error| source.failed(error))? else { return Ok(is_read) };
        let mut secrets = source.read()?;
        if is_due(secrets.iter().map(|secret| secret.start), now) {
            secrets.retain(|secret| is_worth_keeping(secret.start, now));
            secrets.truncate(KEYS - 1);
            let is_one_in_use = secrets.iter().any(|secret| secret.start <= now);
            let start = if is_one_in_use { now + LEAD_SECONDS } else { now };
            secrets.insert(0, Secret::new(start)?);
            source.write(&secrets)?;
        }
        Ok(self.read_if_changed(source)? || is_read)
    }

    fn read_if_changed(&self, source: &Source) -> Result<bool, TicketError> {
        // Taken before the file is read: what changes meanwhile is seen by the next look.
        let stamp = Stamp::of(&source.path);
        let mut known = locked(&source.stamp);
        if stamp.is_some() && *known == stamp {
            return Ok(false);
        }
        let keys = source.read()?.iter().map(Secret::key).collect::<Result<Vec<_>, _>>()?;
        self.keys.store(Arc::new(keys));
        *known = stamp;
        Ok(true)
    }
}

/// Whether a new key has to be made. A start further ahead than any of ours is a wrong clock's, and doesn't count.
fn is_due(starts: impl Iterator<Item = u64>, now: u64) -> bool {
    let newest = starts.filter(|start| *start <= now + PERIOD_SECONDS).max();
    newest.is_none_or(|newest| newest + PERIOD_SECONDS <= now)
}

fn is_worth_keeping(start: u64, now: u64) -> bool {
    start <= now + PERIOD_SECONDS && start + KEY_SECONDS_MAX > now
}

impl Source {
    fn failed(&self, source: io::Error) -> TicketError {
        TicketError::File { path: self.path.clone(), source }
    }

    /// Also while the server runs: by deleting the file, the operator has all keys replaced at once.
    fn make_if_missing(&self, now: u64) -> Result<(), TicketError> {
        if self.path.exists() {
            return Ok(());
        }
        let _lock = FileLock::wait(&file::lock_of(&self.path)).map_err(|error| self.failed(error))?;
        if self.path.exists() { Ok(()) } else { self.write(&[Secret::new(now)?]) }
    }

    fn read(&self) -> Result<Vec<Secret>, TicketError> {
        if file::is_open_to_others(&self.path, 0o077) {
            return Err(TicketError::OpenToOthers { path: self.path.clone() });
        }
        let text = file::read_secret(&self.path).map_err(|error| self.failed(error))?;
        let mut secrets = Vec::with_capacity(KEYS);
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
            let invalid = || TicketError::Invalid { path: self.path.clone(), line: number + 1 };
            secrets.push(Secret::parse(line).ok_or_else(invalid)?);
        }
        if secrets.is_empty() {
            return Err(TicketError::Invalid { path: self.path.clone(), line: 1 });
        }
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.start));
        Ok(secrets)
    }

    fn write(&self, secrets: &[Secret]) -> Result<(), TicketError> {
        // With room for all of it, so that it never moves and leaves a copy behind.
        let mut text = Zeroizing::new(Vec::with_capacity(secrets.len() * 96));
        for secret in secrets {
            secret.write(&mut text);
        }
        file::replace(&self.path, &text).map_err(|error| self.failed(error))
    }
}

impl Secret {
    fn new(start: u64) -> Result<Self, TicketError> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        aws_lc_rs::rand::fill(&mut *bytes).map_err(|_| TicketError::Random)?;
        Ok(Self { start, bytes })
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let space = line.iter().position(|byte| *byte == b' ')?;
        let start: u64 = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
        let digits = line[space + 1..].trim_ascii_end();
        // Sums of times with our periods can't overflow then.
        if start > u64::from(u32::MAX) * 4 || digits.len() != 2 * KEY_BYTES {
            return None;
        }
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        for (byte, digits) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(digits[0])? << 4 | nibble(digits[1])?;
        }
        Some(Self { start, bytes })
    }

    fn write(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(self.start.to_string().as_bytes());
        text.push(b' ');
        for byte in *self.bytes {
            text.extend([byte >> 4, byte & 15].map(|nibble| b"0123456789abcdef"[usize::from(nibble)]));
        }
        text.push(b'\n');
    }

    fn key(&self) -> Result<Arc<Key>, TicketError> {
        let mut name = [0; NAME_BYTES];
        name.copy_from_slice(&digest(&SHA256, &*self.bytes).as_ref()[..NAME_BYTES]);
        let cipher = RandomizedNonceKey::new(&AES_256_GCM, &*self.bytes).map_err(|_| TicketError::Random)?;
        Ok(Arc::new(Key { start: self.start, name, cipher }))
    }
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|nibble| nibble as u8)
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        TICKET_SECONDS
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let now = unix_seconds(self.clock.now());
        let keys = self.keys.load();
        let mut usable = keys.iter().filter(|key| is_worth_keeping(key.start, now));
        // The newest that began. After a clock was set back none may have begun; then the oldest does.
        let key = usable.clone().find(|key| key.start <= now).or_else(|| usable.next_back())?;
        let mut ticket = vec![0; NAME_BYTES + NONCE_BYTES + plain.len() + TAG_BYTES];
        let (head, body) = ticket.split_at_mut(NAME_BYTES + NONCE_BYTES);
        let (text, tag_place) = body.split_at_mut(plain.len());
        text.copy_from_slice(plain);
        let (nonce, tag) = key.cipher.seal_in_place_separate_tag(Aad::from(key.name), text).ok()?;
        tag_place.copy_from_slice(tag.as_ref());
        head[..NAME_BYTES].copy_from_slice(&key.name);
        head[NAME_BYTES..].copy_from_slice(nonce.as_ref());
        Some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_at_checked(NAME_BYTES)?;
        let (nonce, body) = rest.split_at_checked(NONCE_BYTES)?;
        let now = unix_seconds(self.clock.now());
        let keys = self.keys.load();
        let key = keys.iter().find(|key| key.name == name && is_worth_keeping(key.start, now))?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = body.to_vec();
        let bytes = key.cipher.open_in_place(nonce, Aad::from(key.name), &mut text).ok()?.len();
        text.truncate(bytes);
        Some(text)
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.source.as_ref().map(|source| &source.path);
        formatter.debug_struct("Tickets").field("path", &path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
