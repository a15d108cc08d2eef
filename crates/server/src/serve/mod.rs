//! The server: answers HTTP from a volume, with a folder or origins behind it.
//!
//! ```text
//! server      starts and stops everything        handle
//! listen/     sockets, workers, connections and their end; the fast path of hits
//!   arrival          the client and the scheme of a connection
//!   simple_request   requests for a page without conditions
//!   trusted_proxies  fields of trusted proxies about their clients
//!   service   one request in, one response out         routing   its site, its key, and where it goes
//!     purge/  PURGE, and the targets of purges
//!     files/  --root: the files of a folder, by `eyewall-files`
//!     proxy/  --origin: the site's rules for the page cache     origin/
//! admission/  limits: connections, rates, networks, requests to origins
//! reload      another configuration in the same process     upgrade/   another process takes over     supervisor   systemd
//! tls/        certificates for HTTPS, redirects to it
//! fleet/      a thread that follows the purge log of other servers
//! peers/      responses of other servers, and for them
//! upkeep      a thread for the upkeep of the volume
//! doctor/     what is wrong with a machine, a configuration and its origins
//! explain/    what would become of a request, and why
//! advice/     what would make more requests hits, from `sample/`
//! admin/      purges, explanations, status and metrics, for operators                                dashboard/   a page that shows them live
//! ```
//! `log/` writes a line for each request, when its response has left, `follow/` shows it to those who follow, and `metrics/` counts them; `outcome` says what the cache did. `eyewall-http` decides what may be stored and reused.
//!
//! A stored body is sent from its pinned entry: [`bytes::Bytes::from_owner`] over an [`eyewall::OwnedHit`], from which the
//! kernel copies when it is written to the socket. It never goes by `sendfile`, because the kernel would read those pages after the
//! pin is gone. Large files of a folder do, from the file itself (`listen/file_queue`).
//!
//! # What is absent
//! HTTP/3, and client certificates. More than eight ranges in one request for a response that isn't
//! stored, and ranges of a QUERY, bypass the volume.

mod admin;
mod admission;
pub mod advice;
mod arrival;
mod batching;
mod body;
mod dashboard;
mod date;
pub mod doctor;
mod error;
mod error_pages;
pub mod explain;
mod fields;
mod files;
mod fleet;
mod follow;
mod handle;
mod interim;
mod listen;
mod log;
mod metrics;
mod origin;
mod outcome;
mod peers;
mod proxy;
mod purge;
mod random;
mod reload;
mod reply;
mod routing;
mod sample;
mod sandbox;
mod second_level;
mod server;
mod service;
mod shared;
mod simple_request;
mod small_http;
mod spans;
mod stop;
mod supervisor;
mod tls;
mod token;
mod trace;
mod trusted_proxies;
mod unix_client;
mod unix_socket;
mod upgrade;
mod upkeep;
mod volume;

pub use error::Error;
pub use handle::Handle;
pub use origin::TlsError;
#[cfg(feature = "seams")]
pub(crate) use peers::reread_question;
pub use reload::Reloaded;
#[cfg(feature = "seams")]
pub(crate) use second_level::reread_record;
pub use server::{Builder, Server};
pub use upgrade::{Inherited, Upgraded};

/// The name of this cache in `Cache-Status`.
const NAME: &str = "Eyewall";
