//! Reads and writes sizes, durations and counts in the notation for people.

use std::time::Duration;

const SIZE_UNITS: [(&str, u64); 5] = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10), ("", 1)];
const MILLISECOND: u128 = 1;
const SECOND: u128 = 1000 * MILLISECOND;
const MINUTE: u128 = 60 * SECOND;
const HOUR: u128 = 60 * MINUTE;
const DAY: u128 = 24 * HOUR;
const DURATION_UNITS: [(&str, u128); 5] = [("ms", MILLISECOND), ("s", SECOND), ("m", MINUTE), ("h", HOUR), ("d", DAY)];

/// Reads `512`, `64K`, `64M`, `1G`, `1T`; `KiB` and `KB` mean the same as `K`, which is 1,024 bytes.
///
/// # Errors
/// A message for the user of the command line.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, unit) = split_number(text);
    let unit = unit.to_ascii_uppercase();
    let unit = unit.strip_suffix("IB").or_else(|| unit.strip_suffix('B')).unwrap_or(&unit);
    let factor = SIZE_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    digits
        .parse::<u64>()
        .ok()
        .zip(factor)
        .and_then(|(number, factor)| number.checked_mul(factor))
        .ok_or_else(|| "a size is a whole number with K, M, G or T, such as 64M".to_owned())
}

/// Reads `500ms`, `60s`, `5m`, `1h`, `7d`. It refuses a number without a unit, which would be ambiguous.
///
/// # Errors
/// A message for the user of the command line.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (digits, unit) = split_number(text);
    let factor = DURATION_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    digits
        .parse::<u64>()
        .ok()
        .zip(factor)
        .and_then(|(number, factor)| u64::try_from(u128::from(number) * factor).ok())
        .filter(|milliseconds| *milliseconds > 0)
        .map(Duration::from_millis)
        .ok_or_else(|| "a duration is a whole number with ms, s, m, h or d, such as 60s".to_owned())
}

fn split_number(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()))
}

/// `512 B`, `1.5 KiB`, `64 MiB`.
pub fn size(bytes: u64) -> String {
    let Some((name, factor)) = SIZE_UNITS[..4].iter().find(|(_, factor)| bytes >= *factor) else {
        return format!("{bytes} B");
    };
    let tenths = (u128::from(bytes) * 10 + u128::from(factor / 2)) / u128::from(*factor);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole} {name}iB"),
        (whole, _) if whole >= 100 => format!("{whole} {name}iB"),
        (whole, tenth) => format!("{whole}.{tenth} {name}iB"),
    }
}

/// A duration in its two largest units: `350 ms`, `12 s`, `3 m 20 s`, `2 d 4 h`.
pub fn duration(span: Duration) -> String {
    let milliseconds = span.as_millis();
    let two = |large: u128, large_name: &str, small: u128, small_name: &str| {
        let rest = milliseconds % large / small;
        let whole = milliseconds / large;
        if rest == 0 { format!("{whole} {large_name}") } else { format!("{whole} {large_name} {rest} {small_name}") }
    };
    match milliseconds {
        0..SECOND => format!("{milliseconds} ms"),
        SECOND..MINUTE => format!("{} s", milliseconds / SECOND),
        MINUTE..HOUR => two(MINUTE, "m", SECOND, "s"),
        HOUR..DAY => two(HOUR, "h", MINUTE, "m"),
        _ => two(DAY, "d", HOUR, "h"),
    }
}

/// `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 pin`, `2 pins`.
pub fn counted(number: u64, singular: &str, plural: &str) -> String {
    format!("{} {}", count(number), if number == 1 { singular } else { plural })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_size_are_powers_of_1024() {
        assert_eq!(parse_size("512"), Ok(512));
        assert_eq!(parse_size("64M"), Ok(64 << 20));
        assert_eq!(parse_size("64MiB"), Ok(64 << 20));
        assert_eq!(parse_size("1g"), Ok(1 << 30));
        for wrong in ["", "M", "1.5G", "-1", "64X", "99999999999T"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("5m"), Ok(Duration::from_mins(5)));
        for wrong in ["", "60", "s", "0s", "1w", "1.5h"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_shown_is_short() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(64 << 20), "64 MiB");
        assert_eq!(duration(Duration::from_millis(350)), "350 ms");
        assert_eq!(duration(Duration::from_secs(200)), "3 m 20 s");
        assert_eq!(duration(Duration::from_hours(48)), "2 d");
        assert_eq!(count(7), "7");
        assert_eq!(count(1_234_567), "1,234,567");
    }
}
