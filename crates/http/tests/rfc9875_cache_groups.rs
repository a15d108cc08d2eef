//! RFC 9875: responses belong to groups, which responses to unsafe requests invalidate.
#![cfg(test)]

mod fields;

use eyewall_http::field::groups::{GROUP_LENGTH_MAX, GROUPS_MAX, invalidated, of};
use fields::fields;
use http::Method;

#[test]
fn groups_are_a_list_of_strings_or_nothing() {
    let rows: &[(&str, &[&str])] = &[
        ("\"scripts\"", &["scripts"]),
        ("\"scripts\" ,\t\"styles\"", &["scripts", "styles"]),
        ("\"a\", \"A\", \"a\"", &["a", "A"]),
        ("\"a\";x=1;y, \"b\"", &["a", "b"]),
        ("\"a \\\"b\\\\\"", &["a \"b\\"]),
        ("\"\"", &[""]),
        ("", &[]),
        // One fault, and all of it is ignored.
        ("\"a\", b", &[]),
        ("\"a\", (\"b\")", &[]),
        ("\"a\",", &[]),
        ("\"a\", 1", &[]),
        ("\"a\" \"b\"", &[]),
        ("\"a", &[]),
        ("\"\u{e4}\"", &[]),
    ];
    for (value, expected) in rows {
        assert_eq!(of(&fields(&[("cache-groups", value)])), *expected, "{value}");
    }
    assert_eq!(of(&fields(&[("cache-groups", "\"a\""), ("cache-groups", "\"b\"")])), ["a", "b"]);
    assert_eq!(of(&fields(&[("cache-groups", "\"a\""), ("cache-groups", "b")])), [""; 0]);
    assert_eq!(of(&fields(&[])), [""; 0]);
}

#[test]
fn there_is_an_end_to_how_many_and_how_long() {
    let names: Vec<_> = (0..GROUPS_MAX + 5).map(|number| format!("\"{number:032}\"")).collect();
    let groups = of(&fields(&[("cache-groups", &names.join(", "))]));
    assert_eq!(groups.len(), GROUPS_MAX);
    assert_eq!(groups[31], format!("{:032}", 31));
    let (long, longer) = ("x".repeat(GROUP_LENGTH_MAX), "x".repeat(GROUP_LENGTH_MAX + 1));
    let groups = of(&fields(&[("cache-groups", &format!("\"{long}\", \"{longer}\", \"b\""))]));
    assert_eq!(groups, [&long, "b"]);
}

#[test]
fn only_unsafe_requests_invalidate_groups() {
    let response = fields(&[("cache-group-invalidation", "\"a\", \"b\""), ("cache-groups", "\"c\"")]);
    for (method, does) in [
        (Method::POST, true),
        (Method::DELETE, true),
        (Method::from_bytes(b"FROBNICATE").unwrap(), true),
        (Method::GET, false),
        (Method::HEAD, false),
        (Method::OPTIONS, false),
        (Method::from_bytes(b"QUERY").unwrap(), false),
    ] {
        assert_eq!(invalidated(&method, &response), if does { vec!["a", "b"] } else { vec![] }, "{method}");
    }
}
