//! TLS for a web server: certificates from files and from an ACME authority, chosen by the name that a client asks for; session tickets that
//! processes share; and how TLS is spoken. Everything changes while the server runs, behind atomic pointers.
//!
//! | module | what it knows |
//! |---|---|
//! | [`Identity`] | a certificate chain with its key, from PEM files |
//! | [`Certificates`] | the identities of all hosts; rustls asks it in each handshake |
//! | [`Watched`] | files of identities, read again when they change |
//! | [`Tickets`] | session tickets, and the file of their keys |
//! | [`server_config`] | versions, ALPN, tickets: the configuration of rustls |
//! | [`acme`] | getting certificates, and renewing them |
//! | [`clock`] | the time of day, which tests step |
//!
//! There is no socket that listens here, no HTTP server and no configuration file: the server brings these. It calls two functions from time
//! to time, [`Watched::look`] and [`Tickets::look`], and answers an authority at port 80 by [`acme::Challenges::http_response`].
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use eyewall_tls::acme::{Acme, AcmeSettings};
//! use eyewall_tls::clock::SystemClock;
//! use eyewall_tls::{Certificates, HostFiles, IdentityFiles, MinimumVersion, Tickets, Watched, server_config};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = Arc::new(SystemClock);
//! let names = vec!["example.org".to_owned()];
//! let acme = Acme::start(AcmeSettings::new("/var/lib/eyewall/acme".into()), &[names.clone()], clock.clone())?;
//! let files = IdentityFiles { certificate: "site.pem".into(), key: "site.key".into(), ocsp: None };
//! let mut watched = Watched::open(vec![
//!     HostFiles { hosts: names.clone(), files: vec![acme.files(&names)], may_be_missing: true },
//!     HostFiles { hosts: vec!["example.net".to_owned()], files: vec![files], may_be_missing: false },
//! ])?;
//! let certificates = Arc::new(Certificates::new(Some(acme.challenges().clone())));
//! watched.publish(&certificates);
//! let tickets = Arc::new(Tickets::open("/var/lib/eyewall/tickets".as_ref(), clock)?);
//! let config = server_config(certificates.clone(), tickets.clone(), MinimumVersion::default())?;
//! // `config` goes to tokio_rustls::TlsAcceptor. Then, every second or few:
//! for change in watched.look(&certificates) {
//!     println!("{change:?}");
//! }
//! tickets.look()?;
//! # drop(config);
//! # Ok(())
//! # }
//! ```
//!
//! # What it promises
//!
//! - A certificate that works stays in use until a newer one was read whole and found to belong to its key.
//! - A session resumes in another thread, in another process and after a restart. No ticket is read more than 36 hours after its key was first
//!   used, and no early data is taken.
//! - Files that hold secrets are made with mode 0600, and replaced in one step.
//! - Several processes may share the files: one renews, the others read.
//!
//! # Hazards
//!
//! - A user who can write the state folder, or read the file of keys, can impersonate the server or read its traffic. Both belong to the
//!   server's user alone.
//! - On a file system without `flock`, as some network file systems are, processes may order the same certificate twice.

#![forbid(unsafe_code)]

pub mod acme;
mod certificates;
pub mod clock;
mod config;
mod file;
mod identity;
#[cfg(test)]
mod invented;
mod tickets;
mod watched;

pub use certificates::{ACME_TLS, Certificates, HostIdentities};
pub use config::{MinimumVersion, server_config};
pub use identity::{Identity, IdentityError, IdentityFiles};
pub use tickets::{TicketError, Tickets};
pub use watched::{Change, HostFiles, Watched};
