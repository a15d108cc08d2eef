//! Values in the notation of the file: durations, sizes, bounded numbers, statuses. Each is checked when it is read, so its
//! error has a place in the file. A message may end with a hint, after a semicolon.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use http::StatusCode;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{parse_duration, parse_size};

/// The longest duration: sums with the clock's time never overflow.
const DURATION_MAX: Duration = Duration::from_hours(3650 * 24);

/// A duration such as `"60s"`: more than zero, at most ten years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(pub Duration);

/// A duration that may be `"0s"`, which turns its feature off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window(pub Duration);

/// A size such as `"64M"`, or a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A size of `MIN` to `MAX` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeWithin<const MIN: u64, const MAX: u64>(pub u64);

/// A whole number of `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Within<const MIN: u64, const MAX: u64>(pub u64);

/// A status such as `404`, or a class of them such as `"5xx"`, of final responses (RFC 9110, section 15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Statuses {
    /// The first and the last.
    range: (u16, u16),
}

impl Statuses {
    /// Whether this status is one of them.
    pub fn contains(self, status: StatusCode) -> bool {
        (self.range.0..=self.range.1).contains(&status.as_u16())
    }

    /// Whether all of them are errors.
    pub fn is_error(self) -> bool {
        self.range.0 >= 400
    }

    /// Whether it is one status and not a class; one status takes precedence.
    pub fn is_single(self) -> bool {
        self.range.0 == self.range.1
    }
}

impl FromStr for Statuses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let class = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX"));
        let range = match class {
            Some(class) => {
                class.parse::<u16>().ok().filter(|class| *class < 10).map(|class| (class * 100, class * 100 + 99))
            }
            None => text.parse::<u16>().ok().map(|status| (status, status)),
        };
        range.filter(|(first, last)| *first >= 200 && *last <= 599).map(|range| Self { range }).ok_or_else(|| {
            format!("`{text}` is not the status of a response; give 200 to 599, or a class such as \"5xx\"")
        })
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_single() {
            write!(formatter, "{}", self.range.0)
        } else {
            write!(formatter, "{}xx", self.range.0 / 100)
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&duration_text(self.0))
    }
}

impl fmt::Display for Window {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&duration_text(self.0))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&size_text(self.0))
    }
}

/// A duration in the notation of the file, in the largest unit that is exact.
fn duration_text(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];
    match units.iter().find(|(_, unit)| milliseconds >= *unit && milliseconds.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", milliseconds / unit),
        None if milliseconds == 0 => "0s".to_owned(),
        None => format!("{milliseconds}ms"),
    }
}

/// The same for a size.
fn size_text(bytes: u64) -> String {
    let units = [("T", 1_u64 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];
    match units.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

/// Reads a string, or a number as if it were in a string.
struct Text<T> {
    expected: &'static str,
    takes_numbers: bool,
    parse: fn(&str) -> Result<T, String>,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        if self.takes_numbers {
            (self.parse)(&number.to_string()).map_err(E::custom)
        } else {
            Err(E::invalid_type(Unexpected::Signed(number), &self))
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        if self.takes_numbers {
            (self.parse)(&number.to_string()).map_err(E::custom)
        } else {
            Err(E::invalid_type(Unexpected::Unsigned(number), &self))
        }
    }
}

/// Reads a value that is written as a string.
pub(super) fn from_text<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &'static str,
    parse: fn(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Text { expected, takes_numbers: false, parse })
}

fn from_text_or_number<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &'static str,
    parse: fn(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Text { expected, takes_numbers: true, parse })
}

const A_DURATION: &str = "a duration such as \"60s\"";
const A_SIZE: &str = "a size such as \"64M\"";

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, A_DURATION, bounded_duration).map(Self)
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parse = |text: &str| if text == "0s" { Ok(Duration::ZERO) } else { bounded_duration(text) };
        from_text(deserializer, A_DURATION, parse).map(Self)
    }
}

fn bounded_duration(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text).map_err(|hint| format!("`{text}` is not a duration; {hint}"))?;
    if duration > DURATION_MAX {
        return Err(format!("`{text}` is too long; give at most {}", duration_text(DURATION_MAX)));
    }
    Ok(duration)
}

fn any_size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|hint| format!("`{text}` is not a size; {hint}"))
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text_or_number(deserializer, A_SIZE, any_size).map(Self)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for SizeWithin<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parse = |text: &str| match any_size(text)? {
            bytes if (MIN..=MAX).contains(&bytes) => Ok(Self(bytes)),
            _ => Err(format!("`{text}` is out of range; give {} to {}", size_text(MIN), size_text(MAX))),
        };
        from_text_or_number(deserializer, A_SIZE, parse)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Within<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        match u64::try_from(number) {
            Ok(number) if (MIN..=MAX).contains(&number) => Ok(Self(number)),
            _ => Err(D::Error::custom(format!("{number} is out of range; give {MIN} to {MAX}"))),
        }
    }
}

impl<'de> Deserialize<'de> for Statuses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text_or_number(deserializer, "a status such as 404, or a class such as \"5xx\"", str::parse)
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Window {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for SizeWithin<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Size(self.0))
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Within<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl Serialize for Statuses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads the types from texts by [`FromStr`], and shows them by [`fmt::Display`].
macro_rules! written_as_text {
    ($($name:ty: $expected:literal),+ $(,)?) => {$(
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::config::value::from_text(deserializer, $expected, str::parse)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )+};
}

pub(super) use written_as_text;

/// Statuses as the key of a table, which must be text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatusKey(pub Statuses);

impl FromStr for StatusKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

impl fmt::Display for StatusKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

written_as_text! {
    StatusKey: "a status such as 404, or a class such as 5xx",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_single_or_a_class_of_final_ones() {
        let server_errors: Statuses = "5xx".parse().unwrap();
        assert!(server_errors.contains(StatusCode::BAD_GATEWAY) && !server_errors.contains(StatusCode::NOT_FOUND));
        assert!("404".parse::<Statuses>().unwrap().contains(StatusCode::NOT_FOUND));
        assert_eq!(
            (server_errors.to_string(), "404".parse::<Statuses>().unwrap().to_string()),
            ("5xx".into(), "404".into())
        );
        for wrong in ["", "xx", "1xx", "100", "600", "6xx", "55xx", "-1", "4x"] {
            assert!(wrong.parse::<Statuses>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_are_shown_in_the_notation_of_the_file() {
        for text in ["1ms", "60ms", "1s", "90s", "2m", "25h", "30d"] {
            let shown = duration_text(parse_duration(text).unwrap());
            assert_eq!(parse_duration(&shown), parse_duration(text), "{text} is shown as {shown}");
        }
        assert_eq!(duration_text(Duration::from_mins(1)), "1m");
        assert_eq!((size_text(64 << 20), size_text(1500)), ("64M".to_owned(), "1500".to_owned()));
    }
}
