//! Stores that are servers. Clients connect over a Unix socket in the store's directory.
//!
//! Server and client are on one machine. Each thread has a connection, with one request at a time. The few lines of
//! protocol are written here: a client library would copy each value once more, which would count against the server.

mod connection;
mod memcached;
mod process;
mod protocol;
mod redis;

use self::connection::Connection;
use self::memcached::Memcached;
use self::process::{Address, Server};
use self::protocol::Protocol;
use self::redis::Redis;
use crate::error::{Error, Result};
use crate::peer::{Absent, Attach, Found, Kind, Peer};
use crate::store::{Handle, Place, Store, check_size};

/// memcached. The cap is that of the memory for items.
pub const MEMCACHED: Peer = Served::<Memcached>::PEER;

/// redis-server without persistence. The cap is `maxmemory`, and eviction is by LRU among all keys.
pub const REDIS: Peer = Served::<Redis>::PEER;

/// A server at its address.
struct Served<P> {
    address: Address,
    /// The process, in the program that started the server: dropping it stops the server. `None` in other processes.
    _server: Option<Server>,
    cap_bytes: u64,
    protocol: std::marker::PhantomData<P>,
}

impl<P: Protocol> Served<P> {
    const PEER: Peer = Peer {
        name: P::NAME,
        kind: Kind::Other,
        look: Self::look,
        open: |place| Ok(Box::new(Self::start(place)?)),
        attach: Some(Attach::WhileOpen(|place| Ok(Box::new(Self::attach(place)?)))),
    };

    fn look() -> Found {
        let Some(program) = process::find(P::NAME) else {
            return Err(Absent(format!("{} isn't installed (apt install {})", P::NAME, P::PACKAGE)));
        };
        let printed = process::printed_version(&program)
            .map_err(|failure| Absent(format!("{} doesn't run: {failure}", program.display())))?;
        Ok(P::version(&printed).map(str::to_owned))
    }

    /// Starts a new, empty server.
    fn start(place: &Place<'_>) -> Result<Self> {
        let address = Address::of(P::NAME, place.directory)?;
        let server = Server::start(P::NAME, P::PACKAGE, &P::arguments(place), place.directory, &address)?;
        Ok(Self::at(address, Some(server), place))
    }

    /// Connects to a server that another process has started in a place.
    ///
    /// # Errors
    /// Fails if nothing listens there.
    fn attach(place: &Place<'_>) -> Result<Self> {
        let address = Address::of(P::NAME, place.directory)?;
        address.connect()?;
        Ok(Self::at(address, None, place))
    }

    fn at(address: Address, server: Option<Server>, place: &Place<'_>) -> Self {
        Self { address, _server: server, cap_bytes: place.cap_bytes, protocol: std::marker::PhantomData }
    }
}

impl<P: Protocol> Store for Served<P> {
    type Handle<'a> = ServedHandle<P>;

    fn name(&self) -> &'static str {
        P::NAME
    }

    fn handle(&self) -> ServedHandle<P> {
        ServedHandle {
            connection: self.address.connect().map_err(|failure| failure.to_string()),
            cap_bytes: self.cap_bytes,
            protocol: self.protocol,
        }
    }

    fn footprint_bytes(&self) -> Result<Option<u64>> {
        P::memory_bytes(&mut self.address.connect()?).map(Some)
    }
}

/// One thread's connection, or the error of connecting, which the first operation returns.
struct ServedHandle<P> {
    connection: std::result::Result<Connection, String>,
    cap_bytes: u64,
    protocol: std::marker::PhantomData<P>,
}

impl<P: Protocol> ServedHandle<P> {
    #[inline]
    fn connection(&mut self) -> Result<&mut Connection> {
        self.connection.as_mut().map_err(|what| Error::Store { store: P::NAME, what: what.clone() })
    }
}

impl<P: Protocol> Handle for ServedHandle<P> {
    #[inline]
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        P::get(self.connection()?, key, consumer)
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_size(P::NAME, value, self.cap_bytes)?;
        P::put(self.connection()?, key, value)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        P::delete(self.connection()?, key)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{MEMCACHED, Memcached, Place, Protocol, REDIS, Redis, Served};
    use crate::error::{Error, Result};
    use crate::peer::Peer;
    use crate::store::{Handle as _, Store};

    const CAP_BYTES: u64 = 16 << 20;

