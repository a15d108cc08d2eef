//! RFC 9110, section 8.8.3: two comparisons of entity tags, and lists with invalid members.
#![cfg(test)]

mod fields;

use eyewall_http::field::entity_tag::{EntityTag, TagList};
use fields::fields;
use http::header::{IF_MATCH, IF_NONE_MATCH};

#[test]
fn tags_compare_as_in_the_table_of_the_section() {
    for (one, other, strongly, weakly) in [
        ("W/\"1\"", "W/\"1\"", false, true),
        ("W/\"1\"", "W/\"2\"", false, false),
        ("W/\"1\"", "\"1\"", false, true),
        ("\"1\"", "\"1\"", true, true),
        ("\"\"", "\"\"", true, true),
        ("\"a\"", "\"A\"", false, false),
    ] {
        let (one, other) = (EntityTag::parse(one.as_bytes()).unwrap(), EntityTag::parse(other.as_bytes()).unwrap());
        assert_eq!(one.matches_strongly(&other), strongly, "{one:?} {other:?}");
        assert_eq!(one.matches_weakly(&other), weakly, "{one:?} {other:?}");
        assert_eq!(other.matches_strongly(&one), strongly, "{one:?} {other:?}");
        assert_eq!(other.matches_weakly(&one), weakly, "{one:?} {other:?}");
    }
}

#[test]
fn a_tag_may_have_any_visible_character_and_non_ascii_bytes() {
    for (value, opaque) in
        [("\"xyzzy\"", "xyzzy"), (" W/\"x,y\" ", "x,y"), ("\"\\\"", "\\"), ("\"abcdef\u{fc}\"", "abcdef\u{fc}")]
    {
        assert_eq!(EntityTag::parse(value.as_bytes()).unwrap().opaque(), opaque.as_bytes(), "{value}");
    }
    for value in
        ["", "abc", "\"", "\"abc", "abc\"", "w/\"a\"", "W\"a\"", "W/", "W/a", "\"a b\"", "\"a\"b", "\"a\", \"b\""]
    {
        assert!(EntityTag::parse(value.as_bytes()).is_none(), "{value}");
    }
}

#[test]
fn a_response_has_one_tag_or_none() {
    assert!(EntityTag::of(&fields(&[("etag", "W/\"a\"")])).unwrap().is_weak());
    assert!(EntityTag::of(&fields(&[("etag", "a")])).is_none());
    assert!(EntityTag::of(&fields(&[("etag", "\"a\""), ("etag", "\"b\"")])).is_none());
    assert!(EntityTag::of(&fields(&[])).is_none());
}

#[test]
fn a_malformed_member_of_a_list_matches_nothing_and_those_beside_it_count() {
    for (list, has_a) in [
        ("\"a\"", true),
        ("\"x\", \"a\", \"y\"", true),
        ("\"x\",W/\"a\"", true),
        (", , \"a\",", true),
        ("x, \"a\"", true),
        ("\"x y\", \"a\"", true),
        ("\"x\" \"a\"", false),
        ("\"a\"x", false),
        ("\"x, \"a\"", true),
        ("\"x\\\", \"a\"", true),
        ("*, \"a\"", true),
        ("*, \"b\"", false),
        ("a", false),
        ("\"x,\"a\",y\"", false),
        ("w/\"a\"", false),
        ("", false),
    ] {
        let request = fields(&[("if-none-match", list)]);
        let current = EntityTag::parse(b"\"a\"").unwrap();
        let list_read = TagList::of(&request, &IF_NONE_MATCH).unwrap();
        assert_eq!(list_read.has_weakly(Some(&current)), has_a, "{list}");
        assert!(!list_read.has_weakly(None), "{list}");
    }
}

#[test]
fn a_list_is_one_over_all_its_lines_and_a_lone_star_means_any() {
    let request = fields(&[("if-match", "\"a\""), ("if-match", "W/\"b\", \"c\""), ("if-none-match", " * ")]);
    let list = TagList::of(&request, &IF_MATCH).unwrap();
    for (tag, is_there) in [("\"a\"", true), ("\"b\"", false), ("\"c\"", true), ("W/\"c\"", false)] {
        assert_eq!(list.has_strongly(EntityTag::parse(tag.as_bytes()).as_ref()), is_there, "{tag}");
    }
    assert!(TagList::of(&request, &IF_NONE_MATCH).unwrap().has_weakly(None));
    assert!(TagList::of(&fields(&[]), &IF_MATCH).is_none());
}
