//! Admission: which clients may have connections and send requests, how many, and how many requests an origin gets.
//!
//! ```text
//! connections   how many there are, in all, at each address and of each client: `listen/admit.rs` asks
//! memory        how much requests may need, in all: `listen/fast_path.rs` and `listen/common.rs` ask
//! networks      `allow` and `deny`                                    \  of the server, and of a site:
//! rate, rates   requests per second: token buckets of clients, and   /  `service.rs` asks, and the fast path
//!               of a site for all clients
//! queue         how many requests the origins of a site get at once: `origin/origins.rs` asks
//! client        what counts as one client
//! ```
//! A request takes one token of each bucket. A request that is refused takes none that the full path doesn't take.
//!
//! A reload makes another [`Admission`], which takes over the tokens of the buckets.

mod client;
mod connections;
mod memory;
mod networks;
mod queue;
mod rate;
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
pub(crate) use connections::{ConnectionCounts, ConnectionLimits, Crowd, Entered};
pub(crate) use memory::{MemoryHeld, MemoryUse};
use networks::Networks;
pub(crate) use queue::{Full, OriginQueue, Place, QueueLimits};
use rate::{Rate, Total};
use rates::Rates;

/// The limits of a server, or of a site, for the requests of clients.
pub(crate) struct Admission {
    networks: Networks,
    /// Of each client.
    rates: Option<Arc<Rates>>,
    /// Of all clients together.
    total: Option<Arc<Total>>,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// By `allow` or `deny`.
    Network,
    /// The client may try again after this many seconds.
    Rate { seconds: u64 },
    /// The same because of all clients together.
    Total { seconds: u64 },
}

impl Admission {
    /// The limits of the server. None if there are none. `before` is the same of the configuration before.
    pub(crate) fn of_server(limits: &Limits, before: Option<&Self>) -> Option<Self> {
        let rate = Rate::of(limits.requests_per_second, limits.request_burst.as_ref());
        Self::new((&limits.allow, &limits.deny), (rate, None), before)
    }

    /// The same of a site.
    pub(crate) fn of_site(limits: &SiteLimits, before: Option<&Self>) -> Option<Self> {
        let rate = Rate::of(limits.requests_per_second, limits.request_burst.as_ref());
        let total = Rate::of(limits.total_requests_per_second, limits.total_request_burst.as_ref());
        Self::new((&limits.allow, &limits.deny), (rate, total), before)
    }

    fn new(
        (allow, deny): (&[Network], &[Network]),
        (rate, total): (Option<Rate>, Option<Rate>),
        before: Option<&Self>,
    ) -> Option<Self> {
        let networks = Networks::new(allow, deny);
        let known = before.and_then(|before| before.rates.as_ref());
        let rates = rate.map(|rate| match known {
            Some(known) if known.rate() == rate => Arc::clone(known),
            Some(known) => Arc::new(known.renewed(rate)),
            None => Arc::new(Rates::new(rate)),
        });
        let known = before.and_then(|before| before.total.as_ref());
        let total = total.map(|rate| match known {
            Some(known) if known.rate() == rate => Arc::clone(known),
            Some(known) => Arc::new(known.renewed(rate)),
            None => Arc::new(Total::new(rate)),
        });
        (!networks.admit_all() || rates.is_some() || total.is_some()).then_some(Self { networks, rates, total })
    }

    /// Whether a client with this address may connect at all.
    pub(crate) fn may_connect(&self, client: IpAddr) -> bool {
        self.networks.admit(client)
    }

    /// Whether each bucket of this client has a token. It takes none.
    ///
    /// # Errors
    /// The client may not send a request.
    pub(crate) fn check(&self, client: IpAddr) -> Result<(), Refusal> {
        if !self.networks.admit(client) {
            return Err(Refusal::Network);
        }
        self.each(|rates| rates.check(client), Total::check)
    }

    /// Takes a token from each bucket of this client.
    ///
    /// # Errors
    /// The client may not send this request. Then it has taken none, unless the last one of another bucket was taken at this moment.
    pub(crate) fn admit(&self, client: IpAddr) -> Result<(), Refusal> {
        if self.total.is_some() {
            self.check(client)?;
        } else if !self.networks.admit(client) {
            return Err(Refusal::Network);
        }
        self.each(|rates| rates.take(client), Total::take)
    }

    fn each(
        &self,
        of_client: impl FnOnce(&Rates) -> Result<(), u64>,
        of_all: impl FnOnce(&Total) -> Result<(), u64>,
    ) -> Result<(), Refusal> {
        if let Some(rates) = &self.rates {
            of_client(rates).map_err(|seconds| Refusal::Rate { seconds })?;
        }
        if let Some(total) = &self.total {
            of_all(total).map_err(|seconds| Refusal::Total { seconds })?;
        }
        Ok(())
    }
}

impl Refusal {
    /// What the client is told.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Network => "this address may not use this site",
            Self::Rate { .. } => "there were too many requests from this address; try again later",
            Self::Total { .. } => "there were too many requests for this site; try again later",
        }
    }

    /// The response in the place of the one that the client asked for.
    pub(crate) fn response(self) -> Response<Body> {
        match self {
            Self::Network => reply::error(StatusCode::FORBIDDEN, self.words()),
            Self::Rate { seconds } | Self::Total { seconds } => {
                let mut response = reply::error(StatusCode::TOO_MANY_REQUESTS, self.words());
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
        assert_eq!(third.admit(client), Ok(()), "of two tokens, one is left");
        assert!(
            matches!(third.admit(client), Err(Refusal::Rate { .. })),
            "another rate finds the tokens that are left"
        );
        assert_eq!(third.admit("192.0.2.8".parse().unwrap()), Ok(()));
    }

    #[test]
    fn a_refused_request_takes_no_token() {
        let mut limits = SiteLimits { requests_per_second: Some(Within(2)), ..SiteLimits::default() };
        limits.total_requests_per_second = Some(Within(1));
        let [one, two] = ["192.0.2.7", "192.0.2.8"].map(|address| address.parse::<IpAddr>().unwrap());
        let site = Admission::of_site(&limits, None).unwrap();
        assert_eq!(site.admit(one), Ok(()));
        for client in [one, two, two, two] {
            assert!(matches!(site.admit(client), Err(Refusal::Total { seconds: 1 })));
        }
        limits.total_requests_per_second = None;
        let site = Admission::of_site(&limits, Some(&site)).unwrap();
        assert_eq!([two, two, one].map(|client| site.admit(client)), [Ok(()); 3], "the other one has taken one");
        assert!(matches!(site.admit(one), Err(Refusal::Rate { .. })));
    }
}
