//! RFC 9111, sections 4.2.3 and 5.1: the age of a response when it arrives, and later.

use std::time::Duration;

use eyewall_http::age;
use eyewall_http::field::seconds::SECONDS_MAX;
use eyewall_http::message::Exchange;

use crate::support::{at, fields, judge};

#[test]
fn the_age_told_and_the_time_under_way_are_held_against_the_date() {
    for (response, requested, received, expected) in [
        ("", 100, 100, 0),
        ("", 100, 103, 3),
        ("age: 10", 100, 103, 13),
        ("date: Sun, 06 Nov 1994 08:49:37 GMT", 100, 103, 103),
        ("date: Sun, 06 Nov 1994 08:49:37 GMT\nage: 10", 100, 103, 103),
        ("date: Sun, 06 Nov 1994 08:49:37 GMT\nage: 200", 100, 103, 203),
        ("date: Sun, 06 Nov 1994 09:49:37 GMT\nage: 10", 100, 103, 13),
        ("date: foo\nage: 10", 100, 103, 13),
        ("age: 10", 103, 100, 10),
        ("age: 99999999999999999999", 100, 103, u64::from(SECONDS_MAX)),
    ] {
        let exchange = Exchange { requested: at(requested), received: at(received) };
        let found = age::initial(&fields(response), exchange);
        assert_eq!(found, Duration::from_secs(expected), "{response}");
    }
}

#[test]
fn an_age_that_is_no_number_is_none_and_of_a_list_the_first_counts() {
    for (lines, expected) in [
        ("age: 0", 0),
        ("age: 007", 7),
        ("age: -7", 0),
        ("age: 7.0", 0),
        ("age: abc", 0),
        ("age: 7;foo=bar", 0),
        ("age:", 0),
        ("age: 7, 9", 7),
        ("age: 0, 0", 0),
        ("age: 0\nage: 0", 0),
        ("age: 7\nage: 7", 7),
        ("age:\nage: 7", 0),
        ("age: , 7", 0),
        ("age: \"7\"", 0),
        ("age: 7\nage: 9", 7),
        ("age: x, 9", 0),
        ("age: 2147483649", SECONDS_MAX),
    ] {
        assert_eq!(age::value(&fields(lines)), expected, "{lines}");
    }
}

#[test]
fn a_stored_response_ages_and_never_gets_younger_than_it_came() {
    let terms = judge("cache-control: max-age=60\nage: 10").unwrap().terms;
    for (now, age, fresh_for) in [(0, 10, 50), (20, 30, 30), (50, 60, 0), (90, 100, 0)] {
        assert_eq!(terms.age(at(now)), Duration::from_secs(age));
        assert_eq!(terms.fresh_for(at(now)), Duration::from_secs(fresh_for));
    }
    assert_eq!(terms.age(at(0) - Duration::from_hours(1)), Duration::from_secs(10));
}
