//! The statement that decides about a stored response, in words.

use std::time::SystemTime;

use eyewall_http::field::cache_control::RequestDirectives;
use eyewall_http::reuse::Reuse;
use eyewall_http::terms::{Marks, Terms};
use http::HeaderName;

use super::explanation::Verdict;

/// Why a stored response with these terms is used in this way.
pub(super) fn of_reuse(
    reuse: Reuse,
    terms: &Terms,
    directives: &RequestDirectives,
    now: SystemTime,
) -> (Verdict, String) {
    let stale_for = terms.stale_for(now).as_secs();
    match reuse {
        Reuse::Fresh => {
            let left = terms.fresh_for(now).as_secs();
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
        Reuse::Validate { .. } => (Verdict::Revalidate, unusable(terms, directives, now)),
        Reuse::MustNotUse => {
            let words = unusable(terms, directives, now);
            (Verdict::Miss, format!("{words}; it has no validator, so the origin has to send it again"))
        }
        Reuse::GatewayTimeout => {
            let words = unusable(terms, directives, now);
            (
                Verdict::Error,
                format!("{words}, and the client forbids that (only-if-cached; RFC 9111, section 5.2.1.7)"),
            )
        }
    }
}

/// Why an origin has to be asked although a response is stored.
fn unusable(terms: &Terms, directives: &RequestDirectives, now: SystemTime) -> String {
    let age = terms.age(now).as_secs();
    if directives.no_cache {
        return "the client wants the stored response validated (no-cache; RFC 9111, section 5.2.1.4)".to_owned();
    }
    if terms.marks.contains(Marks::NO_CACHE) {
        return "the origin wants its response validated each time (no-cache; RFC 9111, section 5.2.2.4)".to_owned();
    }
    if let Some(most) = directives.max_age.filter(|most| terms.age(now).as_secs_f64() > f64::from(*most)) {
        return format!(
            "the client wants a response of at most {most} s, and the stored one is {age} s old (max-age; RFC 9111, section 5.2.1.1)"
        );
    }
    if let Some(least) = directives.min_fresh.filter(|_| !terms.fresh_for(now).is_zero()) {
        return format!(
            "the client wants a response that stays fresh for {least} s (min-fresh; RFC 9111, section 5.2.1.3)"
        );
    }
    let lifetime = terms.lifetime_seconds;
    format!("the stored response is stale: its age is {age} s, its lifetime {lifetime} s (RFC 9111, section 4.2)")
}

/// Why a request misses although responses of its address are stored.
pub(super) fn of_other_variants(names: &[HeaderName]) -> String {
    let names: Vec<&str> = names.iter().map(HeaderName::as_str).collect();
    format!(
        "responses of this address are stored for other values of {} (Vary; RFC 9111, section 4.1)",
        names.join(", ")
    )
}
