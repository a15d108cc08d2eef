//! What the cache did with a request, from Eyewall's member of `Cache-Status` (RFC 9211).
//!
//! | word of the log | label of the metrics | what happened |
//! |---|---|---|
//! | `hit` | `hit` | answered from the volume, fresh |
//! | `stale` | `stale` | answered from the volume, stale |
//! | `revalidated` | `revalidated` | answered from the volume, after the origin confirmed it |
//! | `miss` | `miss` | fetched, by this request or by one that it waited for, and stored |
//! | `pass` | `pass` | fetched, and not stored |
//! | `pass` | `error` | asked for, and no response came: the client got an error of Eyewall's own |
//! | `-` | `none` | the cache had no part in it |
//!
//! In the log, the reason of `Cache-Status` follows `pass` after a colon, and also an unusual `hit` or `stale`.

use eyewall_http::field::cache_status::CACHE_STATUS;
use http::{HeaderValue, Response, StatusCode};

use super::NAME;

/// The status of a request whose client closed before the response, as in nginx.
pub(crate) const CLIENT_GONE: u16 = 499;

/// What the cache did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Hit,
    Stale,
    Revalidated,
    Miss,
    Pass,
    Error,
    None,
}

/// What a response says of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome<'a> {
    pub(crate) verdict: Verdict,
    /// Why, if it is unusual.
    pub(crate) reason: Option<&'a str>,
    /// Why an origin was asked, if one was.
    pub(crate) forward: Option<&'a str>,
    /// How many seconds the response is still fresh, if it is stored.
    pub(crate) ttl: Option<i64>,
    /// Whether the request waited for another one that fetched the response.
    pub(crate) is_collapsed: bool,
    /// Whether the response is a failure that was remembered.
    pub(crate) is_remembered: bool,
}

/// The `Cache-Status` of a response before rules changed its fields.
#[derive(Debug, Clone)]
struct Noted(HeaderValue);

/// Notes the cache status of a response, because rules may remove the field.
pub(crate) fn note<B>(response: &mut Response<B>) {
    if let Some(value) = response.headers().get_all(CACHE_STATUS).iter().next_back().cloned() {
        response.extensions_mut().insert(Noted(value));
    }
}

impl Verdict {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 7] =
        [Self::Hit, Self::Stale, Self::Revalidated, Self::Miss, Self::Pass, Self::Error, Self::None];

    /// The label of the metrics.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Stale => "stale",
            Self::Revalidated => "revalidated",
            Self::Miss => "miss",
            Self::Pass => "pass",
            Self::Error => "error",
            Self::None => "none",
        }
    }
}

impl<'a> Outcome<'a> {
    /// What a response says that is ready to be sent.
    pub(crate) fn of<B>(response: &'a Response<B>) -> Self {
        let noted = response.extensions().get::<Noted>().map(|Noted(value)| value);
        // Ours is the last: members of caches between here and the origin come before it.
        let value = noted.or_else(|| response.headers().get_all(CACHE_STATUS).iter().next_back());
        let member = value.and_then(|value| value.to_str().ok());
        let ours = member.and_then(|member| member.strip_prefix(NAME)?.strip_prefix("; "));
        ours.map_or(Self::NONE, |ours| Self::read(ours, response.status()))
    }

    /// That of a hit.
    pub(crate) const HIT: Self = Self { verdict: Verdict::Hit, ..Self::NONE };

    const NONE: Self = Self {
        verdict: Verdict::None,
        reason: None,
        forward: None,
        ttl: None,
        is_collapsed: false,
        is_remembered: false,
    };

    /// Reads the parameters of our member.
    fn read(parameters: &'a str, status: StatusCode) -> Self {
        let (mut forward, mut forward_status, mut ttl, mut detail) = (None, None, None, None);
        let (mut is_stored, mut is_collapsed) = (false, false);
        for parameter in Parameters(parameters) {
            match parameter.split_once('=') {
                Some(("fwd", value)) => forward = Some(value),
                Some(("fwd-status", value)) => forward_status = Some(value),
                Some(("ttl", value)) => ttl = Some(value),
                Some(("detail", value)) => detail = Some(value.trim_matches('"')),
                None if parameter == "stored" => is_stored = true,
                None if parameter == "collapsed" => is_collapsed = true,
                _ => {}
            }
        }
        let is_remembered = forward.is_none() && detail == Some("negative");
        let (verdict, reason) = match forward {
            // A fresh response has a second left. For a remembered failure, this is the rest of its time.
            None if ttl.is_some_and(|ttl| ttl == "0" || ttl.starts_with('-')) && !is_remembered => {
                (Verdict::Stale, detail)
            }
            None => (Verdict::Hit, detail),
            Some(_) if ttl.is_some() && forward_status == Some("304") => (Verdict::Revalidated, None),
            Some(_) if is_stored => (Verdict::Miss, None),
            Some(why) if forward_status.is_none() && status.as_u16() >= 400 => (Verdict::Error, detail.or(Some(why))),
            Some(why) => (Verdict::Pass, detail.or(Some(why))),
        };
        let ttl = ttl.and_then(|ttl| ttl.parse().ok());
        Self { verdict, reason, forward, ttl, is_collapsed, is_remembered }
    }
}

