//! How long a response is fresh (RFC 9111, sections 4.2.1 and 4.2.2).
//!
//! ```text
//! a forced ttl > s-maxage > max-age > Expires - Date > the operator's ttl > a guess by Last-Modified > nothing
//! ```
//! If a targeted field applies, its directives count, and `Expires` is ignored.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{DATE, EXPIRES, LAST_MODIFIED};

use crate::field::date;
use crate::field::seconds::SECONDS_MAX;
use crate::field::targeted::Control;
use crate::message::Response;
use crate::policy::{Heuristic, Policy};

/// How long a response is fresh, from when the origin made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// So long, in whole seconds, at most [`SECONDS_MAX`].
    pub seconds: u32,
    /// How long it was stale already when the origin made it, because its `Expires` is before its `Date`.
    pub overdue_seconds: u32,
    /// The source of the lifetime.
    pub source: Source,
}

/// The source of a lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The origin, by a directive for shared caches.
    SMaxage,
    /// The origin, by a directive.
    MaxAge,
    /// The origin, by a date. An invalid date counts as past.
    Expires,
    /// The operator.
    Policy,
    /// A guess.
    Heuristic,
}

/// The lifetime of a response that was received at `received`. `None` if nobody names one, and it must not be
/// guessed.
pub fn lifetime(response: Response<'_>, control: &Control, received: SystemTime, policy: &Policy) -> Option<Lifetime> {
    let named = |seconds, source| Lifetime { seconds, overdue_seconds: 0, source };
    let forced = policy.force_ttl.map(|ttl| named(whole_seconds(ttl), Source::Policy));
    let lifetime = forced
        .or_else(|| explicit(response.fields, control, received))
        .or_else(|| Some(named(whole_seconds(policy.ttl(response.status)?), Source::Policy)))
        .or_else(|| Some(named(guess(response, control, received, policy)?, Source::Heuristic)))?;
    let least = policy.ttl_min.map_or(0, whole_seconds);
    let most = policy.ttl_max.map_or(SECONDS_MAX, whole_seconds);
    let seconds = lifetime.seconds.max(least).min(most);
    let overdue_seconds = if seconds == 0 { lifetime.overdue_seconds } else { 0 };
    Some(Lifetime { seconds, overdue_seconds, ..lifetime })
}

/// The lifetime that the origin names.
pub(crate) fn explicit(fields: &HeaderMap, control: &Control, received: SystemTime) -> Option<Lifetime> {
    let directives = &control.directives;
    if let Some(seconds) = directives.s_maxage {
        Some(Lifetime { seconds, overdue_seconds: 0, source: Source::SMaxage })
    } else if let Some(seconds) = directives.max_age {
        Some(Lifetime { seconds, overdue_seconds: 0, source: Source::MaxAge })
    } else if !control.is_targeted && fields.contains_key(EXPIRES) {
        Some(until_expires(fields, received))
    } else {
        None
    }
}

/// `Expires` minus `Date`. The earliest of several lines counts, and an invalid date counts as past (section
/// 5.3).
fn until_expires(fields: &HeaderMap, received: SystemTime) -> Lifetime {
    let sent = date::of(fields, &DATE).unwrap_or(received);
    // An invalid date doesn't say how long it has been past: take the moment of the response.
    let dates = fields.get_all(EXPIRES).iter().map(|line| date::parse(line).unwrap_or(sent));
    let expires = dates.min().unwrap_or(sent);
    Lifetime {
        seconds: whole_seconds(expires.duration_since(sent).unwrap_or_default()),
        overdue_seconds: whole_seconds(sent.duration_since(expires).unwrap_or_default()),
        source: Source::Expires,
    }
}

/// A part of the time since the last modification (section 4.2.2).
fn guess(response: Response<'_>, control: &Control, received: SystemTime, policy: &Policy) -> Option<u32> {
    let Heuristic { percent, lifetime_max } = policy.heuristic?;
    if !policy.is_cacheable(response.status) && !control.directives.public {
        return None;
    }
    let sent = date::of(response.fields, &DATE).unwrap_or(received);
    let unchanged = sent.duration_since(date::of(response.fields, &LAST_MODIFIED)?).ok()?;
    let seconds = unchanged.as_secs().saturating_mul(percent.into()) / 100;
    Some(whole_seconds(Duration::from_secs(seconds).min(lifetime_max)))
}

/// Whole seconds, at most [`SECONDS_MAX`].
pub(crate) fn whole_seconds(time: Duration) -> u32 {
    time.as_secs().min(SECONDS_MAX.into()) as u32
}
