//! The operator's settings as a policy of `eyewall-http`.

use eyewall_http::policy::{Heuristic, Policy};

use crate::config::site::SiteCache;
use crate::rules::Overrides;

/// The policy for all responses of a site; [`with`] adds the rest.
pub(super) fn of_site(cache: &SiteCache) -> Policy {
    Policy {
        stale_if_unreachable: Some(cache.stale_when_unreachable.0),
        targets: cache.targeted.iter().map(|name| name.0.clone()).collect(),
        ..Policy::default()
    }
}

/// The policy for a response with these overrides by the rules.
pub(crate) fn with(policy: &Policy, overrides: &Overrides) -> Policy {
    Policy {
        heuristic: overrides.heuristic.unwrap_or(true).then(Heuristic::default),
        default_ttl: overrides.default_ttl,
        status_ttl: overrides.negative_ttl,
        force_ttl: overrides.force_ttl,
        ttl_min: overrides.ttl_min,
        ttl_max: overrides.ttl_max,
        store_set_cookie: overrides.store_set_cookie.unwrap_or_default(),
        stale_while_revalidate: overrides.stale_while_revalidate,
        stale_if_error: overrides.stale_if_error,
        ..policy.clone()
    }
}
