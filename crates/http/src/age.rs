//! The age of a response (RFC 9111, sections 4.2.3 and 5.1).

use std::time::Duration;

use http::HeaderMap;
use http::header::{AGE, DATE};

use crate::field::date;
use crate::field::seconds::{self, SECONDS_MAX};
use crate::message::Exchange;

/// The largest age.
const AGE_MAX: Duration = Duration::from_secs(SECONDS_MAX as u64);

/// `corrected_initial_age`: the age of a response when it was received, from its `Age`, its `Date` and the
/// duration of the exchange.
///
/// A `Date` has whole seconds, so a difference of less than one second is none. If the clock went back, the age
/// is still at least what the response says.
pub fn initial(response: &HeaderMap, exchange: Exchange) -> Duration {
    let apparent = date::of(response, &DATE).and_then(|sent| exchange.received.duration_since(sent).ok());
    let apparent = Duration::from_secs(apparent.unwrap_or_default().as_secs());
    let delay = exchange.received.duration_since(exchange.requested).unwrap_or_default();
    let corrected = Duration::from_secs(value(response).into()).saturating_add(delay);
    apparent.max(corrected).min(AGE_MAX)
}

/// The value of the `Age` field in seconds, 0 if there is none.
///
/// The first member of the first line counts. A value that is not a number of whole seconds is ignored (section
/// 5.1).
pub fn value(response: &HeaderMap) -> u32 {
    let line = response.get(AGE).map_or(&b""[..], |line| line.as_bytes());
    let first = line.split(|byte| *byte == b',').next().unwrap_or_default();
    seconds::parse(first.trim_ascii()).unwrap_or(0)
}

/// `current_age` at `resident` after the response was received.
pub fn current(initial: Duration, resident: Duration) -> Duration {
    initial.saturating_add(resident).min(AGE_MAX)
}
