//! The statement that decides about a stored response, in words.

use std::time::{Duration, SystemTime};

use eyewall_http::field::cache_control::RequestDirectives;
use eyewall_http::reuse::Reuse;
use eyewall_http::terms::Marks;
use eyewall_page_cache::selection::Stored;
use eyewall_page_cache::visit::Freshness;
use http::HeaderName;

use super::explanation::Verdict;

/// Why a stored response with these terms is used in this way.
pub(super) fn of_reuse(
    reuse: Reuse,
    stored: &Stored,
    directives: &RequestDirectives,
    now: SystemTime,
) -> (Verdict, String) {
    let terms = &stored.terms;
    let stale_for = terms.stale_for(now).as_secs();
    match reuse {
        Reuse::Fresh => {
            let left = Freshness::of(terms, now).left;
            (Verdict::Hit, format!("the stored response is fresh, for {left} s more (RFC 9111, section 4.2)"))
        }
        Reuse::StaleWhileRevalidate => {
            let window = terms.stale_while_revalidate_seconds;
            let words = format!(
                "the stored response has been stale for {stale_for} s, and may be sent for {window} s while an origin is asked \
                 (stale-while-revalidate; RFC 5861, section 3)"
            );
            (Verdict::Stale, words)
        }
        Reuse::StaleAllowed => {
            let words = format!(
                "the stored response has been stale for {stale_for} s, and the client accepts that (max-stale; RFC 9111, section \
                 5.2.1.2)"
            );
            (Verdict::Stale, words)
        }
        Reuse::Validate { .. } if terms.marks.contains(Marks::HAS_VALIDATOR) => {
            (Verdict::Revalidate, unusable(stored, directives, now))
        }
        Reuse::Validate { .. } => {
            let words = unusable(stored, directives, now);
            (
                Verdict::Miss,
                format!(
                    "{words}; it has no validator, so the origin has to send it again; if it fails, the stale one is sent"
                ),
            )
        }
        Reuse::MustNotUse => {
            let words = unusable(stored, directives, now);
            (Verdict::Miss, format!("{words}; it has no validator, so the origin has to send it again"))
        }
        Reuse::GatewayTimeout => {
            let words = unusable(stored, directives, now);
            (
                Verdict::Error,
                format!("{words}, and the client forbids to ask (only-if-cached; RFC 9111, section 5.2.1.7)"),
            )
        }
    }
}

/// Why an origin has to be asked although a response is stored. The order is that of `eyewall_http::reuse::decide`.
fn unusable(stored: &Stored, directives: &RequestDirectives, now: SystemTime) -> String {
    let terms = &stored.terms;
    let age = terms.age(now);
    if directives.no_cache {
        return "the client wants the stored response validated (no-cache; RFC 9111, sections 5.2.1.4 and 5.4)"
            .to_owned();
    }
    if terms.marks.contains(Marks::NO_CACHE) {
        return "the origin wants its response validated each time (no-cache; RFC 9111, section 5.2.2.4)".to_owned();
    }
    let too_old = directives.max_age.filter(|most| age > Duration::from_secs((*most).into()));
    let min_fresh = directives.min_fresh.map(|least| {
        format!("the client wants a response that stays fresh for {least} s (min-fresh; RFC 9111, section 5.2.1.3)")
    });
    if !terms.fresh_for(now).is_zero() {
        // A response that is immutable counts as young enough.
        let too_old = too_old.filter(|_| !terms.marks.contains(Marks::IMMUTABLE)).map(|most| {
            let age = age.as_secs();
            format!("the client wants one of at most {most} s, and the stored one is {age} s old (max-age; RFC 9111, section 5.2.1.1)")
        });
        return too_old.or(min_fresh).unwrap_or_default();
    }
    let stale = if stored.is_softly_purged(now) {
        "a soft purge has made the stored response stale".to_owned()
    } else {
        let (age, lifetime) = (age.as_secs(), terms.lifetime_seconds);
        format!("the stored response is stale: its age is {age} s, its lifetime {lifetime} s (RFC 9111, section 4.2)")
    };
    let window = terms.stale_while_revalidate_seconds;
    let is_within = window > 0 && terms.stale_for(now) <= Duration::from_secs(window.into());
    let names_age = directives.max_age.is_some() || directives.max_stale.is_some() || directives.min_fresh.is_some();
    if is_within && names_age && !terms.marks.contains(Marks::FORBIDS_STALE) {
        return format!("{stale}, and what the client says of ages forbids the stale one (RFC 9111, section 5.2.1)");
    }
    stale
}

/// Why a request misses although responses of its address are stored.
pub(super) fn of_other_variants(names: &[HeaderName]) -> String {
    let names: Vec<&str> = names.iter().map(HeaderName::as_str).collect();
    format!(
        "responses of this address vary by {}, and none is stored for this request (Vary; RFC 9111, section 4.1)",
        names.join(", ")
    )
}
