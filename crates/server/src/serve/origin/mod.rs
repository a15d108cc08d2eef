//! Origins: the servers whose responses are cached, and the requests to them.
//!
//! ```text
//! origins         chooses, sends, retries, notes health; for one worker   site     the state that all workers share
//!   client        the connections to one origin                           tls      the trusted certificates
//!     http1       requests without content over HTTP/1.1                  health   the choice of an origin
//!     http2       connections for many requests at once
//!     connector   TCP, TLS or a Unix socket, with a timeout; stream       body_rate  the minimum rate of a client's body
//!   request       a request and its body, streamed                        tunnel   upgrades
//!   forwarded     Host, X-Forwarded-*, Forwarded                          framing  refuses ambiguous heads
//!   health_check  requests without a client
//! error         why there is no response
//! ```
//!
//! # What is absent
//! - The origin's `100 Continue`: hyper's server sends one when the body is first read, and `Expect` is not passed on.
//! - Interim responses (103) over HTTP/2: hyper's client has no way to them. Those over HTTP/1.1 are passed on.
//! - WebSocket over HTTP/2 (RFC 8441): upgrades go by HTTP/1.1.
//! - Weights, and client certificates.

mod body_rate;
mod client;
mod connector;
mod error;
mod forwarded;
pub(crate) mod framing;
mod health;
mod health_check;
mod http1;
mod http2;
mod origins;
mod request;
mod response_body;
mod site;
mod stream;
#[cfg(test)]
mod tests;
mod tls;
mod tunnel;

pub(crate) use body_rate::BodyRate;
pub(crate) use connector::open;
pub(crate) use error::{BUSY, ProxyError};
pub(crate) use forwarded::ClientInfo;
pub(crate) use origins::Origins;
pub(crate) use request::{BodyLimits, OriginRequest, RequestBody};
pub(crate) use response_body::ResponseBody;
pub(crate) use site::{OriginSite, Settings};
pub(crate) use stream::Stream;
pub use tls::TlsError;
pub(crate) use tls::client_config;
pub(crate) use tunnel::{ClientSide, asked_protocol};
