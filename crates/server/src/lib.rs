//! The web server of Eyewall, as a library: it answers HTTP from a volume, and fetches from a folder or from origins.
//!
//! `eyewall serve` is this library with a command line. Your own program can run the same server.
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
//! [`Server::builder`] takes a configuration ([`config`]: TOML, or settings made in code) and starts a [`Server`]. The server
//! knows its addresses and its volume. It takes another configuration while it runs ([`Server::reload`]), and can be stopped
//! gracefully. `docs/configuration.md` describes every setting. The manual's
//! guide to embedding shows a whole program, `examples/embed.rs` of this crate.
//!
//! # What it does to your process
//! - It starts threads: one for each worker, one for the administration and for stopping, one for upkeep of the volume, one for
//!   the access log if there is one, and for a site with `tls` one or two for certificates. It doesn't need your runtime.
//! - A volume that it opens itself handles SIGBUS, so a truncated file doesn't kill the process. Give [`Builder::cache`] your own
//!   volume if you don't want that.
//! - It handles SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 only if you call [`Builder::signals`]. An access log handles SIGUSR1 and
//!   SIGHUP by reopening its file.
//! - It reports to operators through `tracing`, and prints nothing.
//!
//! # Where to look
//! `serve` is the server itself. [`config`] is its configuration. `key` makes the key of a response, and `rules` finds the rules
//! of a site that apply to a request and its response. `error_pages` has its pages for errors. `sandbox` restricts the process. `sites` finds a site by its host. The program `eyewall` and its tools are
//! in `crates/cli`, which depends on this crate.
//!
//! ```text
//! serve ──> sites ──> error_pages, rules ──> key ──> config ──> host_name, sandbox, units      each uses those on its right
//! ```
//!
//! # What is absent
//! This crate has no `unsafe`, no memory map of its own (the engine gives pinned bytes), and no command line.

#![forbid(unsafe_code)]

pub mod config;
mod error_pages;
mod host_name;
mod key;
mod rules;
mod sandbox;
#[cfg(feature = "seams")]
pub mod seams;
mod serve;
mod sites;
pub mod units;
pub mod warnings;

pub use config::origin_url::OriginUrl;
pub use eyewall_tls::clock;
pub use sandbox::SandboxError;
pub use serve::{Builder, Error, Handle, Inherited, Reloaded, Server, TlsError, Upgraded};
pub use serve::{advice, doctor, explain};

/// The tests compile the guide's snippet.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/embedding-the-server.md")]
struct Guide;
