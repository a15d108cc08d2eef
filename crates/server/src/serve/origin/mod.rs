//! Origins: the servers whose responses are cached, and how they are asked.
//!
//! ```text
//! origins       one worker's pools; choosing, sending, repeating, noting      site     what all workers share
//!   connector     TCP and TLS, within a time                                    tls      whose certificates are believed
//!   request       a request and its body, streamed                              health   who is asked; time is the caller's
//!   forwarded     Host, X-Forwarded-*, Forwarded                                body_rate  how slowly a client may send a body
//!   framing       heads that are not believed                                   tunnel   upgrades
//!   health_check  asking without a client
//! url, error: an address; what can go wrong
//! ```
//!
//! # What is absent
//! HTTP/2 to origins: one connection for all would have a lost packet hold up everybody, and gains nothing on a short
//! way. The origin's `100 Continue`: hyper's server sends one by itself, when the body is first asked for, and `Expect` is not
//! passed on. Weights. Certificates of ours for the origin to check.

mod body_rate;
mod connector;
mod error;
mod forwarded;
pub(crate) mod framing;
mod health;
mod health_check;
mod origins;
mod request;
mod site;
#[cfg(test)]
mod tests;
mod tls;
mod tunnel;
mod url;

pub(crate) use body_rate::BodyRate;
pub(crate) use error::ProxyError;
pub(crate) use forwarded::ClientInfo;
pub(crate) use origins::Origins;
pub(crate) use request::{BodyLimits, OriginRequest, RequestBody};
pub(crate) use site::{OriginSite, Settings};
pub use tls::TlsError;
pub(crate) use tunnel::asked_protocol;
pub use url::OriginUrl;
