//! Rules redirect, and change fields of responses and of requests to the origin, on the fast path and on the full path alike.

use crate::common::client::Reply;
use crate::common::origin::Origin;
use crate::common::server::{Server, Site};

/// A field that forces the full path, and has no other effect.
const FULL_PATH: &str = "TE: trailers";

#[test]
fn a_redirect_names_its_host_itself() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::over_site(
        &origin.url(),
        "[[site.rule]]\nprefix = [\"/old\"]\nredirect = \"https://new.example/shop/{rest}{query}\"\nredirect_status = 301\n\
         [[site.rule]]\npath = [\"/here*\"]\nredirect = \"{path}/\"\nredirect_status = 308\n\
         [[site.rule]]\npath = [\"/kept\"]\nredirect = \"/fixed\"\n\
         [[site.rule]]\nheader = { X-Moved = \"*\" }\nredirect = \"https://new.example{uri}\"\nset_headers = { X-By = \"rule\" }\n",
    );
    for (target, status, location) in [
        ("/old/a%20b?c=d", 301, "https://new.example/shop/a%20b?c=d"),
        ("/old", 301, "https://new.example/shop/"),
        ("/old//evil.example", 301, "https://new.example/shop/evil.example"),
        ("/old/%0d%0aSet-Cookie:a=b", 301, "https://new.example/shop/%0D%0ASet-Cookie:a=b"),
        ("/old/a%2fb%3Fc/100%25", 301, "https://new.example/shop/a%2Fb%3Fc/100%25"),
        ("/%6Fld/a//b", 301, "https://new.example/shop/a//b"),
        ("/here", 308, "/here/"),
        ("//here.example", 308, "/here.example/"),
        ("/kept", 302, "/fixed"),
    ] {
        for method in ["GET", "HEAD", "POST"] {
            let reply = server.ask(method, target, &[]);
            assert_eq!(
                (reply.status, reply.field("location"), reply.field("set-cookie")),
                (status, location, ""),
                "{target}"
            );
        }
    }
    assert!(origin.asked().is_empty());
    assert_eq!((server.get("/page").status, server.get("/page").is_hit()), (200, true));
    for target in ["/page", "/page?x=%0d%0ay"] {
        let moved = server.ask("GET", target, &["X-Moved: 1"]);
        let expected = format!("https://new.example{target}");
        assert_eq!((moved.status, moved.field("location"), moved.field("x-by")), (302, expected.as_str(), "rule"));
    }
}

#[test]
fn fields_of_responses_change_on_every_path() {
    let origin = Origin::answering(|asked| match asked.target.as_str() {
        "/absent" => (404, "Content-Type: text/html".to_owned(), b"no".to_vec()),
        "/private" => {
            (200, "Cache-Control: no-store\r\nContent-Type: text/html\r\nServer: o".to_owned(), b"own".to_vec())
        }
        _ => {
            let fields = "Cache-Control: max-age=60\r\nContent-Type: text/html; charset=utf-8\r\nServer: o\r\nX-Frame-Options: \
                          SAMEORIGIN\r\nLink: </a>; rel=a\r\nX-Twice: 1\r\nX-Twice: 2\r\nVary: Accept-Language";
            (200, fields.to_owned(), b"page".to_vec())
        }
    });
    let server = Server::over_site(
        &origin.url(),
        "[[site.rule]]\nset_headers = { X-Frame-Options = \"DENY\", X-Twice = \"3\" }\nadd_headers = { Link = \"</b>; rel=b\" }\n\
         remove_headers = [\"Server\", \"Via\", \"Cache-Status\"]\n\
         [[site.rule]]\ncontent_type = [\"text/html\"]\nstatus = [200]\nset_headers = { X-Html = \"1\" }\n\
         [[site.rule]]\nstatus = [404]\nset_headers = { X-Absent = \"1\" }\n\
         [[site.rule]]\npath = [\"/other\"]\nset_headers = { X-Other = \"1\" }\n",
    );
    let values = |reply: &Reply, name: &str| -> Vec<String> {
        reply
            .fields
            .iter()
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.clone())
            .collect()
    };
    server.get("/page");
    for fields in [&[][..], &[FULL_PATH]] {
        let reply = server.ask("GET", "/page", fields);
        assert_eq!((reply.status, reply.text(), reply.field("content-length")), (200, "page", "4"));
        assert_eq!(values(&reply, "x-frame-options"), ["DENY"]);
        assert_eq!(values(&reply, "x-twice"), ["3"]);
        assert_eq!(values(&reply, "link"), ["</a>; rel=a", "</b>; rel=b"]);
        assert_eq!((reply.field("x-html"), reply.field("x-absent"), reply.field("x-other")), ("1", "", ""));
        for gone in ["server", "via", "cache-status"] {
            assert_eq!(reply.field(gone), "", "{gone}");
        }
    }
    assert_eq!(origin.asked().len(), 1, "both were hits");
    for (target, x_html, x_absent) in [("/private", "1", ""), ("/absent", "", "1")] {
        let reply = server.get(target);
        assert_eq!((reply.field("x-frame-options"), reply.field("server")), ("DENY", ""), "{target}");
        assert_eq!((reply.field("x-html"), reply.field("x-absent")), (x_html, x_absent), "{target}");
    }
}

