//! RFC 9110, section 12: how much a client prefers a coding or a language.

use eyewall_http::field::quality;
use http::header::{ACCEPT_ENCODING, ACCEPT_LANGUAGE};

use crate::support::fields;

#[test]
fn a_coding_is_weighed_by_its_name_then_by_the_star() {
    for (accepted, coding, expected) in [
        ("gzip, br;q=0.25", "gzip", 1000),
        ("gzip, br;q=0.25", "BR", 250),
        ("gzip, br;q=0.25", "zstd", 0),
        ("gzip", "x-gzip", 1000),
        ("gzip", "identity", 1),
        ("", "identity", 1),
        ("", "gzip", 0),
        ("*", "zstd", 1000),
        ("*;q=0, gzip", "gzip", 1000),
        ("*;q=0, gzip", "identity", 0),
        ("*;q=0.5, identity;q=0", "identity", 0),
    ] {
        let preferences = quality::preferences(&fields(&format!("accept-encoding: {accepted}")), &ACCEPT_ENCODING);
        assert_eq!(quality::of_coding(&preferences.unwrap(), coding), expected, "{accepted}: {coding}");
    }
}

#[test]
fn a_language_is_weighed_by_the_longest_range_that_it_lies_in() {
    for (accepted, tag, expected) in [
        ("de", "de", 1000),
        ("de", "DE-ch", 1000),
        ("de", "den", 0),
        ("de-CH", "de", 0),
        ("de;q=0.5, de-ch;q=0.75", "de-CH-1996", 750),
        ("*;q=0.5, de;q=0", "de-CH", 0),
        ("*;q=0.5, de;q=0", "fr", 500),
        ("", "de", 0),
    ] {
        let preferences = quality::preferences(&fields(&format!("accept-language: {accepted}")), &ACCEPT_LANGUAGE);
        assert_eq!(quality::of_language(&preferences.unwrap(), tag), expected, "{accepted}: {tag}");
    }
}

#[test]
fn a_malformed_or_repeated_value_is_no_preference() {
    for malformed in [
        "gzip;q=",
        "gzip;q=1.5",
        "gzip;q=0.1234",
        "gzip;q=-1",
        "gzip;q=1;x=1",
        "gzip;level=5",
        "g zip",
        "br, br;q=0",
        ";q=1",
    ] {
        let found = quality::preferences(&fields(&format!("accept-encoding: {malformed}")), &ACCEPT_ENCODING);
        assert_eq!(found, None, "{malformed}");
    }
    for well_formed in ["gzip;q=0.", "gzip;q=1.000", "gzip ; q=0.001", "gzip;Q=1"] {
        let found = quality::preferences(&fields(&format!("accept-encoding: {well_formed}")), &ACCEPT_ENCODING);
        assert!(found.is_some(), "{well_formed}");
    }
}
