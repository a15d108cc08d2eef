//! Checks of limits that need more than one key.

use toml::Spanned;

use super::problem::Fault;
use super::site::Site;
use super::site_limits::SiteLimits;

/// Without a rate there are no buckets, and nothing has a burst.
pub(super) fn burst<R, B>(rate: Option<&R>, burst: Option<&Spanned<B>>, faults: &mut Vec<Fault>) {
    if let Some(burst) = burst.filter(|_| rate.is_none()) {
        let message = "`request_burst` has no effect without `requests_per_second`";
        faults.push(Fault::absence(burst.span(), message, "give `requests_per_second`, or remove it"));
    }
}

/// The same of all clients together.
fn total_burst(limits: &SiteLimits, faults: &mut Vec<Fault>) {
    if let Some(burst) = limits.total_request_burst.as_ref().filter(|_| limits.total_requests_per_second.is_none()) {
        let message = "`total_request_burst` has no effect without `total_requests_per_second`";
        faults.push(Fault::absence(burst.span(), message, "give `total_requests_per_second`, or remove it"));
    }
}

/// The limits of a site.
pub(super) fn site(site: &Site, faults: &mut Vec<Fault>) {
    let limits = &site.limits;
    burst(limits.requests_per_second.as_ref(), limits.request_burst.as_ref(), faults);
    total_burst(limits, faults);
    if let Some(requests) = limits.origin_requests.as_ref().filter(|_| site.origins.is_empty()) {
        let message = "`origin_requests` has no effect without `origins`";
        faults.push(Fault::absence(requests.span(), message, "give `origins`, or remove it"));
    }
    let spans = [
        ("origin_queue", limits.origin_queue.as_ref().map(Spanned::span)),
        ("origin_wait", limits.origin_wait.as_ref().map(Spanned::span)),
    ];
    for (name, span) in spans.into_iter().filter(|_| limits.origin_requests.is_none()) {
        if let Some(span) = span {
            let message = format!("`{name}` has no effect without `origin_requests`");
            faults.push(Fault::absence(span, message, "give `origin_requests`, or remove it"));
        }
    }
}
