//! RFC 9111, section 5.2: an origin sends a correct or malformed `Cache-Control`.

use eyewall_http::field::cache_control::{ResponseDirectives, Scope};
use eyewall_http::field::seconds::SECONDS_MAX;

use crate::support::{fields, names};

fn read(lines: &str) -> ResponseDirectives {
    ResponseDirectives::of(&fields(lines))
}

#[test]
fn each_directive_is_known_in_any_case() {
    let found = read(
        "cache-control: MAX-AGE=1, S-MaxAge=2, No-Store, no-cache, PRIVATE, public
         cache-control: must-revalidate, proxy-revalidate, must-understand, no-transform, immutable
         cache-control: stale-while-revalidate=3, stale-if-error=4, x-other=5",
    );
    let expected = ResponseDirectives {
        max_age: Some(1),
        s_maxage: Some(2),
        no_store: true,
        no_cache: Scope::Response,
        private: Scope::Response,
        public: true,
        must_revalidate: true,
        proxy_revalidate: true,
        must_understand: true,
        no_transform: true,
        immutable: true,
        stale_while_revalidate: Some(3),
        stale_if_error: Some(4),
    };
    assert_eq!(found, expected);
    assert!(found.has_lifetime() && !ResponseDirectives::default().has_lifetime());
}

#[test]
fn a_time_is_digits_and_anything_else_is_stale() {
    for (argument, expected) in [
        ("=60", 60),
        ("=\"60\"", 60),
        ("=0060", 60),
        ("=2147483648", SECONDS_MAX),
        ("=99999999999999999999999", SECONDS_MAX),
        ("", 0),
        ("=", 0),
        ("=soon", 0),
        ("=-1", 0),
        ("=+1", 0),
        ("=60.0", 0),
        ("=60s", 0),
        ("='60'", 0),
        ("=6 0", 0),
        ("=60, max-age=5", 5),
        ("=5, max-age=60", 5),
        ("=60, max-age=soon", 0),
    ] {
        assert_eq!(read(&format!("cache-control: max-age{argument}")).max_age, Some(expected), "{argument}");
    }
    assert_eq!(read("cache-control: x=\"max-age=60\"").max_age, None);
}

#[test]
fn private_and_no_cache_may_be_about_fields() {
    let of_fields = |list: &[&'static str]| Scope::Fields(names(list));
    for (value, expected) in [
        ("private=\"Set-Cookie, x-a\"", of_fields(&["set-cookie", "x-a"])),
        ("private=x-a", of_fields(&["x-a"])),
        ("private=\"x-a\", private=\"x-b\"", of_fields(&["x-a", "x-b"])),
        ("private=\"x-a\", private", Scope::Response),
        ("private, private=\"x-a\"", Scope::Response),
        ("private=\"\"", Scope::Response),
        ("private=", Scope::Response),
        ("private=\"x a\"", Scope::Response),
        ("x=\"private\"", Scope::Nothing),
    ] {
        assert_eq!(read(&format!("cache-control: {value}")).private, expected, "{value}");
    }
}

#[test]
fn a_mark_that_never_closes_hides_nothing() {
    let found = read("cache-control: max-age=60, x=\"a, no-store\ncache-control: public");
    assert!(found.no_store && found.public);
    assert_eq!(found.max_age, Some(60));
    let found = read("cache-control: private=\"x-a, no-cache");
    assert_eq!((found.private, found.no_cache), (Scope::Response, Scope::Response));
    assert!(!read("cache-control: x=\"a, no-store\"").no_store);
}
