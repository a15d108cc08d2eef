//! Dates (RFC 9110, section 5.6.7).
//!
//! ```text
//! IMF-fixdate    Sun, 06 Nov 1994 08:49:37 GMT
//! rfc850-date    Sunday, 06-Nov-94 08:49:37 GMT
//! asctime-date   Sun Nov  6 08:49:37 1994
//! ```
//! Names of days, months and the zone are case-insensitive. A day of the week that doesn't match the date is
//! ignored, since it adds no information. Everything else must be as shown.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};

const DAYS: [&[u8]; 7] = [b"monday", b"tuesday", b"wednesday", b"thursday", b"friday", b"saturday", b"sunday"];
const MONTHS: [&[u8; 3]; 12] =
    [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];
const DAY_SECONDS: u64 = 24 * 60 * 60;
/// The longest date is `Wednesday, 06-Nov-94 08:49:37 GMT`.
const BYTES_MAX: usize = 33;
/// The most words of a date, between single blanks.
const WORDS_MAX: usize = 6;

/// The date in a field of one value, in any of the three forms. `None` if the field is absent or not a date.
///
/// The first of several lines counts.
pub fn of(fields: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    parse(fields.get(name)?)
}

/// Parses a date in one of the three forms. `None` for anything else, and for days that the month doesn't have.
///
/// Only the two-digit year of an rfc850-date reads the system's clock. A year that would be more than 50 years
/// ahead is the latest earlier year with these digits.
pub fn parse(value: &HeaderValue) -> Option<SystemTime> {
    parse_with(value.as_bytes().trim_ascii(), SystemTime::now)
}

fn parse_with(text: &[u8], now: impl FnOnce() -> SystemTime) -> Option<SystemTime> {
    let mut small = [0; BYTES_MAX];
    let small = small.get_mut(..text.len())?;
    small.copy_from_slice(text);
    small.make_ascii_lowercase();
    let (words, count) = split::<WORDS_MAX>(small, b' ')?;
    match words[..count] {
        [weekday, day, month, year, time, b"gmt"] => {
            is_short_day(weekday.strip_suffix(b",")?).then_some(())?;
            moment(four_digits(year)?, month_of(month)?, two_digits(day)?, time)
        }
        [weekday, date, time, b"gmt"] => {
            DAYS.contains(&weekday.strip_suffix(b",")?).then_some(())?;
            let [day, month, year] = parts(date, b'-')?;
            let (month, day, year) = (month_of(month)?, two_digits(day)?, two_digits(year)?);
            let limit = now() + Duration::from_secs(50 * 365 * DAY_SECONDS + 12 * DAY_SECONDS);
            // The latest year with these digits that isn't beyond the limit.
            [2100, 2000, 1900].into_iter().find_map(|century| {
                let moment = moment(century + year, month, day, time)?;
                (moment <= limit).then_some(moment)
            })
        }
        // The day has two columns, the first of which may be blank.
        [weekday, month, b"", day, time, year] if day.len() == 1 && is_short_day(weekday) => {
            moment(four_digits(year)?, month_of(month)?, number(day)?, time)
        }
        [weekday, month, day, time, year] if is_short_day(weekday) => {
            moment(four_digits(year)?, month_of(month)?, two_digits(day)?, time)
        }
        _ => None,
    }
}

/// A moment of UTC; `time` is `hh:mm:ss`, and all text is in lower case. A leap second counts as the second after
/// it.
fn moment(year: u64, month: u64, day: u64, time: &[u8]) -> Option<SystemTime> {
    let [hour, minute, second] = parts(time, b':')?.map(two_digits);
    let (hour, minute, second) = (hour?, minute?, second?);
    let is_moment = (1..=days_of(year, month)).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    if !is_moment {
        return None;
    }
    let seconds = days_before(year, month, day) * DAY_SECONDS + (hour * 60 + minute) * 60 + second;
    let epoch = days_before(1970, 1, 1) * DAY_SECONDS;
    match seconds.checked_sub(epoch) {
        Some(since) => SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(since)),
        None => SystemTime::UNIX_EPOCH.checked_sub(Duration::from_secs(epoch - seconds)),
    }
}

/// Days since the beginning of the year 0 of the Gregorian calendar.
fn days_before(year: u64, month: u64, day: u64) -> u64 {
    let leap_days = year.div_ceil(4) - year.div_ceil(100) + year.div_ceil(400);
    year * 365 + leap_days + (1..month).map(|month| days_of(year, month)).sum::<u64>() + day - 1
}

fn days_of(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_short_day(word: &[u8]) -> bool {
    word.len() == 3 && DAYS.iter().any(|day| day.starts_with(word))
}

/// 1 to 12.
fn month_of(word: &[u8]) -> Option<u64> {
    MONTHS.iter().zip(1..).find_map(|(name, month)| (word == *name).then_some(month))
}

fn parts(text: &[u8], separator: u8) -> Option<[&[u8]; 3]> {
    split(text, separator).and_then(|(parts, count)| (count == 3).then_some(parts))
}

/// The parts of a text, and their number. `None` if there are more than `N`.
fn split<const N: usize>(text: &[u8], separator: u8) -> Option<([&[u8]; N], usize)> {
    let (mut parts, mut count) = ([&[][..]; N], 0);
    for part in text.split(|byte| *byte == separator) {
        *parts.get_mut(count)? = part;
        count += 1;
    }
    Some((parts, count))
}

fn two_digits(text: &[u8]) -> Option<u64> {
    (text.len() == 2).then(|| number(text)).flatten()
}

fn four_digits(text: &[u8]) -> Option<u64> {
    (text.len() == 4).then(|| number(text)).flatten()
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SystemTime {
        parse_with(text.as_bytes(), SystemTime::now).unwrap()
    }

    #[test]
    fn a_year_of_two_digits_is_at_most_fifty_years_ahead() {
        let now = at("Mon, 23 Nov 2026 12:00:00 GMT");
        for (year, expected) in [("26", 2026), ("00", 2000), ("75", 2075), ("76", 2076), ("77", 1977), ("99", 1999)] {
            let found = parse_with(format!("Sunday, 06-Nov-{year} 08:49:37 GMT").as_bytes(), || now);
            assert_eq!(found, Some(at(&format!("Sun, 06 Nov {expected} 08:49:37 GMT"))), "{year}");
        }
        let later = parse_with(b"Tuesday, 24-Nov-76 12:00:01 GMT", || now);
        assert_eq!(later, Some(at("Wed, 24 Nov 1976 12:00:01 GMT")), "more than 50 years ahead");
        let next_century = parse_with(b"Sunday, 06-Nov-10 08:49:37 GMT", || at("Mon, 23 Nov 2076 12:00:00 GMT"));
        assert_eq!(next_century, Some(at("Thu, 06 Nov 2110 08:49:37 GMT")));
    }

    #[test]
    fn all_days_match_another_implementation() {
        for day in 0..200_000 {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(day * 40_009);
            let text = httpdate::fmt_http_date(time);
            assert_eq!(parse_with(text.as_bytes(), SystemTime::now), Some(time), "{text}");
        }
    }
}