#[test]
fn files_and_errors_of_eyewall_get_them_too() {
    let folder = Site::new();
    folder.write("a.html", "page");
    let root = folder.path().display();
    let server = Server::configured(&format!(
        "[[site]]\nroot = \"{root}\"\n[[site.rule]]\nset_headers = {{ Strict-Transport-Security = \"max-age=60\" }}\n\
         [[site.rule]]\npath = [\"/b\"]\nredirect = \"/a.html\"\n"
    ));
    for (target, status) in [("/a.html", 200), ("/none", 404), ("/b", 302)] {
        let reply = server.get(target);
        assert_eq!((reply.status, reply.field("strict-transport-security")), (status, "max-age=60"), "{target}");
    }
}

#[test]
fn fields_of_requests_change_before_the_variant_is_chosen() {
    let origin = Origin::answering(|asked| {
        let told =
            format!("{}|{}|{}", asked.field("x-device"), asked.field("accept-language"), asked.field("authorization"));
        (200, "Cache-Control: max-age=60\r\nVary: X-Device, Accept-Language".to_owned(), told.into_bytes())
    });
    let server = Server::over_site(
        &origin.url(),
        "[[site.rule]]\nset_request_headers = { X-Device = \"desktop\" }\nremove_request_headers = [\"Accept-Language\"]\n\
         [[site.rule]]\nheader = { User-Agent = \"*Mobile*\" }\nset_request_headers = { X-Device = \"phone\" }\n\
         [[site.rule]]\nprefix = [\"/api/\"]\nset_request_headers = { Authorization = \"Basic YTpi\" }\n",
    );
    let ask = |fields: &[&str]| {
        let reply = server.ask("GET", "/", fields);
        (reply.text().to_owned(), reply.is_hit())
    };
    assert_eq!(ask(&["X-Device: evil", "Accept-Language: de"]), ("desktop||".to_owned(), false));
    assert_eq!(ask(&["Accept-Language: en"]), ("desktop||".to_owned(), true));
    assert_eq!(ask(&["User-Agent: A Mobile B", "X-Device: desktop"]), ("phone||".to_owned(), false));
    assert_eq!(ask(&["User-Agent: A Mobile C"]), ("phone||".to_owned(), true));
    assert_eq!(ask(&["X-Device: phone", FULL_PATH]), ("desktop||".to_owned(), true));
    let api = server.ask("POST", "/api/x", &["Authorization: Basic ZXZpbA=="]);
    assert_eq!(api.text(), "desktop||Basic YTpi");
}

/// Pages with validators. The origin answers its own condition with 304, and so it does the client's.
fn validated(asked: &crate::common::origin::Asked) -> (u16, String, Vec<u8>) {
    let (media, age) = match asked.target.as_str() {
        "/image" => ("image/png", 60),
        "/stale" => ("text/html", 0),
        _ => ("text/html; charset=utf-8", 60),
    };
    let fields = format!("Cache-Control: max-age={age}\r\nETag: \"1\"\r\nLink: </a>; rel=a");
    if asked.field("if-none-match") == "\"1\"" {
        return (304, fields, Vec::new());
    }
    (200, format!("{fields}\r\nContent-Type: {media}"), b"page".to_vec())
}

#[test]
fn a_304_is_changed_as_the_response_that_it_stands_for() {
    let origin = Origin::answering(validated);
    let server = Server::over_site(
        &origin.url(),
        "[[site.rule]]\ncontent_type = [\"text/html\"]\nstatus = [200]\nset_headers = { Cache-Control = \"max-age=5\" }\n\
         [[site.rule]]\nadd_headers = { Link = \"</b>; rel=b\" }\n\
         [[site.rule]]\nstatus = [304, \"4xx\"]\nset_headers = { X-Wrong = \"1\" }\n\
         [[site.rule]]\nprefix = [\"/passed\"]\nbypass = true\n",
    );
    // Unvalidated, then as a hit, then by a 304 of the origin that renews the stored page.
    for (target, expected) in [("/page", "max-age=5"), ("/image", "max-age=60"), ("/stale", "max-age=5")] {
        assert_eq!(server.get(target).field("cache-control"), expected, "{target}");
        for method in ["GET", "HEAD"] {
            let reply = server.ask(method, target, &["If-None-Match: \"1\""]);
            assert_eq!((reply.status, reply.field("cache-control")), (304, expected), "{method} {target}");
            assert_eq!((reply.field("etag"), reply.field("x-wrong")), ("\"1\"", ""), "{method} {target}");
            let links = reply.fields.iter().filter(|(name, _)| name == "link").count();
            assert_ne!(links, 1, "a client that takes this line loses the other one: {method} {target}");
        }
    }
    assert_eq!(server.get("/passed").field("cache-control"), "max-age=5");
    // Its type is unknown: the client keeps the field that it has.
    let reply = server.ask("GET", "/passed", &["If-None-Match: \"1\""]);
    assert_eq!((reply.status, reply.field("cache-control"), reply.field("etag")), (304, "", "\"1\""));
}

#[test]
fn a_304_for_a_file_lets_the_client_keep_its_fields() {
    let folder = Site::new();
    folder.write("a.html", "page");
    let server = Server::configured(&format!(
        "[[site]]\nroot = \"{}\"\n[[site.rule]]\ncontent_type = [\"text/html\"]\nset_headers = {{ Cache-Control = \"max-age=5\" }}\n\
         [[site.rule]]\nset_headers = {{ X-All = \"1\" }}\n",
        folder.path().display()
    ));
    let first = server.get_until("/a.html", |reply| !reply.field("etag").is_empty());
    assert_eq!(first.field("cache-control"), "max-age=5");
    let reply = server.ask("GET", "/a.html", &[&format!("If-None-Match: {}", first.field("etag"))]);
    assert_eq!((reply.status, reply.field("cache-control"), reply.field("x-all")), (304, "", "1"));
}
