//! Times in each format, in UTC except for that of syslog(3).

use std::cell::RefCell;
use std::fmt::Display;
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, TimeZone};

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A second, and its text in HTTP: `Sun, 22 Nov 2026 10:02:06 GMT`.
struct Second {
    number: u64,
    text: String,
}

thread_local! {
    /// The second that was written last, which most lines share with others.
    static LAST: RefCell<Second> = const { RefCell::new(Second { number: u64::MAX, text: String::new() }) };
}

/// Appends `Sun, 22 Nov 2026 10:02:06 GMT`, the format of HTTP.
pub(crate) fn push_http(line: &mut Vec<u8>, time: SystemTime) {
    with_text(time, |text, _| line.extend_from_slice(text.as_bytes()));
}

/// Appends `22/Nov/2026:10:02:06 +0000`, the format of NCSA.
pub(crate) fn push_ncsa(line: &mut Vec<u8>, time: SystemTime) {
    with_text(time, |text, _| {
        let _ = write!(line, "{}/{}/{}:{} +0000", &text[5..7], &text[8..11], &text[12..16], &text[17..25]);
    });
}

/// `2026-11-22T10:02:06Z` (RFC 3339).
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let mut text = Vec::new();
    push_rfc3339(&mut text, time);
    let whole = text.split(|byte| *byte == b'.').next().unwrap_or_default();
    String::from_utf8_lossy(whole).into_owned() + "Z"
}

/// Appends `2026-11-22T10:02:06.123456Z` (RFC 3339).
pub(crate) fn push_rfc3339(line: &mut Vec<u8>, time: SystemTime) {
    with_text(time, |text, microseconds| {
        let month = MONTHS.iter().position(|month| *month == &text[8..11]).unwrap_or_default() + 1;
        let (year, day, hours) = (&text[12..16], &text[5..7], &text[17..25]);
        // Never fails on a vector.
        let _ = write!(line, "{year}-{month:02}-{day}T{hours}.{microseconds:06}Z");
    });
}

/// Appends `Nov 22 11:02:06`, the local time of syslog(3).
pub(crate) fn push_syslog<Zone: TimeZone>(line: &mut Vec<u8>, time: &DateTime<Zone>)
where
    Zone::Offset: Display,
{
    // Never fails on a vector.
    let _ = write!(line, "{}", time.format("%b %e %H:%M:%S"));
}

/// Calls the function with the time in the format of HTTP, which has a fixed length, and the microseconds.
fn with_text(time: SystemTime, push: impl FnOnce(&str, u32)) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    LAST.with_borrow_mut(|last| {
        if last.number != since.as_secs() {
            last.number = since.as_secs();
            last.text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(last.number));
        }
        push(&last.text, since.subsec_micros());
    });
}

#[cfg(test)]
mod tests {
    use chrono::FixedOffset;

    use super::*;

    #[test]
    fn times_have_the_form_of_each_format() {
        let long_before = UNIX_EPOCH - Duration::from_secs(5);
        for (time, ncsa, rfc3339) in [
            (UNIX_EPOCH, "01/Jan/1970:00:00:00 +0000", "1970-01-01T00:00:00.000000Z"),
            (
                UNIX_EPOCH + Duration::from_micros(951_782_400_000_042),
                "29/Feb/2000:00:00:00 +0000",
                "2000-02-29T00:00:00.000042Z",
            ),
            (
                UNIX_EPOCH + Duration::from_millis(1_795_341_726_500),
                "22/Nov/2026:10:02:06 +0000",
                "2026-11-22T10:02:06.500000Z",
            ),
            (long_before, "01/Jan/1970:00:00:00 +0000", "1970-01-01T00:00:00.000000Z"),
        ] {
            let (mut one, mut other) = (Vec::new(), Vec::new());
            push_ncsa(&mut one, time);
            push_rfc3339(&mut other, time);
            assert_eq!(String::from_utf8(one).unwrap(), ncsa);
            assert_eq!(String::from_utf8(other).unwrap(), rfc3339);
        }
    }

    #[test]
    fn the_time_of_syslog_is_that_of_a_zone_and_has_one_digit_for_the_first_days_of_a_month() {
        for (seconds, text) in [(1_795_341_726, "Nov 22 15:32:06"), (1_793_577_600, "Nov  2 05:30:00")] {
            let zone = FixedOffset::east_opt(5 * 3600 + 1800).unwrap();
            let mut line = Vec::new();
            push_syslog(&mut line, &zone.timestamp_opt(seconds, 0).unwrap());
            assert_eq!(String::from_utf8(line).unwrap(), text);
        }
    }
}
