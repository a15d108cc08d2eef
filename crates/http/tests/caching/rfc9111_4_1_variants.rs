//! RFC 9111, section 4.1: whether one stored response serves two clients with different request fields.

use eyewall_http::field::vary::Vary;
use eyewall_http::selecting;
use http::HeaderName;

use crate::support::{fields, names};

/// Whether two requests select the same response, by one field.
fn is_same(name: &'static str, one: &str, other: &str) -> bool {
    let names = [HeaderName::from_static(name)];
    selecting::key(&names, &fields(one)) == selecting::key(&names, &fields(other))
}

#[test]
fn vary_is_a_list_over_all_lines_without_case() {
    for (lines, expected) in [
        ("", Vary::Nothing),
        ("vary:", Vary::Nothing),
        ("vary: Foo, bar\nvary: FOO", Vary::Fields(names(&["bar", "foo"]))),
        ("vary: *", Vary::Everything),
        ("vary: foo\nvary: bar, *", Vary::Everything),
        ("vary: foo bar", Vary::Everything),
    ] {
        assert_eq!(Vary::of(&fields(lines)), expected, "{lines}");
    }
}

#[test]
fn a_coded_response_varies_by_accept_encoding_though_it_does_not_say_so() {
    let by_coding = Vary::Fields(names(&["accept-encoding"]));
    assert_eq!(selecting::vary_of(&fields("content-encoding: gzip")), by_coding);
    assert_eq!(selecting::vary_of(&fields("content-encoding: gzip\nvary: accept-encoding")), by_coding);
    assert_eq!(selecting::vary_of(&fields("content-encoding: gzip\nvary: *")), Vary::Everything);
}

#[test]
fn lines_blanks_and_empty_members_make_no_difference() {
    assert!(is_same("foo", "foo: 1, 2", "foo: 1\nfoo: 2"));
    assert!(is_same("foo", "foo: 1,2", "foo:  1 ,, 2 "));
    assert!(!is_same("foo", "foo: 1,2", "foo: 2,1"));
    assert!(!is_same("foo", "foo: a", "foo: A"));
    assert!(!is_same("foo", "foo: \"a, b\"", "foo: \"a,b\""));
    assert!(!is_same("cookie", "cookie: a=1,2", "cookie: a=1, 2"));
    assert!(!is_same("foo", "foo: a b", "foo: a  b"));
}

#[test]
fn an_absent_field_matches_only_an_absent_field() {
    assert!(is_same("foo", "bar: 1", ""));
    assert!(!is_same("foo", "foo:", ""));
    assert!(!is_same("accept-encoding", "accept-encoding:", ""));
    let both = names(&["a", "b"]);
    assert_ne!(selecting::key(&both, &fields("a: 1")), selecting::key(&both, &fields("b: 1")));
    assert_ne!(selecting::key(&both, &fields("a: 1,b:2")), selecting::key(&both, &fields("a: 1\nb: 2")));
}

#[test]
fn codings_and_languages_are_the_same_in_any_order_and_case() {
    for (name, one, other, expected) in [
        ("accept-encoding", "gzip, br", "BR,gzip", true),
        ("accept-encoding", "gzip;q=1.0, br;q=0.50", "br; Q=0.5 , gzip", true),
        ("accept-encoding", "x-gzip", "gzip", true),
        ("accept-encoding", "gzip", "gzip, br", false),
        ("accept-encoding", "gzip", "gzip;q=0", false),
        ("accept-encoding", "gzip, identity", "gzip", false),
        ("accept-encoding", "gzip;q=0.5, br", "gzip, br;q=0.5", false),
        ("accept-encoding", "gzip;q=x", "gzip", false),
        ("accept-encoding", "gzip, gzip;q=0", "gzip", false),
        ("accept-language", "en, de", "dE, En", true),
        ("accept-language", "en;q=0.5, de", "de, en;q=0.5", true),
        ("accept-language", "en, de;q=0.5", "de, en;q=0.5", false),
    ] {
        let request = |value: &str| format!("{name}: {value}");
        assert_eq!(is_same(name, &request(one), &request(other)), expected, "{one} / {other}");
    }
}

