//! Origins: the servers whose responses are cached, and the requests to them.
//!
//! ```text
//! origins       one worker's pools; chooses, sends, retries, notes health     site     the state that all workers share
//!   connector     TCP and TLS, with a timeout                                   tls      the trusted certificates
//!   request       a request and its body, streamed                              health   the choice of an origin
//!   forwarded     Host, X-Forwarded-*, Forwarded                                body_rate  the minimum rate of a client's body
//!   framing       refuses ambiguous heads                                       tunnel   upgrades
//!   health_check  requests without a client
//! error         why there is no response
//! ```
//!
//! # What is absent
//! - HTTP/2 to origins: with one connection for all requests, a lost packet would delay all of them, and a nearby origin gains
//!   nothing.
//! - The origin's `100 Continue`: hyper's server sends one when the body is first read, and `Expect` is not passed on.
//! - Weights, and client certificates.

mod body_rate;
mod connector;
mod error;
mod forwarded;
pub(crate) mod framing;
mod health;
mod health_check;
mod origins;
mod request;
mod response_body;
mod site;
#[cfg(test)]
mod tests;
mod tls;
mod tunnel;

pub(crate) use body_rate::BodyRate;
pub(crate) use error::{BUSY, ProxyError};
pub(crate) use forwarded::ClientInfo;
pub(crate) use origins::Origins;
pub(crate) use request::{BodyLimits, OriginRequest, RequestBody};
pub(crate) use response_body::ResponseBody;
pub(crate) use site::{OriginSite, Settings};
pub use tls::TlsError;
pub(crate) use tunnel::asked_protocol;
