//! RFC 9110, section 7.6: fields of one connection aren't forwarded, and messages record their route.
#![cfg(test)]

mod fields;

use eyewall_http::field::connection::{Way, append_via, drop_hop_by_hop, step};
use fields::fields;
use http::{Method, Version};

#[test]
fn fields_of_the_connection_and_those_that_it_names_are_dropped() {
    let mut message = fields(&[
        ("connection", "close, X-Mine"),
        ("connection", ", another ,b\u{e4}d,"),
        ("x-mine", "1"),
        ("another", "1"),
        ("another", "2"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("proxy-authenticate", "Basic"),
        ("proxy-authorization", "Basic x"),
        ("proxy-authentication-info", "x"),
        ("te", "trailers"),
        ("trailer", "x"),
        ("upgrade", "h2c"),
        ("etag", "\"a\""),
        ("x-other", "stays"),
    ]);
    drop_hop_by_hop(&mut message);
    assert_eq!(message, fields(&[("etag", "\"a\""), ("x-other", "stays")]));
}

#[test]
fn the_connection_field_takes_nothing_away_that_is_for_all() {
    let kept = [
        ("host", "example.org"),
        ("content-length", "5"),
        ("content-type", "text/html"),
        ("cache-control", "private"),
        ("set-cookie", "a=b"),
        ("cookie", "a=b"),
        ("authorization", "Basic x"),
        ("vary", "cookie"),
        ("content-encoding", "gzip"),
        ("x-forwarded-for", "192.0.2.1"),
    ];
    for (name, value) in kept {
        let mut message = fields(&[("connection", &format!("close, {}", name.to_uppercase())), (name, value)]);
        drop_hop_by_hop(&mut message);
        assert_eq!(message, fields(&[(name, value)]));
    }
}

#[test]
fn a_length_beside_a_transfer_coding_is_not_believed() {
    let mut message = fields(&[("transfer-encoding", "chunked"), ("content-length", "7"), ("content-length", "8")]);
    drop_hop_by_hop(&mut message);
    assert!(message.is_empty());
}

#[test]
fn via_grows_by_one_line_for_each_way_station() {
    let mut message = fields(&[("via", "1.0 fred")]);
    for version in [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2, Version::HTTP_3] {
        append_via(&mut message, version, "eyewall");
    }
    let lines = ["1.0 fred", "1.0 eyewall", "1.1 eyewall", "2.0 eyewall", "3.0 eyewall"].map(|line| ("via", line));
    assert_eq!(message, fields(&lines));
}

#[test]
fn max_forwards_counts_down_for_the_methods_that_have_it() {
    for (method, value, way, left) in [
        (Method::TRACE, "2", Way::On, "1"),
        (Method::OPTIONS, "1", Way::On, "0"),
        (Method::OPTIONS, "0", Way::EndsHere, "0"),
        (Method::TRACE, "000", Way::EndsHere, "000"),
        (Method::TRACE, "99999999999999999999999", Way::On, "18446744073709551614"),
        (Method::TRACE, "-1", Way::On, "-1"),
        (Method::TRACE, "", Way::On, ""),
        (Method::TRACE, "1, 2", Way::On, "1, 2"),
        (Method::GET, "0", Way::On, "0"),
    ] {
        let mut request = fields(&[("max-forwards", value)]);
        assert_eq!(step(&method, &mut request), way, "{method} {value}");
        assert_eq!(request, fields(&[("max-forwards", left)]), "{method} {value}");
    }
    let twice = fields(&[("max-forwards", "0"), ("max-forwards", "0")]);
    assert_eq!(step(&Method::TRACE, &mut twice.clone()), Way::On);
    assert_eq!(step(&Method::TRACE, &mut fields(&[])), Way::On);
}
