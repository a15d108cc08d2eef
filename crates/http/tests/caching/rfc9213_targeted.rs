//! RFC 9213: an origin addresses this cache alone, not those nearer to the client.

use eyewall_http::field::cache_control::{ResponseDirectives, Scope};
use eyewall_http::field::seconds::SECONDS_MAX;
use eyewall_http::field::targeted::{self, CDN_CACHE_CONTROL, Control};
use eyewall_http::freshness::Source;
use eyewall_http::policy::Policy;
use eyewall_http::storing::NotStored;

use crate::support::{fields, judge, judge_with, names};

fn read(value: &str) -> Option<ResponseDirectives> {
    targeted::directives(&fields(&format!("cdn-cache-control: {value}")), &CDN_CACHE_CONTROL)
}

#[test]
fn the_targeted_field_decides_alone() {
    let expires = "expires: Sun, 06 Nov 1994 08:50:37 GMT";
    let lifetime = |response: &str| judge(response).map(|stored| (stored.terms.lifetime_seconds, stored.source));
    for (response, expected) in [
        ("cdn-cache-control: max-age=9\ncache-control: no-store, max-age=5".to_owned(), Ok((9, Some(Source::MaxAge)))),
        ("cdn-cache-control: no-store\ncache-control: max-age=5".to_owned(), Err(NotStored::NoStore)),
        ("cdn-cache-control: private\ncache-control: max-age=5".to_owned(), Err(NotStored::Private)),
        ("cdn-cache-control: none\ncache-control: max-age=5".to_owned(), Err(NotStored::NoLifetime)),
        (format!("cdn-cache-control: none\n{expires}"), Err(NotStored::NoLifetime)),
        (format!("cdn-cache-control: max-age=5, s-maxage=9\n{expires}"), Ok((9, Some(Source::SMaxage)))),
        // The age still counts.
        ("cdn-cache-control: max-age=9\nage: 10".to_owned(), Err(NotStored::Stale)),
    ] {
        assert_eq!(lifetime(&response), expected, "{response}");
    }
}

#[test]
fn one_that_is_malformed_or_empty_is_as_if_it_were_not_there() {
    for value in
        ["", "max-age=9,", "max-age=9, &&", "Max-Age=9", "max-age =9", "max-age= 9", "max-age=9; x y", "max-age=\"9"]
    {
        assert_eq!(read(value), None, "{value}");
        let fields = fields(&format!("cdn-cache-control: {value}\ncache-control: max-age=5"));
        let control = Control::of(&fields, &[CDN_CACHE_CONTROL]);
        assert_eq!((control.directives.max_age, control.is_targeted), (Some(5), false), "{value}");
    }
}

#[test]
fn a_value_of_the_wrong_type_is_not_taken() {
    for (value, expected) in [
        ("max-age=9", Some(9)),
        ("max-age=9;x=1", Some(9)),
        ("max-age=9, max-age=5", Some(5)),
        ("max-age=999999999999999", Some(SECONDS_MAX)),
        ("max-age=-9", Some(0)),
        ("max-age=\"9\"", None),
        ("max-age=9.5", None),
        ("max-age", None),
        ("max-age=(9)", None),
        ("max-age=@9", None),
        ("max-age=nine", None),
    ] {
        assert_eq!(read(value).unwrap().max_age, expected, "{value}");
    }
    for (value, expected) in [("no-store", true), ("no-store=?1", true), ("no-store=?0", false), ("no-store=1", false)]
    {
        assert_eq!(read(value).unwrap().no_store, expected, "{value}");
    }
}

#[test]
fn fields_may_be_named_by_a_text_a_token_or_a_list() {
    let of_fields = |list: &[&'static str]| Scope::Fields(names(list));
    for (value, expected) in [
        ("private", Scope::Response),
        ("private=?0", Scope::Nothing),
        ("private=\"x-a, x-b\"", of_fields(&["x-a", "x-b"])),
        ("private=x-a", of_fields(&["x-a"])),
        ("private=(x-a \"x-b\")", of_fields(&["x-a", "x-b"])),
        ("private=()", Scope::Response),
        ("private=(1)", Scope::Response),
        ("private=\"\"", Scope::Response),
        ("private=1", Scope::Nothing),
    ] {
        assert_eq!(read(value).unwrap().private, expected, "{value}");
    }
}

#[test]
fn the_first_of_the_list_that_is_valid_counts() {
    let policy = Policy { targets: names(&["eyewall-cache-control", "cdn-cache-control"]), ..Policy::default() };
    for (response, expected) in [
        ("eyewall-cache-control: max-age=9\ncdn-cache-control: max-age=7", 9),
        ("eyewall-cache-control: ?\ncdn-cache-control: max-age=7\ncache-control: max-age=5", 7),
        ("cdn-cache-control: max-age=7\ncdn-cache-control: public", 7),
        ("eyewall-cache-control:\ncache-control: max-age=5", 5),
    ] {
        let stored = judge_with("", 200, response, &policy).unwrap();
        assert_eq!(stored.terms.lifetime_seconds, expected, "{response}");
    }
    let other = judge("eyewall-cache-control: max-age=9\ncache-control: max-age=5").unwrap();
    assert_eq!(other.terms.lifetime_seconds, 5);
}
