//! What a shared cache may store, and for how long (RFC 9111, section 3 and 4.2). Pure rules.

use std::time::{Duration, SystemTime};

use http::header::{AGE, AUTHORIZATION, DATE, EXPIRES, IF_MATCH, IF_UNMODIFIED_SINCE, RANGE, SET_COOKIE};
use http::{HeaderMap, StatusCode};

use super::cache_control::CacheControl;
use super::coding::Varies;

/// No response is kept for longer than a year.
const LIFETIME_MAX_SECONDS: u64 = 365 * 24 * 60 * 60;

/// Whether a response may be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Store(Freshness),
    /// Not, for this reason.
    Pass(&'static str),
}

/// How fresh a response is when it comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Freshness {
    /// How old it may become.
    pub(crate) lifetime: Duration,
    /// How old it is, by its `Age` and `Date` and the time it was under way.
    pub(crate) age: Duration,
    pub(crate) varies_by_coding: bool,
}

/// Why a request is neither answered from the cache nor its answer stored.
pub(crate) fn bypass(request: &HeaderMap) -> Option<&'static str> {
    if request.contains_key(AUTHORIZATION) {
        Some("authorization")
    } else if request.contains_key(RANGE) {
        Some("range")
    } else if request.contains_key(IF_MATCH) || request.contains_key(IF_UNMODIFIED_SINCE) {
        // Only the origin knows its present state.
        Some("precondition")
    } else {
        None
    }
}

/// Judges a response to a GET that was not a [`bypass`], received at `now`, `delay` after it was asked for.
pub(crate) fn judge(
    request: &HeaderMap,
    status: StatusCode,
    response: &HeaderMap,
    delay: Duration,
    now: SystemTime,
) -> Verdict {
    let control = CacheControl::of(response);
    let varies = Varies::of(response);
    let refusals = [
        (!is_storable(status), "status"),
        (control.no_store, "no-store"),
        (control.private, "private"),
        (control.no_cache, "no-cache"),
        (CacheControl::of(request).no_store, "request-no-store"),
        (response.contains_key(SET_COOKIE), "set-cookie"),
        (varies == Varies::Otherwise, "vary"),
    ];
    if let Some((_, why)) = refusals.iter().find(|(is_refused, _)| *is_refused) {
        return Verdict::Pass(why);
    }
    let Some(lifetime) = lifetime(&control, response, now) else {
        return Verdict::Pass("no-lifetime");
    };
    let age = age(response, delay, now);
    if lifetime <= age {
        return Verdict::Pass("stale");
    }
    Verdict::Store(Freshness { lifetime, age, varies_by_coding: varies == Varies::ByCoding })
}

/// Final responses that stand for a resource. Errors of the origin are not kept, nor parts of a value.
fn is_storable(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200 | 203 | 300 | 301 | 302 | 307 | 308 | 404 | 410)
}

/// What the origin allows; it is never guessed.
fn lifetime(control: &CacheControl, response: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let seconds = match control.s_maxage.or(control.max_age) {
        Some(seconds) => seconds,
        None if response.contains_key(EXPIRES) => {
            let expires = date(response, &EXPIRES);
            let sent = date(response, &DATE).unwrap_or(now);
            expires.and_then(|expires| expires.duration_since(sent).ok()).map_or(0, |span| span.as_secs())
        }
        None => return None,
    };
    Some(Duration::from_secs(seconds.min(LIFETIME_MAX_SECONDS)))
}

/// RFC 9111, section 4.2.3.
fn age(response: &HeaderMap, delay: Duration, now: SystemTime) -> Duration {
    let told = response.get(AGE).and_then(|age| age.to_str().ok()?.trim().parse::<u32>().ok()).unwrap_or(0);
    let apparent = date(response, &DATE).and_then(|sent| now.duration_since(sent).ok()).unwrap_or_default();
    // A date has whole seconds: less than one is no age.
    let apparent = Duration::from_secs(apparent.as_secs());
    apparent.max(Duration::from_secs(told.into()) + delay)
}

fn date(fields: &HeaderMap, name: &http::HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(fields.get(name)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    const NOW: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn judge_ok(response: &[(&'static str, &'static str)]) -> Verdict {
        let now = httpdate::parse_http_date(NOW).unwrap();
        judge(&HeaderMap::new(), StatusCode::OK, &fields(response), Duration::ZERO, now)
    }

    fn stored(lifetime: u64, age: u64) -> Verdict {
        let seconds = Duration::from_secs;
        Verdict::Store(Freshness { lifetime: seconds(lifetime), age: seconds(age), varies_by_coding: false })
    }

    #[test]
    fn the_word_to_shared_caches_outranks_the_others() {
        let expires = ("expires", "Sun, 06 Nov 1994 08:50:37 GMT");
        assert_eq!(judge_ok(&[("cache-control", "max-age=5, s-maxage=9"), expires]), stored(9, 0));
        assert_eq!(judge_ok(&[("cache-control", "max-age=5"), expires]), stored(5, 0));
        assert_eq!(judge_ok(&[("date", NOW), expires]), stored(60, 0));
    }

    #[test]
    fn without_a_lifetime_nothing_is_stored() {
        assert_eq!(judge_ok(&[]), Verdict::Pass("no-lifetime"));
        assert_eq!(judge_ok(&[("cache-control", "public")]), Verdict::Pass("no-lifetime"));
        assert_eq!(judge_ok(&[("expires", "0")]), Verdict::Pass("stale"));
        assert_eq!(judge_ok(&[("cache-control", "max-age=0")]), Verdict::Pass("stale"));
    }

    #[test]
    fn time_already_spent_counts() {
        let max_age = ("cache-control", "max-age=30");
        assert_eq!(judge_ok(&[max_age, ("age", "10")]), stored(30, 10));
        assert_eq!(judge_ok(&[max_age, ("age", "30")]), Verdict::Pass("stale"));
        assert_eq!(judge_ok(&[max_age, ("date", "Sun, 06 Nov 1994 08:49:17 GMT")]), stored(30, 20));
    }

    #[test]
    fn a_year_is_the_longest() {
        assert_eq!(judge_ok(&[("cache-control", "max-age=99999999999")]), stored(LIFETIME_MAX_SECONDS, 0));
    }

    #[test]
    fn each_refusal_has_its_name() {
        let max_age = ("cache-control", "max-age=30");
        for (response, why) in [
            (vec![("cache-control", "no-store, max-age=30")], "no-store"),
            (vec![("cache-control", "private, max-age=30")], "private"),
            (vec![("cache-control", "no-cache, max-age=30")], "no-cache"),
            (vec![max_age, ("set-cookie", "a=b")], "set-cookie"),
            (vec![max_age, ("vary", "cookie")], "vary"),
        ] {
            assert_eq!(judge_ok(&response), Verdict::Pass(why));
        }
        let error = judge(
            &HeaderMap::new(),
            StatusCode::INTERNAL_SERVER_ERROR,
            &fields(&[max_age]),
            Duration::ZERO,
            SystemTime::UNIX_EPOCH,
        );
        assert_eq!(error, Verdict::Pass("status"));
    }
}
