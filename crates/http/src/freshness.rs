//! For how long a response is fresh (RFC 9111, section 4.2.1 and 4.2.2).
//!
//! ```text
//! s-maxage > max-age > Expires - Date > the operator's ttl > a guess by Last-Modified > nothing
//! ```
//! Where a targeted field counts, its directives are meant, and `Expires` is not looked at.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{DATE, EXPIRES, LAST_MODIFIED};

use crate::field::date;
use crate::field::seconds::SECONDS_MAX;
use crate::field::targeted::Control;
use crate::message::Response;
use crate::policy::{Heuristic, Policy};

/// For how long a response is fresh, from when the origin made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// That long, in whole seconds, at most [`SECONDS_MAX`].
    pub seconds: u32,
    /// Who says so.
    pub source: Source,
}

/// Who says for how long a response is fresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The origin, by a directive for shared caches.
    SMaxage,
    /// The origin, by a directive.
    MaxAge,
    /// The origin, by a date. One that is no date has passed.
    Expires,
    /// The operator.
    Policy,
    /// Nobody: it is guessed.
    Heuristic,
}

/// The lifetime of a response that was received at `received`. None if nobody names one and it may not be guessed.
pub fn lifetime(response: Response<'_>, control: &Control, received: SystemTime, policy: &Policy) -> Option<Lifetime> {
    let (seconds, source) = explicit(response.fields, control, received)
        .or_else(|| Some((whole_seconds(policy.ttl(response.status)?), Source::Policy)))
        .or_else(|| Some((guess(response, control, received, policy)?, Source::Heuristic)))?;
    let least = policy.ttl_min.map_or(0, whole_seconds);
    let most = policy.ttl_max.map_or(SECONDS_MAX, whole_seconds);
    Some(Lifetime { seconds: seconds.max(least).min(most), source })
}

/// What the origin says.
fn explicit(fields: &HeaderMap, control: &Control, received: SystemTime) -> Option<(u32, Source)> {
    let directives = &control.directives;
    if let Some(seconds) = directives.s_maxage {
        Some((seconds, Source::SMaxage))
    } else if let Some(seconds) = directives.max_age {
        Some((seconds, Source::MaxAge))
    } else if !control.is_targeted && fields.contains_key(EXPIRES) {
        Some((until_expires(fields, received), Source::Expires))
    } else {
        None
    }
}

/// `Expires` minus `Date`. Of several lines the earliest counts, and one that is no date has passed (section 5.3).
fn until_expires(fields: &HeaderMap, received: SystemTime) -> u32 {
    let sent = date::of(fields, &DATE).unwrap_or(received);
    let spans = fields.get_all(EXPIRES).iter().map(|line| date::parse(line)?.duration_since(sent).ok());
    whole_seconds(spans.map(Option::unwrap_or_default).min().unwrap_or_default())
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
