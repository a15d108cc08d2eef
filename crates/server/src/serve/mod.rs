//! The server: answers HTTP from a volume, with a folder or origins behind it.
//!
//! ```text
//! server      starts all of it, and ends it      handle
//! listen/     sockets, workers, connections and their end; the fast path of hits
//!   simple_request   requests for a page without conditions
//!   trusted_proxies  what trusted proxies say of their clients
//!   service   one request in: its site, its key; one response out
//!     purge/  PURGE, and what purges mean
//!     files/  --root: what a folder has, by `eyewall-files`
//!     proxy/  --origin: what the page cache is told of a site   origin/
//! upkeep      a thread that looks after the volume
//! admin/      purges and status, for who looks after the server
//! ```
//! `log/` writes a line for each request, from where a connection has its head until its response has left.
//! What may be stored and used again says `eyewall-http`.
//!
//! A body that is stored goes out from the pinned entry: [`bytes::Bytes::from_owner`] over an
//! [`eyewall::OwnedHit`], which the kernel copies from when it is written to the socket. Never by `sendfile`, which
//! would let the kernel read those pages after the pin is gone.
//!
//! # What is absent
//! HTTPS to clients, so that all keys begin with `http:`. More than eight ranges at once of what isn't stored, and ranges of a QUERY: they go past
//! the volume.

mod admin;
mod body;
mod fields;
mod files;
mod handle;
mod interim;
mod listen;
mod log;
mod origin;
mod proxy;
mod purge;
mod reply;
mod server;
mod service;
mod shared;
mod simple_request;
mod token;
mod trusted_proxies;
mod upkeep;
mod volume;

pub use handle::Handle;
pub use origin::{OriginUrl, TlsError};
pub use server::{Builder, Server};

/// The name of this cache in `Cache-Status`.
const NAME: &str = "Eyewall";
