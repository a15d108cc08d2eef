//! Origins, and caches before them, write `Age` and dates in odd ways.

use crate::common::origin::{Origin, respond};
use crate::common::server::Server;

#[test]
fn a_malformed_or_repeated_age_makes_nothing_stale() {
    for age in ["abc", "-5", "1.5", "", "0, 0", "0\r\nAge: 0", "5, 9999", "5\r\nAge: 9999", "x, 9999"] {
        let origin = Origin::answering(move |_| (200, format!("Cache-Control: max-age=600\r\nAge: {age}"), Vec::new()));
        let server = Server::over_origin(&origin.url());
        server.get("/");
        let second = server.get("/");
        assert!(second.is_hit(), "{age:?}: {}", second.cache());
    }
    let origin = Origin::counting("Cache-Control: max-age=600\r\nAge: 700, 0");
    let server = Server::over_origin(&origin.url());
    server.get("/");
    assert!(!server.get("/").is_hit(), "the first member counts");
}

#[test]
fn a_date_counts_in_any_case_and_on_any_day_of_the_week() {
    for expires in ["thu, 18 AUG 2050 02:01:18 gmt", "Sun Aug 18 02:01:18 2050", "Monday, 18-aug-50 02:01:18 GMT"] {
        let origin = Origin::answering(move |_| (200, format!("Expires: {expires}"), b"page".to_vec()));
        let server = Server::over_origin(&origin.url());
        server.get("/");
        assert!(server.get("/").is_hit(), "{expires}");
    }
}

#[test]
fn a_204_and_a_304_have_no_length_even_if_the_origin_sends_one() {
    let origin = Origin::raw(|asked, stream| match asked.target.as_str() {
        "/bypass" => respond(stream, 304, "ETag: \"a\"", 500, b""),
        _ => respond(stream, 204, "Cache-Control: max-age=60", 0, b""),
    });
    let rule = "[[site.rule]]\npath = [\"/bypass\"]\nbypass = true\n";
    let server = Server::over_site(&origin.url(), rule);
    for (method, status, is_hit) in [("GET", 204, false), ("GET", 204, true), ("HEAD", 204, true), ("POST", 204, false)]
    {
        let reply = server.ask(method, "/", &[]);
        assert_eq!((reply.status, reply.field("content-length"), reply.is_hit()), (status, "", is_hit), "{method}");
    }
    for method in ["GET", "HEAD"] {
        let reply = server.ask(method, "/bypass", &["If-None-Match: \"a\""]);
        assert_eq!((reply.status, reply.field("content-length")), (304, ""), "{method}");
    }
}
