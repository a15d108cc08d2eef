//! RFC 9110, section 5.6.7: three forms of dates, and permitted variations.

use std::time::{Duration, SystemTime};

use eyewall_http::field::date;
use http::HeaderValue;

fn seconds(text: &str) -> Option<i64> {
    let time = date::parse(&HeaderValue::from_str(text).ok()?)?;
    Some(match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => since.as_secs() as i64,
        Err(before) => -(before.duration().as_secs() as i64),
    })
}

#[test]
fn the_three_forms_are_the_same_moment() {
    for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
        assert_eq!(seconds(text), Some(784_111_777), "{text}");
    }
    assert_eq!(seconds("Wed Nov 16 08:49:37 1994"), Some(784_111_777 + 10 * 86_400));
}

#[test]
fn names_are_compared_without_case() {
    for text in [
        "sun, 06 nov 1994 08:49:37 gmt",
        "SUN, 06 NOV 1994 08:49:37 GMT",
        "SUNDAY, 06-NOV-94 08:49:37 gMt",
        "sUN nOV  6 08:49:37 1994",
        "  Sun, 06 Nov 1994 08:49:37 GMT ",
    ] {
        assert_eq!(seconds(text), Some(784_111_777), "{text}");
    }
}

#[test]
fn a_day_of_the_week_that_is_not_that_of_the_date_is_ignored() {
    for text in ["Mon, 06 Nov 1994 08:49:37 GMT", "Friday, 06-Nov-94 08:49:37 GMT", "Tue Nov  6 08:49:37 1994"] {
        assert_eq!(seconds(text), Some(784_111_777), "{text}");
    }
}

#[test]
fn edges_of_the_calendar() {
    for (text, expected) in [
        ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
        ("Wed, 31 Dec 1969 23:59:59 GMT", Some(-1)),
        ("Mon, 01 Jan 0001 00:00:00 GMT", Some(-62_135_596_800)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", Some(253_402_300_799)),
        ("Tue, 29 Feb 2000 00:00:00 GMT", Some(951_782_400)),
        ("Thu, 29 Feb 2024 00:00:00 GMT", Some(1_709_164_800)),
        ("Thu, 29 Feb 1900 00:00:00 GMT", None),
        ("Sat, 30 Feb 2024 00:00:00 GMT", None),
        ("Sun, 31 Apr 2024 00:00:00 GMT", None),
        ("Sat, 31 Dec 2016 23:59:60 GMT", Some(1_483_228_800)),
    ] {
        assert_eq!(seconds(text), expected, "{text}");
    }
}

#[test]
fn anything_else_is_no_date() {
    for text in [
        "",
        "0",
        "-1",
        "yesterday",
        "784111777",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun 06 Nov 1994 08:49:37 GMT",
        "Sun, 06  Nov  1994 08:49:37 GMT",
        "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 1994 08.49.37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, +6 Nov 1994 08:49:37 GMT",
        "Son, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Okt 1994 08:49:37 GMT",
        "Su, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov  16 08:49:37 1994",
        "Sun Nov  6 08:49:37 1994 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
    ] {
        assert_eq!(seconds(text), None, "{text}");
    }
    let not_text = HeaderValue::from_bytes(b"Sun, 06 N\xf6v 1994 08:49:37 GMT").unwrap();
    assert_eq!(date::parse(&not_text), None);
}

#[test]
fn a_year_of_two_digits_is_never_far_ahead() {
    let limit = SystemTime::now() + Duration::from_hours(51 * 366 * 24);
    for year in 0..100 {
        let text = format!("Sunday, 06-Nov-{year:02} 08:49:37 GMT");
        let found = date::parse(&HeaderValue::from_str(&text).unwrap()).unwrap();
        assert!(found < limit, "{text}");
    }
}
