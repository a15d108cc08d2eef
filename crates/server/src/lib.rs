//! The web server of Eyewall, as a library: it answers HTTP from a volume, with a folder or origins behind it.
//!
//! `eyewall serve` is this library with a command line. A program of yours can run the same server beside what else it does.
//!
//! ```
//! use eyewall_server::Server;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir();
//! let configuration = format!(
//!     "[server]\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\n[cache]\nsize = \"8M\"\n[[site]]\nroot = \"{}\"\n",
//!     folder.display()
//! );
//! let server = Server::builder().toml(&configuration)?.start()?;
//! println!("listening on {:?}", server.addresses());
//! server.stop()?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Server::builder`] takes a configuration ([`config`]: TOML, or settings made in code) and gives a running [`Server`]. That
//! has the addresses it listens on, its volume, and a graceful end. `docs/configuration.md` describes every setting. The manual's
//! guide to embedding shows a whole program, which is `examples/embed.rs` of this crate.
//!
//! # What it does to your process
//! - It starts threads: one for each worker, one for the administration and the end, one that looks after the volume, and one
//!   for the access log if there is one. It needs no runtime of yours.
//! - A volume that it opens itself handles SIGBUS, so that a truncated file ends no process. Give [`Builder::cache`] a volume of
//!   yours if you don't want that.
//! - It handles SIGINT, SIGTERM, SIGHUP and SIGUSR1 only if [`Builder::signals`] asks for it. An access log handles SIGUSR1 and
//!   SIGHUP: they have its file opened anew.
//! - It reports what an operator should know through `tracing`, and prints nothing.
//!
//! # Where to look
//! `serve` is the server itself. [`config`] is its configuration, `key` says under which key a response is stored, `rules` which
//! rules of a site apply to a request and its response. The program `eyewall` and its tools are `crates/cli`, which stands on
//! this crate.
//!
//! # What is absent
//! No `unsafe`, no memory map of its own (the engine gives pinned bytes), no HTTPS to clients, no command line. A configuration
//! can't be changed while the server runs: stop it and start another one.

#![forbid(unsafe_code)]

pub mod config;
mod error;
mod key;
mod rules;
mod serve;
pub mod units;
pub mod warnings;

pub use error::Error;
pub use serve::{Builder, Handle, OriginUrl, Server, TlsError};

/// The guide's snippet is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/embedding-the-server.md")]
struct Guide;