    fn place(directory: &Path) -> Place<'_> {
        Place::new(directory, CAP_BYTES, 1000)
    }

    fn is_absent(peer: &Peer) -> bool {
        (peer.look)().inspect_err(|reason| eprintln!("skipped: {reason}")).is_err()
    }

    fn serves_and_ends<P: Protocol>() -> Result<()> {
        if is_absent(&Served::<P>::PEER) {
            return Ok(());
        }
        // This path is longer than the name of a socket may be.
        let scratch = tempfile::tempdir().expect("a directory");
        let directory = scratch.path().join("a".repeat(120));
        std::fs::create_dir(&directory).expect("a directory");

        let store = Served::<P>::start(&place(&directory))?;
        let mut handle = store.handle();
        for bytes in [0, 1, 20_000, 500_000] {
            let value = crate::random::filler(1, bytes);
            handle.put(b"key", &value)?;
            let mut found = None;
            assert!(handle.get(b"key", |value| found = Some(value.to_vec()))?);
            assert!(found == Some(value), "{} of {bytes} bytes", P::NAME);
        }
        assert!(handle.delete(b"key")?);
        assert!(!handle.delete(b"key")?);
        assert!(!handle.get(b"key", |_| panic!("it is gone"))?);
        assert!(Store::footprint_bytes(&store)?.is_some_and(|bytes| bytes > 0));

        let mut other = store.address.connect()?;
        drop(store);
        assert!(P::get(&mut other, b"key", |_| {}).is_err(), "the server is gone");
        assert!(matches!(handle.put(b"key", b"value"), Err(Error::Io { .. })));
        Ok(())
    }

    #[test]
    fn memcached_serves_until_it_is_dropped() -> Result<()> {
        serves_and_ends::<Memcached>()
    }

    #[test]
    fn redis_serves_until_it_is_dropped() -> Result<()> {
        serves_and_ends::<Redis>()
    }

    #[test]
    fn who_attaches_shares_the_server_and_leaves_it_running() -> Result<()> {
        for peer in [MEMCACHED, REDIS].into_iter().filter(|peer| !is_absent(peer)) {
            let scratch = tempfile::tempdir().expect("a directory");
            let place = place(scratch.path());
            assert!(peer.attach(&place).is_err(), "nobody listens yet");
            let store = (peer.open)(&place)?;
            let attached = peer.attach(&place)?;
            store.put_one(b"key", b"value")?;
            assert_eq!(attached.get_one(b"key")?.as_deref(), Some(&b"value"[..]), "{}", peer.name);
            drop(attached);
            assert_eq!(store.get_one(b"key")?.as_deref(), Some(&b"value"[..]), "{}", peer.name);
            drop(store);
            let refused = peer.attach(&place).err().expect("the server is gone").to_string();
            assert!(refused.starts_with(&format!("connect to {}", peer.name)), "{refused}");
            assert!(peer.reopen().is_none());
        }
        Ok(())
    }

    #[test]
    fn a_server_that_is_asked_for_what_it_refuses_serves_on() -> Result<()> {
        for peer in [MEMCACHED, REDIS].into_iter().filter(|peer| !is_absent(peer)) {
            let scratch = tempfile::tempdir().expect("a directory");
            let store = (peer.open)(&place(scratch.path()))?;
            let large = vec![1; CAP_BYTES as usize + 1];
            assert!(matches!(store.put_one(b"large", &large), Err(Error::Refused { .. })), "{}", peer.name);
            store.put_one(b"key", b"value")?;
            assert_eq!(store.get_one(b"key")?.as_deref(), Some(&b"value"[..]));
        }
        Ok(())
    }

    #[test]
    fn memcached_refuses_what_its_protocol_can_not_say() -> Result<()> {
        if is_absent(&MEMCACHED) {
            return Ok(());
        }
        let directory = tempfile::tempdir().expect("a directory");
        let store = (MEMCACHED.open)(&place(directory.path()))?;
        for key in [&b""[..], b"a b", b"a\r\n", &[b'a'; 251]] {
            let refused = store.put_one(key, b"value").expect_err("no key").to_string();
            assert!(refused.starts_with("memcached: a key has 1 to 250 bytes"), "{refused}");
        }
        let beyond_half = vec![1; CAP_BYTES as usize * 3 / 4];
        assert!(matches!(store.put_one(b"key", &beyond_half), Err(Error::Refused { .. })));
        store.put_one(b"key", b"value")?;
        assert_eq!(store.get_one(b"key")?.as_deref(), Some(&b"value"[..]));
        Ok(())
    }

    #[test]
    fn versions_are_read_out_of_what_the_programs_print() {
        assert_eq!(Memcached::version("memcached 1.6.18\n"), Some("1.6.18"));
        let printed = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=d81b8ff71cfb150e\n";
        assert_eq!(Redis::version(printed), Some("7.0.15"));
        assert_eq!(Redis::version("another program"), None);
    }
}
