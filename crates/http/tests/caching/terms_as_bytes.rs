//! The stored form of terms, in a file that other programs could have written.

use eyewall_http::terms::{TERMS_BYTES, Terms};

use crate::support::judge;

#[test]
fn terms_come_back_as_they_were() {
    for response in [
        "cache-control: max-age=60\nage: 10",
        "cache-control: max-age=60, stale-while-revalidate=5, stale-if-error=7, immutable\netag: \"a\"",
        "cache-control: s-maxage=99999999999, no-cache\netag: \"a\"",
    ] {
        let terms = judge(response).unwrap().terms;
        assert_eq!(Terms::from_bytes(terms.to_bytes()), Some(terms), "{response}");
    }
}

#[test]
fn unknown_marks_are_not_understood() {
    let mut bytes = [0; TERMS_BYTES];
    assert!(Terms::from_bytes(bytes).is_some());
    bytes[TERMS_BYTES - 1] = 1;
    assert_eq!(Terms::from_bytes(bytes), None);
}
