//! The limits of a site: `[site.limits]`. [`super::settings`] has those of the server.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::names::Network;
use super::value::{Period, Within};

/// Requests in the queue of a site without a given number.
const ORIGIN_QUEUE: u64 = 100;
/// How long they wait without a given time.
const ORIGIN_WAIT: Duration = Duration::from_secs(5);

/// `[site.limits]`
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SiteLimits {
    /// Requests that one client may send to this site in a second. A client is an IPv4 address, or a /64 network of IPv6.
    /// Eyewall answers further ones by 429.
    ///
    /// Default: any number
    ///
    /// Example: `20`
    pub requests_per_second: Option<Within<1, 1_000_000>>,
    /// Requests that one client may send to this site at once, after a pause.
    ///
    /// Default: `requests_per_second`
    ///
    /// Example: `100`
    pub request_burst: Option<Spanned<Within<1, 1_000_000>>>,
    /// Requests that all clients together may send to this site in a second. Eyewall answers further ones by 429.
    ///
    /// Default: any number
    ///
    /// Example: `2000`
    pub total_requests_per_second: Option<Within<1, 10_000_000>>,
    /// Requests that all clients together may send to this site at once, after a pause.
    ///
    /// Default: `total_requests_per_second`
    ///
    /// Example: `5000`
    pub total_request_burst: Option<Spanned<Within<1, 10_000_000>>>,
    /// Networks whose clients may use this site. Eyewall answers others by 403. If the list is empty, all may.
    ///
    /// Example: `["10.0.0.0/8"]`
    pub allow: Vec<Network>,
    /// Networks whose clients may not use this site, even if `allow` names them. Eyewall answers them by 403.
    ///
    /// Example: `["192.0.2.0/24"]`
    pub deny: Vec<Network>,
    /// Requests that the origins of this site get at once, from all clients. Further ones wait in a queue. Upgraded
    /// connections don't count.
    ///
    /// Default: any number
    ///
    /// Example: `64`
    pub origin_requests: Option<Spanned<Within<1, 100_000>>>,
    /// Requests that may wait for the origins. Eyewall answers further ones at once, by a stale response or 503.
    ///
    /// Default: `100`
    ///
    /// Example: `1000`
    pub origin_queue: Option<Spanned<Within<0, 1_000_000>>>,
    /// How long a request may wait for the origins. Eyewall then answers it by a stale response or 503.
    ///
    /// Default: `"5s"`
    ///
    /// Example: `"2s"`
    pub origin_wait: Option<Spanned<Period>>,
}

impl SiteLimits {
    /// The number of requests that the origins get at once, of those that may wait, and how long.
    pub(crate) fn of_origins(&self) -> Option<(u64, u64, Duration)> {
        let at_once = self.origin_requests.as_ref()?.get_ref().0;
        let waiting = self.origin_queue.as_ref().map_or(ORIGIN_QUEUE, |waiting| waiting.get_ref().0);
        let wait = self.origin_wait.as_ref().map_or(ORIGIN_WAIT, |wait| wait.get_ref().0);
        Some((at_once, waiting, wait))
    }
}
