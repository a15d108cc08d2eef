//! A stored response, and the arithmetic of its freshness.

use std::time::{Duration, SystemTime};

use eyewall_http::field::targeted::Control;
use eyewall_http::freshness::{self, Source};
use eyewall_http::message;
use eyewall_http::policy::Policy;
use eyewall_http::terms::{Marks, Terms};
use eyewall_page_cache::selection::Stored;
use eyewall_page_cache::visit::Freshness;

use super::explanation::{Step, StoredOf, VariantOf};

/// Describes a stored response at `now`. `policy` has what the site's rules say of it.
pub(super) fn describe(stored: &Stored, policy: &Policy, now: SystemTime) -> StoredOf {
    let Freshness { age, left } = Freshness::of(&stored.terms, now);
    StoredOf {
        status: stored.found.head.status.as_u16(),
        bytes: stored.length(),
        vary: stored.vary.iter().map(ToString::to_string).collect(),
        tags: stored.found.tags(),
        age_seconds: age,
        fresh_for_seconds: left,
        arithmetic: arithmetic(stored, policy, now),
    }
}

/// Describes one of several variants at `now`. `selected` is the key of the one that the request selects.
pub(super) fn variant(stored: &Stored, selected: Option<&[u8]>, now: SystemTime) -> VariantOf {
    let Freshness { age, left } = Freshness::of(&stored.terms, now);
    VariantOf {
        vary: stored.vary.iter().map(ToString::to_string).collect(),
        is_selected: selected == Some(&stored.key[..]),
        status: stored.found.head.status.as_u16(),
        bytes: stored.length(),
        age_seconds: age,
        fresh_for_seconds: left,
    }
}

fn arithmetic(stored: &Stored, policy: &Policy, now: SystemTime) -> Vec<Step> {
    let terms = &stored.terms;
    let mut steps = vec![age(terms, now), lifetime(stored, policy, now)];
    let mut step = |what: &str, words: String, source: &str| {
        steps.push(Step { what: what.to_owned(), words, source: source.to_owned() });
    };
    let marked = |mark| terms.marks.contains(mark);
    if marked(Marks::NO_CACHE) {
        step("no-cache", "is sent only after the origin has confirmed it".to_owned(), "RFC 9111, section 5.2.2.4");
    }
    if marked(Marks::IMMUTABLE) {
        step("immutable", "a reload doesn't revalidate it while it is fresh".to_owned(), "RFC 8246, section 2");
    }
    if marked(Marks::FORBIDS_STALE) {
        let directives = Control::of(&stored.found.head.fields, &policy.targets).directives;
        let (what, source) = if directives.must_revalidate {
            ("must-revalidate", "RFC 9111, section 5.2.2.2")
        } else if directives.proxy_revalidate {
            ("proxy-revalidate", "RFC 9111, section 5.2.2.8")
        } else {
            ("s-maxage", "RFC 9111, section 5.2.2.10")
        };
        step(what, "it is never sent when stale".to_owned(), source);
    }
    for (what, seconds, words, source) in [
        (
            "stale-while-revalidate",
            terms.stale_while_revalidate_seconds,
            "may be sent while it is revalidated, for this long after its lifetime",
            "RFC 5861, section 3",
        ),
        (
            "stale-if-error",
            terms.stale_if_error_seconds,
            "may be sent if the origin fails, for this long after its lifetime",
            "RFC 5861, section 4",
        ),
    ] {
        if seconds > 0 && !marked(Marks::NO_CACHE) {
            step(what, format!("{seconds} s: {words}"), source);
        }
    }
    let unreachable = policy
        .stale_if_unreachable
        .filter(|window| !window.is_zero() && !marked(Marks::FORBIDS_STALE) && !marked(Marks::NO_CACHE));
    if let Some(window) = unreachable {
        let words = format!(
            "{} s: may be sent if no origin can be reached, for this long after its lifetime",
            window.as_secs()
        );
        step("stale-when-unreachable", words, "cache.stale_when_unreachable; RFC 9111, section 4.2.4");
    }
    let validator = if marked(Marks::HAS_VALIDATOR) {
        "it has an ETag or a Last-Modified, so the origin can confirm it by a 304"
    } else {
        "it has neither ETag nor Last-Modified, so the origin has to send it again"
    };
    step("validator", validator.to_owned(), "RFC 9111, section 4.3.1");
    steps
}

/// RFC 9111, section 4.2.3.
fn age(terms: &Terms, now: SystemTime) -> Step {
    let age = terms.age(now);
    let initial = Duration::from_millis(terms.initial_age_ms);
    let words = format!(
        "{} s: {} s when it was received, and {} s since then",
        age.as_secs(),
        initial.as_secs(),
        age.saturating_sub(initial).as_secs()
    );
    Step { what: "age".to_owned(), words, source: "RFC 9111, section 4.2.3".to_owned() }
}

/// RFC 9111, sections 4.2.1 and 4.2.2. The source is that which the present settings give; they may have changed since the response was
/// stored.
fn lifetime(stored: &Stored, policy: &Policy, now: SystemTime) -> Step {
    let seconds = stored.terms.lifetime_seconds;
    let step = |words: String, source: &str| Step {
        what: "lifetime".to_owned(),
        words: format!("{seconds} s: {words}"),
        source: source.to_owned(),
    };
    if stored.is_softly_purged(now) {
        return step("a soft purge has ended it".to_owned(), "a purge with `soft`");
    }
    let head = &stored.found.head;
    let response = message::Response { status: head.status, fields: &head.fields };
    let control = Control::of(&head.fields, &policy.targets);
    let of_policy = |policy: &Policy| freshness::lifetime(response, &control, stored.received(), policy);
    let Some(found) = of_policy(policy).filter(|found| found.seconds == seconds) else {
        return if seconds == 0 {
            step("nobody names one, so it is kept only to be validated".to_owned(), "RFC 9111, section 4.2")
        } else {
            step(
                "as another request or another configuration had it when the response was stored".to_owned(),
                "the stored response",
            )
        };
    };
    let named = of_policy(&Policy { ttl_min: None, ttl_max: None, ..policy.clone() });
    let named = named.map(|named| named.seconds).filter(|named| *named != seconds);
    let bound = named.map(|named| {
        let setting = if named > seconds { "ttl_max" } else { "ttl_min" };
        format!(" ({named} s, changed by {setting})")
    });
    let (words, source) = match found.source {
        Source::SMaxage | Source::MaxAge if control.is_targeted => {
            ("max-age of a targeted field of the origin", "RFC 9213, section 2.2")
        }
        Source::SMaxage => ("s-maxage of the origin", "RFC 9111, section 4.2.1"),
        Source::MaxAge => ("max-age of the origin", "RFC 9111, section 4.2.1"),
        Source::Expires => ("Expires minus Date of the origin", "RFC 9111, section 4.2.1"),
        Source::Policy if policy.force_ttl.is_some() => ("the configuration, whatever the origin says", "force_ttl"),
        Source::Policy if policy.status_ttl.is_some() => ("the configuration, for this status", "negative_ttl"),
        Source::Policy => ("the configuration, since the origin names none", "default_ttl"),
        Source::Heuristic => (
            "a guess, a tenth of the time since Last-Modified and at most a day, since nobody names one",
            "RFC 9111, section 4.2.2",
        ),
    };
    step(format!("{words}{}", bound.unwrap_or_default()), source)
}