/// The parameters of a member, which `; ` separates outside of quotes.
struct Parameters<'a>(&'a str);

impl<'a> Iterator for Parameters<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let (mut is_quoted, mut is_escaped) = (false, false);
        let end = self.0.bytes().position(|byte| {
            let ends = byte == b';' && !is_quoted;
            is_quoted ^= byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        });
        let (parameter, rest) = end.map_or((self.0, ""), |end| (&self.0[..end], &self.0[end + 1..]));
        self.0 = rest.strip_prefix(' ').unwrap_or(rest);
        (!parameter.is_empty()).then_some(parameter)
    }
}

#[cfg(test)]
mod tests {
    use eyewall_http::field::cache_status::{CacheStatus, Forward};
    use http::HeaderMap;

    use super::*;

    fn response(status: StatusCode, fields: HeaderMap) -> Response<()> {
        let mut response = Response::new(());
        (*response.status_mut(), *response.headers_mut()) = (status, fields);
        response
    }

    #[test]
    fn each_status_has_its_verdict() {
        let asked = |why| CacheStatus::forwarded(why).forward_status(StatusCode::OK);
        let confirmed = CacheStatus::forwarded(Forward::Stale).forward_status(StatusCode::NOT_MODIFIED);
        for (status, expected) in [
            (CacheStatus::hit(), (Verdict::Hit, None)),
            (CacheStatus::hit().ttl(27), (Verdict::Hit, None)),
            (CacheStatus::hit().ttl(0), (Verdict::Stale, None)),
            (CacheStatus::hit().ttl(-3), (Verdict::Stale, None)),
            (CacheStatus::hit().detail("stale-if-error").ttl(-3), (Verdict::Stale, Some("stale-if-error"))),
            (CacheStatus::hit().detail("only-if-cached"), (Verdict::Hit, Some("only-if-cached"))),
            (confirmed.clone().ttl(60), (Verdict::Revalidated, None)),
            (confirmed.detail("head"), (Verdict::Pass, Some("head"))),
            (asked(Forward::UriMiss).stored(true).ttl(60), (Verdict::Miss, None)),
            (asked(Forward::UriMiss).detail("set-cookie"), (Verdict::Pass, Some("set-cookie"))),
            (asked(Forward::Method), (Verdict::Pass, Some("method"))),
            (asked(Forward::Bypass).detail("a; stored; \"b\""), (Verdict::Pass, Some("a; stored; \\\"b\\"))),
            (CacheStatus::forwarded(Forward::UriMiss).detail("too-large"), (Verdict::Pass, Some("too-large"))),
        ] {
            let mut fields = HeaderMap::new();
            fields.append(CACHE_STATUS, HeaderValue::from_static("Other; hit; ttl=-5"));
            status.append_to(&mut fields, NAME);
            let response = response(StatusCode::OK, fields);
            let outcome = Outcome::of(&response);
            assert_eq!((outcome.verdict, outcome.reason), expected);
            assert!(!outcome.is_collapsed && !outcome.is_remembered);
        }
    }

    #[test]
    fn collapsed_requests_remembered_failures_and_errors_of_our_own_are_told_apart() {
        let collapsed = CacheStatus::forwarded(Forward::Stale).forward_status(StatusCode::OK).stored(true);
        let of = |status: CacheStatus, code| {
            let mut fields = HeaderMap::new();
            status.append_to(&mut fields, NAME);
            let response = response(code, fields);
            let Outcome { verdict, is_collapsed, is_remembered, .. } = Outcome::of(&response);
            (verdict, is_collapsed, is_remembered)
        };
        assert_eq!(of(collapsed.collapsed(true), StatusCode::OK), (Verdict::Miss, true, false));
        let remembered = CacheStatus::hit().ttl(0).detail("negative");
        assert_eq!(of(remembered, StatusCode::BAD_GATEWAY), (Verdict::Hit, false, true));
        let failed = CacheStatus::forwarded(Forward::UriMiss).detail("origin-unreachable");
        assert_eq!(of(failed, StatusCode::BAD_GATEWAY), (Verdict::Error, false, false));
    }

    #[test]
    fn a_response_without_the_cache_has_no_verdict_and_one_that_was_noted_keeps_it() {
        let other = HeaderMap::from_iter([(CACHE_STATUS, HeaderValue::from_static("Other; hit"))]);
        for fields in [HeaderMap::new(), other] {
            let response = response(StatusCode::OK, fields);
            assert_eq!(Outcome::of(&response), Outcome::NONE);
        }
        let mut fields = HeaderMap::new();
        CacheStatus::hit().append_to(&mut fields, NAME);
        let mut response = response(StatusCode::OK, fields);
        note(&mut response);
        response.headers_mut().clear();
        assert_eq!(Outcome::of(&response).verdict, Verdict::Hit);
    }
}