#[test]
fn a_stored_response_also_suits_a_client_that_prefers_it() {
    for (stored, stored_for, request, expected) in [
        ("content-encoding: br", "accept-encoding: gzip, br", "accept-encoding: br", true),
        ("content-encoding: br", "accept-encoding: gzip, br", "accept-encoding: zstd, br", true),
        ("content-encoding: br", "accept-encoding: gzip, br", "accept-encoding: br;q=0.5, gzip", false),
        ("content-encoding: br", "accept-encoding: gzip, br", "accept-encoding: br;q=0", false),
        ("content-encoding: br", "accept-encoding: gzip, br", "accept-encoding: *", false),
        ("content-encoding: br", "accept-encoding: gzip, br", "accept-encoding: gzip", false),
        ("content-encoding: br", "accept-encoding: gzip, br", "accept-encoding:", false),
        ("content-encoding: br", "accept-encoding: gzip, br", "accept-encoding: br;q=2", false),
        ("content-encoding: br", "accept-encoding: gzip, br", "", false),
        ("content-encoding: br", "", "accept-encoding: br", false),
        ("content-encoding: br, gzip", "accept-encoding: gzip, br", "accept-encoding: br", false),
        ("", "accept-encoding: gzip, br", "accept-encoding: identity", true),
        ("", "accept-encoding: gzip, br", "accept-encoding:", true),
        ("", "accept-encoding: gzip, br", "accept-encoding: gzip;q=0", true),
        ("", "accept-encoding: gzip, br", "accept-encoding: identity;q=0", false),
        ("", "accept-encoding: gzip, br", "accept-encoding: *;q=0", false),
        ("", "accept-encoding: gzip, br", "accept-encoding: gzip", false),
        ("content-language: de", "accept-language: en, de", "accept-language: fr;q=0.5, de;q=1.0", true),
        ("content-language: de-CH", "accept-language: en, de", "accept-language: de", true),
        ("content-language: de-CH", "accept-language: en, de", "accept-language: de, de-ch;q=0", false),
        ("content-language: de", "accept-language: en, de", "accept-language: de-CH", false),
        ("content-language: de", "accept-language: en, de", "accept-language: fr, de;q=0.5", false),
        ("content-language: de", "accept-language: en, de", "accept-language: *", false),
        ("content-language: de, en", "accept-language: en, de", "accept-language: de", false),
        ("", "accept-language: en, de", "accept-language: de", false),
        ("", "foo: 1", "foo: 2", false),
        ("", "foo: 1", "foo: 1", true),
    ] {
        let name = [stored_for, request].concat().split(':').next().unwrap().to_owned();
        let names = [HeaderName::try_from(name).unwrap()];
        let key = selecting::key(&names, &fields(stored_for));
        let found = selecting::suits(&names, &key, &fields(stored), &fields(request));
        assert_eq!(found, expected, "{stored} for {stored_for}, asked by {request}");
    }
}

#[test]
fn each_field_must_fit_and_a_foreign_key_fits_nothing() {
    let both = names(&["accept-encoding", "cookie"]);
    let stored = fields("content-encoding: br");
    let key = selecting::key(&both, &fields("accept-encoding: gzip, br\ncookie: a=1"));
    let suits = |key: &[u8], request: &str| selecting::suits(&both, key, &stored, &fields(request));
    assert!(suits(&key, "accept-encoding: br\ncookie: a=1"));
    assert!(!suits(&key, "accept-encoding: br\ncookie: a=2"));
    assert!(!suits(&key, "accept-encoding: br"));
    assert!(!suits(b"", "accept-encoding: br\ncookie: a=1"));
    assert!(!suits(&[&key[..], b"x\n"].concat(), "accept-encoding: br\ncookie: a=1"));
}
