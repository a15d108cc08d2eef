//! A site's rules complete or override its origin.

use crate::common::client::Reply;
use crate::common::origin::Origin;
use crate::common::server::Server;

#[test]
fn a_blog_without_caching_fields_is_cached_except_for_visitors_with_a_session() {
    let origin = Origin::answering(|asked| {
        (200, "Content-Type: text/html; charset=utf-8".to_owned(), asked.field("cookie").as_bytes().to_vec())
    });
    let server = Server::over_site(&origin.url(), "preset = \"blog\"\n");
    let cache = |cookie| server.ask("GET", "/", &[cookie]).cache().to_owned();
    assert!(cache("Cookie: theme=dark").contains("stored"));
    assert!(cache("Cookie: theme=dark").contains("hit"));
    let mine = server.ask("GET", "/", &["Cookie: PHPSESSID=1"]);
    assert_eq!(mine.text(), "PHPSESSID=1");
    assert!(mine.cache().contains("fwd=bypass") && mine.cache().contains("detail=blog-session"), "{}", mine.cache());
    assert!(cache("Cookie: theme=dark").contains("hit"), "it is still there, and the other's isn't stored");
}

#[test]
fn rules_set_times_and_fields() {
    let origin = Origin::answering(|asked| {
        let status = if asked.target == "/gone" { 410 } else { 200 };
        let fields = match asked.target.as_str() {
            "/forced" => "Cache-Control: max-age=0\r\nX-Powered-By: x\r\nX-Debug: y",
            "/private" => "Cache-Control: private, max-age=9",
            "/cookie" => "Set-Cookie: a=b\r\nCache-Control: max-age=900",
            _ => "X-Powered-By: x",
        };
        (status, fields.to_owned(), vec![b'x'; if asked.target == "/large" { 2000 } else { 1 }])
    });
    let server = Server::over_site(
        &origin.url(),
        "[site.cache]\ndefault_ttl = \"600s\"\nnegative_ttl = { 410 = \"300s\" }\nstrip_response = [\"X-Powered-By\"]\n\
         object_bytes_max = 1000\nignore_reload = true\n\
         [[site.rule]]\npath = [\"/forced\", \"/private\"]\nforce_ttl = \"500s\"\nstrip_response = [\"X-Debug\"]\n\
         [[site.rule]]\npath = [\"/kept-out\"]\nno_store = true\n\
         [[site.rule]]\nstatus = [200]\npath = [\"/cookie\"]\nstore_set_cookie = true\n",
    );
    let twice = |target: &str| -> (Reply, Reply) {
        (server.get(target), server.ask("GET", target, &["Cache-Control: no-cache"]))
    };
    for (target, ttl) in [("/page", 600), ("/gone", 300), ("/forced", 500), ("/cookie", 900)] {
        let (first, second) = twice(target);
        let told: u64 = first.cache().rsplit_once("ttl=").unwrap().1.parse().unwrap();
        // Its age has grown by now.
        assert!((ttl - 99..=ttl).contains(&told), "{target}: {}", first.cache());
        assert!(second.is_hit(), "{target}: {}", second.cache());
        for reply in [first, second] {
            assert_eq!((reply.field("x-powered-by"), reply.field("x-debug")), ("", ""), "{target}");
        }
    }
    for (target, why) in [("/private", "private"), ("/kept-out", "rule"), ("/large", "too-large")] {
        let (first, second) = twice(target);
        assert!(first.cache().contains(why) && !second.is_hit(), "{target}: {}", first.cache());
    }
}

#[test]
fn stripped_fields_do_not_come_back_by_a_304_or_a_part() {
    const FIELDS: &str = "Cache-Control: max-age=60\r\nETag: \"a\"\r\nX-Internal: secret";
    let origin = Origin::answering(|asked| match (asked.field("if-none-match"), asked.field("range")) {
        ("", "") => (200, format!("{FIELDS}\r\nContent-Type: text/html"), b"page".to_vec()),
        ("", _) => {
            let fields = format!("{FIELDS}\r\nContent-Type: text/html\r\nContent-Range: bytes 0-3/4");
            (206, fields, b"page".to_vec())
        }
        _ => (304, FIELDS.to_owned(), Vec::new()),
    });
    let strip = "[[site.rule]]\nstatus = [200]\ncontent_type = [\"text/html\"]\nstrip_response = [\"X-Internal\"]\n";
    let server = Server::over_site(&origin.url(), strip);
    server.get("/");
    let renewed = server.ask("GET", "/", &["Cache-Control: no-cache"]);
    assert_eq!((renewed.text(), origin.asked().len()), ("page", 2));
    let part = server.ask("GET", "/part", &["Range: bytes=1-2"]);
    assert_eq!((part.status, part.text()), (206, "ag"));
    for reply in [renewed, part, server.get("/"), server.get("/part")] {
        assert_eq!(reply.field("x-internal"), "", "{}", reply.cache());
    }
    assert!(server.get("/").is_hit() && server.get("/part").is_hit());
}
