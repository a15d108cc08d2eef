//! How old a response is (RFC 9111, sections 4.2.3 and 5.1).

use std::time::Duration;

use http::HeaderMap;
use http::header::{AGE, DATE};

use crate::field::seconds::{self, SECONDS_MAX};
use crate::field::{date, list};
use crate::message::Exchange;
use crate::policy::InvalidAge;

/// No age is larger.
const AGE_MAX: Duration = Duration::from_secs(SECONDS_MAX as u64);

/// `corrected_initial_age`: how old a response was when it came in, by its `Age`, its `Date` and the time that the exchange took.
///
/// A `Date` has whole seconds, so that less than one since then is none. A clock that went back makes nothing younger than the
/// response says.
pub fn initial(response: &HeaderMap, exchange: Exchange, invalid: InvalidAge) -> Duration {
    let apparent = date::of(response, &DATE).and_then(|sent| exchange.received.duration_since(sent).ok());
    let apparent = Duration::from_secs(apparent.unwrap_or_default().as_secs());
    let delay = exchange.received.duration_since(exchange.requested).unwrap_or_default();
    let corrected = Duration::from_secs(value(response, invalid).into()).saturating_add(delay);
    apparent.max(corrected).min(AGE_MAX)
}

/// The value of the `Age` field in seconds, 0 if there is none.
pub fn value(response: &HeaderMap, invalid: InvalidAge) -> u32 {
    let mut lines = response.get_all(AGE).iter();
    let Some(line) = lines.next() else { return 0 };
    let first = line.as_bytes().split(|byte| *byte == b',').next().unwrap_or_default();
    match (seconds::parse(first.trim_ascii()), invalid) {
        (None, InvalidAge::Ignored) => 0,
        (None, InvalidAge::Stale) => SECONDS_MAX,
        (Some(_), InvalidAge::Stale) if lines.next().is_some() || is_repeated(line.as_bytes()) => SECONDS_MAX,
        (Some(age), _) => age,
    }
}

/// Whether a list says the same twice: lines of which each was an `Age` of its own, combined by someone on the way.
fn is_repeated(line: &[u8]) -> bool {
    let members: Vec<&[u8]> = list::split(line, b',').collect();
    members.len() > 1 && members.iter().all(|member| *member == members[0])
}

/// `current_age` at `resident` after the response came in.
pub fn current(initial: Duration, resident: Duration) -> Duration {
    initial.saturating_add(resident).min(AGE_MAX)
}
