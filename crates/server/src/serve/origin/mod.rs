//! Origins: the servers whose responses are cached, and how they are asked.
//!
//! ```text
//! origins     one worker's pools; choosing, sending, repeating, noting      site     what all workers share
//!   connector TCP and TLS, within a time                                    tls      whose certificates are believed
//!   outgoing  a request and its body, streamed                              health   who is asked; time is the caller's
//!   forwarded Host, X-Forwarded-*, Forwarded                                check    asking without a client
//!   framing   heads that are not believed                                   tunnel   upgrades
//! url, fault: an address; what can go wrong
//! ```
//!
//! # What is absent
//! HTTP/2 to origins: one connection for all would have a lost packet hold up everybody, and gains nothing on a short
//! way. The origin's `100 Continue`: hyper's server sends one by itself, when the body is first asked for, and `Expect` is not
//! passed on. Weights. Certificates of ours for the origin to check.

mod check;
mod connector;
mod fault;
mod forwarded;
pub(crate) mod framing;
mod health;
mod origins;
mod outgoing;
mod pace;
mod site;
#[cfg(test)]
mod tests;
mod tls;
mod tunnel;
mod url;

pub(crate) use fault::Fault;
pub(crate) use forwarded::Peer;
pub(crate) use origins::Origins;
pub(crate) use outgoing::{BodyLimits, Outgoing, RequestBody};
pub(crate) use pace::Pace;
pub(crate) use site::{OriginSite, Settings};
pub use tls::TlsError;
pub(crate) use tunnel::asked_protocol;
pub use url::OriginUrl;
