//! Admission: which clients may have connections and send requests, how many, and how many requests an origin gets.
//!
//! ```text
//! connections   how many there are, in all and of each client: `listen/accept.rs` asks
//! networks      `allow` and `deny`                              \  of the server, and of a site:
//! rates         requests per second: token buckets of clients   /  `service.rs` asks, and the fast path
//! queue         how many requests the origins of a site get at once: `origin/origins.rs` asks
//! client        what counts as one client
//! ```
//! A reload makes another [`Admission`]. It takes over the buckets if the settings for them are the same.

mod client;
mod connections;
mod networks;
mod queue;
mod rates;

use std::net::IpAddr;
use std::sync::Arc;

use http::header::RETRY_AFTER;
use http::{HeaderValue, Response, StatusCode};

use super::body::Body;
use super::reply;
use crate::config::names::Network;
use crate::config::settings::Limits;
use crate::config::site_limits::SiteLimits;
pub(crate) use connections::{ConnectionCounts, Entered};
use networks::Networks;
pub(crate) use queue::{Full, OriginQueue, Place, QueueLimits};
use rates::{Rate, Rates};

/// The limits of a server, or of a site, for the requests of clients.
pub(crate) struct Admission {
    networks: Networks,
    rates: Option<Arc<Rates>>,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// By `allow` or `deny`.
    Network,
    /// The client may try again after this many seconds.
    Rate { seconds: u64 },
}

impl Admission {
    /// The limits of the server. None if there are none. `before` is the same of the configuration before.
    pub(crate) fn of_server(limits: &Limits, before: Option<&Self>) -> Option<Self> {
        let rate = Rate::of(limits.requests_per_second, limits.request_burst.as_ref());
        Self::new((&limits.allow, &limits.deny), rate, before)
    }

    /// The same of a site.
    pub(crate) fn of_site(limits: &SiteLimits, before: Option<&Self>) -> Option<Self> {
        let rate = Rate::of(limits.requests_per_second, limits.request_burst.as_ref());
        Self::new((&limits.allow, &limits.deny), rate, before)
    }

    fn new((allow, deny): (&[Network], &[Network]), rate: Option<Rate>, before: Option<&Self>) -> Option<Self> {
        let networks = Networks::new(allow, deny);
        let known = before.and_then(|before| before.rates.as_ref());
        let rates = rate.map(|rate| match known.filter(|known| known.rate() == rate) {
            Some(known) => Arc::clone(known),
            None => Arc::new(Rates::new(rate)),
        });
        (!networks.admit_all() || rates.is_some()).then_some(Self { networks, rates })
    }

    /// Whether a client with this address may connect at all.
    pub(crate) fn may_connect(&self, client: IpAddr) -> bool {
        self.networks.admit(client)
    }

    /// Takes a token from the client's bucket.
    ///
    /// # Errors
    /// The client may not send this request.
    pub(crate) fn admit(&self, client: IpAddr) -> Result<(), Refusal> {
        if !self.networks.admit(client) {
            return Err(Refusal::Network);
        }
        self.rates.as_ref().map_or(Ok(()), |rates| rates.take(client).map_err(|seconds| Refusal::Rate { seconds }))
    }
}

impl Refusal {
    /// The response in the place of the one that the client asked for.
    pub(crate) fn response(self) -> Response<Body> {
        match self {
            Self::Network => reply::error(StatusCode::FORBIDDEN, "this address may not use this site"),
            Self::Rate { seconds } => {
                let words = "there were too many requests from this address; try again later";
                let mut response = reply::error(StatusCode::TOO_MANY_REQUESTS, words);
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
                response
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::value::Within;

    fn limits(per_second: u64, deny: &[&str]) -> Limits {
        Limits {
            requests_per_second: Some(Within(per_second)),
            deny: deny.iter().map(|network| network.parse().unwrap()).collect(),
            ..Limits::default()
        }
    }

    #[test]
    fn buckets_outlive_a_change_of_other_settings() {
        let client: IpAddr = "192.0.2.7".parse().unwrap();
        assert!(Admission::of_server(&Limits::default(), None).is_none());
        let first = Admission::of_server(&limits(1, &[]), None).unwrap();
        assert_eq!(first.admit(client), Ok(()));
        let second = Admission::of_server(&limits(1, &["10.0.0.0/8"]), Some(&first)).unwrap();
        assert!(matches!(second.admit(client), Err(Refusal::Rate { .. })), "it has the bucket of the first");
        assert_eq!(second.admit("10.1.1.1".parse().unwrap()), Err(Refusal::Network));
        let third = Admission::of_server(&limits(2, &[]), Some(&second)).unwrap();
        assert_eq!(third.admit(client), Ok(()), "another rate has buckets of its own");
    }
}
