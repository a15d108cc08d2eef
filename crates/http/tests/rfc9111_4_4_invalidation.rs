//! RFC 9111, section 4.4: a response to an unsafe request invalidates its target, and the URIs of the same origin
//! that it names.
#![cfg(test)]

mod fields;

use eyewall_http::invalidation::{Origin, invalidated, is_safe};
use fields::fields;
use http::{Method, StatusCode, Uri};

const TARGET: &str = "http://example.org/b/c/d;p?q";

fn invalidates(target: &str, response: &[(&str, &str)]) -> Vec<String> {
    let target: Uri = target.parse().unwrap();
    let uris = invalidated(&Method::POST, &target, StatusCode::OK, &fields(response));
    uris.iter().map(ToString::to_string).collect()
}

#[test]
fn only_a_success_of_an_unsafe_method_invalidates() {
    let target: Uri = TARGET.parse().unwrap();
    for (method, status, does) in [
        ("POST", 200, true),
        ("PUT", 204, true),
        ("DELETE", 303, true),
        ("PATCH", 201, true),
        ("FROBNICATE", 200, true),
        ("post", 200, true),
        ("POST", 400, false),
        ("POST", 503, false),
        ("POST", 103, false),
        ("GET", 200, false),
        ("HEAD", 200, false),
        ("OPTIONS", 200, false),
        ("TRACE", 200, false),
        ("QUERY", 200, false),
        ("PROPFIND", 207, false),
    ] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let uris = invalidated(&method, &target, StatusCode::from_u16(status).unwrap(), &fields(&[]));
        assert_eq!(uris == [target.clone()], does, "{method} {status}");
        assert_eq!(uris.is_empty(), !does, "{method} {status}");
    }
    assert!(is_safe(&Method::GET) && !is_safe(&Method::POST));
}

#[test]
fn references_are_resolved_as_in_rfc_3986() {
    // The examples of section 5.4 that stay within the origin, without their fragments.
    for (reference, expected) in [
        ("g", "/b/c/g"),
        ("./g", "/b/c/g"),
        ("g/", "/b/c/g/"),
        ("/g", "/g"),
        ("?y", "/b/c/d;p?y"),
        ("g?y", "/b/c/g?y"),
        ("g#s", "/b/c/g"),
        ("g?y#s", "/b/c/g?y"),
        (";x", "/b/c/;x"),
        ("g;x", "/b/c/g;x"),
        (".", "/b/c/"),
        ("./", "/b/c/"),
        ("..", "/b/"),
        ("../", "/b/"),
        ("../g", "/b/g"),
        ("../..", "/"),
        ("../../g", "/g"),
        ("../../../g", "/g"),
        ("../../../../g", "/g"),
        ("/./g", "/g"),
        ("/../g", "/g"),
        ("g.", "/b/c/g."),
        (".g", "/b/c/.g"),
        ("g..", "/b/c/g.."),
        ("./../g", "/b/g"),
        ("./g/.", "/b/c/g/"),
        ("g/./h", "/b/c/g/h"),
        ("g/../h", "/b/c/h"),
        ("g;x=1/../y", "/b/c/y"),
        ("g?y/../x", "/b/c/g?y/../x"),
        ("g:h/i", ""),
        ("./g:h", "/b/c/g:h"),
        ("/a//b", "/a//b"),
        ("\\\\x", "/b/c/\\\\x"),
        ("/%7Ea/%2e%2e", "/%7Ea/%2e%2e"),
        ("//example.org", "/"),
        ("//example.org?y", "/?y"),
        ("http://example.org/x", "/x"),
        ("HTTP://EXAMPLE.org:80/x", "/x"),
        ("http://example.org:/x", "/x"),
    ] {
        let mut expected_uris = vec![TARGET.to_owned()];
        if !expected.is_empty() {
            expected_uris.push(format!("http://example.org{expected}"));
        }
        assert_eq!(invalidates(TARGET, &[("location", reference)]), expected_uris, "{reference}");
        assert_eq!(invalidates(TARGET, &[("content-location", reference)]), expected_uris, "{reference}");
    }
}

#[test]
fn other_origins_and_invalid_uris_are_left_alone() {
    for reference in [
        "http://example.com/x",
        "//example.com/x",
        "https://example.org/x",
        "http://example.org:8080/x",
        "http://example.org.evil.example/x",
        "http://user@example.com/x",
        "http://example.org:99999/x",
        "http://example.org:80:80/x",
        "http:///x",
        "http:g",
        "mailto:a@example.org",
        "/a b",
        "//",
    ] {
        assert_eq!(invalidates(TARGET, &[("location", reference)]), [TARGET], "{reference}");
    }
}

#[test]
fn each_uri_comes_once_and_is_written_as_the_target_is() {
    let response = [
        ("location", "/x"),
        ("content-location", "http://example.org/x"),
        ("content-location", ""),
        ("location", "/y"),
    ];
    let expected = [TARGET, "http://example.org/x", "http://example.org/y"];
    assert_eq!(invalidates(TARGET, &response), expected);
    let response = [("location", "http://example.org/x")];
    assert_eq!(invalidates("http://EXAMPLE.org:80/", &response), ["http://EXAMPLE.org:80/", "http://EXAMPLE.org:80/x"]);
    assert_eq!(invalidates("http://[::1]:8080", &[("location", "x")]), ["http://[::1]:8080/", "http://[::1]:8080/x"]);
}

#[test]
fn an_origin_is_scheme_host_and_port() {
    for (uri, expected) in [
        ("http://Example.org/x", Some("http://example.org:80")),
        ("HTTPS://example.org", Some("https://example.org:443")),
        ("https://user@example.org:8443/", Some("https://example.org:8443")),
        ("http://[::1]/", Some("http://[::1]:80")),
        ("ftp://example.org/", None),
        ("/x", None),
        ("*", None),
    ] {
        let origin = Origin::of(&uri.parse().unwrap());
        assert_eq!(origin.map(|origin| origin.to_string()).as_deref(), expected, "{uri}");
    }
}
