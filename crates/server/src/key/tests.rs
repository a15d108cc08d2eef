use eyewall_page_cache::query::queries_of;
use http::{Request, StatusCode};
use proptest::prelude::*;

use super::*;
use crate::config::{Config, parse};

/// One site for all hosts with these keys of `[site.key]`, and one for `example.org` with an alias.
fn config(key: &str) -> Config {
    let sites = "[[site]]\nhosts = [\"example.org\"]\naliases = [\"www.example.org\"]\norigins = [\"http://a\"]\n\
                 [[site]]\norigins = [\"http://b\"]\n";
    parse(&format!("{sites}[site.key]\n{key}")).unwrap()
}

/// The rules of the site that has this host.
fn rules(config: &Config, host: &str) -> KeyRules {
    let [named, other] = &config.sites[..] else { panic!("two sites") };
    let is_named = named.name() == Some(host) || named.aliases.iter().any(|alias| alias.get_ref().0 == host);
    KeyRules::of(if is_named { named } else { other })
}

fn request(target: &str, fields: &[(&'static str, &[u8])]) -> Parts {
    let mut request = Request::builder().uri(target);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn key_of(config: &Config, request: &Parts) -> Result<CacheKey, KeyError> {
    let host = RequestHost::of(request)?;
    CacheKey::of(&rules(config, host.name()), &host, Scheme::Http, request)
}

/// The key of a GET with one `Host`.
fn key(config: &Config, host: &str, target: &str) -> Result<String, KeyError> {
    key_of(config, &request(target, &[("host", host.as_bytes())])).map(|key| key.text)
}

fn ok(config: &Config, host: &str, target: &str) -> String {
    key(config, host, target).unwrap()
}

#[test]
fn a_key_is_scheme_host_path_and_query() {
    let config = config("");
    for (host, target, expected) in [
        ("Other.Example", "/a?b=c", "http://other.example/a?b=c"),
        ("other.example:80", "/", "http://other.example/"),
        ("other.example:8080", "/?", "http://other.example:8080/?"),
        ("www.example.org", "/x", "http://example.org/x"),
        ("WWW.Example.Org.:81", "/x", "http://example.org:81/x"),
        ("ignored.example", "http://Example.org/x?y#z", "http://example.org/x?y"),
        ("a.example", "/%7e/../b/%2e", "http://a.example/b/"),
        ("a.example", "/?q=%7e&utm_source=x", "http://a.example/?q=%7e&utm_source=x"),
    ] {
        assert_eq!(ok(&config, host, target), expected, "{host} {target}");
    }
}

#[test]
fn a_request_without_a_key_says_why() {
    let config = config("");
    assert_eq!(key_of(&config, &request("/", &[])), Err(KeyError::NoHost));
    assert_eq!(key_of(&config, &request("/", &[("host", b"a"), ("host", b"a")])), Err(KeyError::NoHost));
    assert_eq!(key_of(&config, &request("/", &[("host", b"a/b")])), Err(KeyError::Host));
    assert_eq!(key(&config, "a", "*"), Err(KeyError::NoPath));
    assert_eq!(key_of(&config, &request("example.org:443", &[])), Err(KeyError::NoPath));
    assert_eq!(key(&config, "a", "/%"), Err(KeyError::Path));
    assert_eq!(key(&config, "a", "https://a/"), Err(KeyError::Scheme));
    assert_eq!(key(&config, "a", &format!("/{}", "x".repeat(65_000))), Err(KeyError::TooLong));
    assert_eq!(KeyError::TooLong.status(), StatusCode::URI_TOO_LONG);
}

#[test]
fn stripped_parameters_reach_neither_key_nor_origin() {
    let config = config("strip_query = [\"ref\"]\nstrip_trackers = true\n");
    for (target, expected) in [
        ("/?utm_source=a&id=1&fbclid=b", "/?id=1"),
        ("/?gclid=a", "/"),
        ("/?ref=a;id=2&id=1", "/?id=1"),
        ("/?utm%5Fsource=a&reference=1", "/?reference=1"),
        ("/?&a&&utm_x", "/?&a&"),
        ("/?", "/?"),
        ("/?UTM_SOURCE=a", "/?UTM_SOURCE=a"),
    ] {
        let key = key_of(&config, &request(target, &[("host", b"h")])).unwrap();
        assert_eq!((key.forwarded_target(), key.authority()), (expected, "h"), "{target}");
        assert_eq!(key.as_bytes(), format!("http://h{expected}").as_bytes());
    }
}

#[test]
fn sorting_keeps_the_order_of_one_name() {
    let config = config("sort_query = true\n");
    assert_eq!(ok(&config, "h", "/?b=1&a[]=2&a[]=1&b=0"), "http://h/?a[]=2&a[]=1&b=1&b=0");
    assert_eq!(ok(&config, "h", "/?z&a=1"), "http://h/?a=1&z");
}

#[test]
fn cookies_and_fields_tell_entries_apart() {
    let config = config("cookies = [\"lang\"]\nheaders = [\"X-Device\"]\n");
    let text = |fields: &[(&'static str, &[u8])]| {
        let all = [&[("host", &b"h"[..])], fields].concat();
        key_of(&config, &request("/", &all)).unwrap().text
    };
    assert_eq!(text(&[("cookie", b"a=b")]), "http://h/");
    assert_eq!(text(&[("cookie", b"a=b; lang=de")]), "http://h/ cookie:lang=de");
    assert_eq!(text(&[("cookie", b"lang=")]), "http://h/ cookie:lang=");
    assert_eq!(text(&[("cookie", b"lang")]), "http://h/ cookie:lang=");
    assert_eq!(text(&[("cookie", b"lang=de;lang=en")]), "http://h/ cookie:lang=de cookie:lang=en");
    assert_eq!(text(&[("cookie", b"x=\xff; lang=\xfe")]), "http://h/ cookie:lang=%FE");
    assert_eq!(text(&[("cookie", b"lang=de header:x-device=tv")]), "http://h/ cookie:lang=de%20header%3Ax-device%3Dtv");
    assert_eq!(text(&[("x-device", b"tv"), ("x-device", b"")]), "http://h/ header:x-device=tv header:x-device=");
}

#[test]
fn the_prefix_of_a_host_is_of_no_other() {
    let config = config("");
    let prefix = |host: &str| {
        let key = key_of(&config, &request("/a?b", &[("host", host.as_bytes())])).unwrap();
        key.host_prefix().to_owned()
    };
    assert_eq!(prefix("a.b"), "http://a.b/");
    for other in ["a.b.c", "a.bc", "a.b:8080", "xa.b"] {
        assert!(!ok(&config, other, "/a.b/").starts_with(&prefix("a.b")), "{other}");
    }
}

/// Targets of few letters, so many are nearly the same.
fn targets() -> impl Strategy<Value = String> {
    let path = prop::collection::vec(
        prop::sample::select(vec!["/", ".", "..", "a", "%2e", "%2E", "%2f", "%41", "%25", "%7e", "~", "%c3", "utm_x"]),
        0..8,
    );
    let query =
        prop::collection::vec(prop::sample::select(vec!["a=1", "a=2", "b", "utm_x=1", "utm%5fx", "", "ref=%26"]), 0..5);
    (path, prop::option::of(query)).prop_map(|(path, query)| {
        let query = query.map(|query| format!("?{}", query.join("&"))).unwrap_or_default();
        format!("/{}{query}", path.concat())
    })
}

fn hosts() -> impl Strategy<Value = String> {
    let hosts =
        ["example.org", "www.example.org", "Example.org.", "example.org:80", "example.org:81", "example.or", "org"];
    prop::sample::select(hosts.to_vec()).prop_map(str::to_owned)
}

fn key_rules() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "strip_query = [\"ref\"]\nstrip_trackers = true\nsort_query = true\n",
        "sort_query = true\n",
    ])
}

proptest! {
    #[test]
    fn a_normal_form_is_its_own(rules in key_rules(), host in hosts(), target in targets()) {
        let config = config(rules);
        let first = key_of(&config, &request(&target, &[("host", host.as_bytes())])).unwrap();
        let again = request(first.forwarded_target(), &[("host", first.authority().as_bytes())]);
        prop_assert_eq!(key_of(&config, &again).unwrap(), first);
    }

    #[test]
    fn requests_with_one_key_are_one_request_to_the_origin(
        rules in key_rules(), hosts in (hosts(), hosts()), targets in (targets(), targets()),
    ) {
        let config = config(rules);
        let one = key_of(&config, &request(&targets.0, &[("host", hosts.0.as_bytes())])).unwrap();
        let other = key_of(&config, &request(&targets.1, &[("host", hosts.1.as_bytes())])).unwrap();
        let asked = |key: &CacheKey| (key.authority().to_owned(), key.forwarded_target().to_owned());
        prop_assert_eq!(one.as_bytes() == other.as_bytes(), asked(&one) == asked(&other));
    }

    #[test]
    fn a_prefix_of_a_host_means_that_host(hosts in (hosts(), hosts()), targets in (targets(), targets())) {
        let config = config("");
        let one = key_of(&config, &request(&targets.0, &[("host", hosts.0.as_bytes())])).unwrap();
        let other = key_of(&config, &request(&targets.1, &[("host", hosts.1.as_bytes())])).unwrap();
        prop_assert_eq!(other.as_bytes().starts_with(one.host_prefix().as_bytes()), one.authority() == other.authority());
    }

    #[test]
    fn values_of_further_parts_are_told_apart(values in (prop::collection::vec(32..=255_u8, 0..4), prop::collection::vec(32..=255_u8, 0..4))) {
        let config = config("cookies = [\"a\"]\nheaders = [\"x\"]\n");
        let of = |value: &[u8]| {
            // A field can't have the byte 127.
            let value: Vec<u8> = value.iter().copied().filter(|byte| *byte != 127).collect();
            (value.clone(), key_of(&config, &request("/", &[("host", b"h"), ("x", &value)])).unwrap())
        };
        let (one, other) = (of(&values.0), of(&values.1));
        prop_assert_eq!(one.1 == other.1, one.0 == other.0);
    }

    #[test]
    fn no_target_panics(host in "\\PC{0,20}", target in "/\\PC{0,40}") {
        let config = config("strip_trackers = true\nsort_query = true\n");
        if let (Ok(host), Ok(request)) = (RequestHost::parse(&host), Request::builder().uri(target).body(())) {
            let _ = CacheKey::of(&rules(&config, host.name()), &host, Scheme::Https, &request.into_parts().0);
        }
    }
}

#[test]
fn the_key_of_a_question_is_below_that_of_its_address() {
    let config = config("cookies = [\"c\"]");
    let asked = |target: &str| {
        let fields: [(&'static str, &[u8]); 2] = [("host", b"a"), ("cookie", b"c=1")];
        key_of(&config, &request(target, &fields)).unwrap()
    };
    let key = asked("/p?q");
    let question = key.of_query(0xab, "01ef").unwrap();
    assert_eq!(question.text, "http://a/p?q query 00000000000000ab 01ef cookie:c=1");
    assert_eq!((question.address(), question.path(), question.query()), (key.address(), key.path(), key.query()));
    assert_eq!(queries_of(key.address().as_bytes()), b"http://a/p?q query");
    let long = asked(&format!("/{}", "x".repeat(KEY_BYTES_MAX - 30)));
    assert_eq!(long.of_query(0, &"0".repeat(64)), Err(KeyError::TooLong));
}
