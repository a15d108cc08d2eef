//! An explanation says what becomes of a request, and why: by the command line, of a server and of its volume.

mod foretold;
mod refused;

use crate::common::admin::{Socket, json as json_of};
use crate::common::command::{eyewall, run};
use crate::common::origin::{Asked, Origin, nobody};
use crate::common::server::{Server, Site};

/// Sites with rules of all kinds, over one origin.
fn configuration(socket: &Socket, origin: &str, root: &Site) -> String {
    let (root, dead) = (root.path().display(), nobody());
    format!(
        r#"[server]
trusted_proxies = ["127.0.0.2", "10.0.0.0/8"]
{table}
[[site]]
hosts = ["shop.example"]
aliases = ["www.shop.example"]
origins = ["{origin}"]
key = {{ cookies = ["currency"], headers = ["X-Device"], strip_query = ["utm_*"], sort_query = true, ignore_cookies = ["_ga*"] }}
cache = {{ default_ttl = "2h", negative_ttl = {{ 404 = "2h" }}, stale_while_revalidate = "5s" }}

[[site.rule]]
name = "admin"
prefix = ["/admin/"]
bypass = true

[[site.rule]]
name = "session"
cookie = ["session"]
unless_path = ["/static/*"]
bypass = true

[[site.rule]]
name = "static"
path = ["/static/*"]
ignore_cookies = ["theme", "session"]
ignore_reload = true
force_ttl = "1h"

[[site.rule]]
name = "moved"
prefix = ["/old/"]
unless_query = ["keep"]
redirect = "/new/{{rest}}"

[[site.rule]]
name = "unkept"
extension = ["tmp"]
method = ["GET"]
no_store = true

[[site.rule]]
name = "pages"
content_type = ["text/html"]
set_headers = {{ "X-Frame-Options" = "DENY" }}
tags = ["page"]

[[site]]
hosts = ["*.blog.example"]
origins = ["{origin}"]
preset = "blog"

[[site]]
hosts = ["files.example"]
root = "{root}"
origins = ["{origin}"]

[[site]]
hosts = ["only-files.example"]
root = "{root}"

[[site]]
hosts = ["secure.example"]
origins = ["{origin}"]
redirect_to_https = true
compress = ["gzip"]

[[site]]
hosts = ["closed.example"]
origins = ["{origin}"]
limits = {{ deny = ["192.0.2.0/24"] }}

[[site]]
hosts = ["dead.example"]
origins = ["http://{dead}"]
cache = {{ negative_ttl = {{ 5xx = "2h" }} }}
"#,
        table = socket.table().replace("[server.admin]\n", "admin = { ").trim_end().to_owned() + " }",
    )
}

/// No lifetime ends while the test runs, and no age crosses what a client demands: what is stale is so from its arrival.
fn answer(asked: &Asked) -> (u16, String, Vec<u8>) {
    let name = asked.target.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let html = "Content-Type: text/html\r\n";
    let (status, fields) = match name.split('.').next().unwrap_or_default() {
        "fresh" => (200, "Cache-Control: max-age=6000\r\nETag: \"a\""),
        "shared" => (200, "Cache-Control: max-age=0, s-maxage=6000"),
        "stale" => (200, "Cache-Control: max-age=60\r\nAge: 70\r\nETag: \"a\""),
        "windowed" => (200, "Cache-Control: max-age=60, stale-while-revalidate=60000\r\nAge: 70\r\nETag: \"a\""),
        "aged" => (200, "Cache-Control: max-age=9000\r\nAge: 4000\r\nETag: \"a\""),
        "must" => (200, "Cache-Control: max-age=60, must-revalidate\r\nAge: 70\r\nETag: \"a\""),
        "validated" => (200, "Cache-Control: no-cache\r\nETag: \"a\""),
        "kept" => (200, "Cache-Control: immutable, max-age=6000"),
        "unstorable" => (200, "Cache-Control: no-store"),
        "private" => (200, "Cache-Control: private, max-age=6000"),
        "cookie" => (200, "Cache-Control: max-age=6000\r\nSet-Cookie: a=b"),
        "language" => (200, "Cache-Control: max-age=6000\r\nVary: Accept-Language"),
        "anything" => (200, "Cache-Control: max-age=6000\r\nVary: *"),
        "absent" => (404, "X: y"),
        "broken" => (500, "X: y"),
        "elsewhere" => (302, "Location: /fresh\r\nCache-Control: max-age=6000"),
        _ => (200, "X: y"),
    };
    let body = if name.starts_with("absent") { Vec::new() } else { b"something".to_vec() };
    (status, format!("{html}{fields}"), body)
}

#[test]
fn the_command_says_the_same_of_a_server_and_of_its_volume() {
    let (socket, root, volume) = (Socket::new(), Site::new(), Site::new());
    let origin = Origin::answering(answer);
    let path = volume.path().join("volume.eye");
    let cache = format!("[cache]\nsize = \"8M\"\npath = \"{}\"\n", path.display());
    let text = format!("{cache}{}", configuration(&socket, &origin.url(), &root));
    let server = Server::configured(&text);
    volume.write("site.toml", &text);
    assert_eq!(server.ask("GET", "http://shop.example/fresh", &[]).status, 200);
    let counted = || {
        let volume = &json_of(&socket.ask("GET", "/status", &[], ""))["volume"];
        (volume["hits"].clone(), volume["misses"].clone())
    };
    let before = counted();
    let explained = |by: &[&std::ffi::OsStr], words: &[&str]| {
        let ended = run(eyewall().arg("explain").args(words).args(by), b"");
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.text().to_owned()
    };
    let (place, file) = (socket.path(), volume.path().join("site.toml"));
    let of_server = ["--server".as_ref(), place.as_os_str()];
    let of_volume = ["--config".as_ref(), file.as_os_str()];
    for words in [
        &["http://shop.example/fresh?utm_source=x"][..],
        &["http://shop.example/fresh", "-H", "Cache-Control: no-cache"],
        &["http://shop.example/fresh", "-X", "POST"],
        &["http://shop.example/admin/"],
        &["http://nowhere.example/"],
    ] {
        let (one, other) = (explained(&of_server, words), explained(&of_volume, words));
        // Seconds may pass between them.
        let stable = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !line.contains(" s ") && !line.contains("ttl=")).map(str::to_owned).collect()
        };
        assert_eq!(stable(&one), stable(&other), "{words:?}");
    }
    assert_eq!(counted(), before, "explanations are no requests");
    let text = explained(&of_server, &["http://shop.example/fresh?utm_source=x"]);
    for line in [
        "verdict    hit: the stored response is sent",
        "site       shop.example (site 1 of the configuration)",
        "key        http://shop.example/fresh",
        "without the parameter utm_source=x (strip_query = \"utm_*\")",
        "the cookie currency would be part of it, and isn't sent (cookies)",
        "rules      admin: doesn't apply (prefix)",
        "pages: applies",
        "stored     status 200, 9 B",
        "lifetime: 6000 s: max-age of the origin (RFC 9111, section 4.2.1)",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}

#[test]
fn variants_the_past_and_the_client_are_told_without_values_of_others() {
    let (socket, root) = (Socket::new(), Site::new());
    let origin = Origin::answering(answer);
    let server = Server::configured(&configuration(&socket, &origin.url(), &root));
    for language in ["de-secret", "fr-secret"] {
        let fields = [format!("Accept-Language: {language}"), "Cookie: currency=secret".to_owned()];
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        assert_eq!(server.ask("GET", "http://shop.example/language", &fields).status, 200);
    }
    let explained = |words: &[&str]| {
        let ended = run(eyewall().arg("explain").args(words).arg("--server").arg(socket.path()), b"");
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.text().to_owned()
    };
    let has = |text: &str, lines: &[&str]| {
        for line in lines {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    };
    let cookie = ["-H", "Cookie: currency=secret"];
    let of = |language: &str| {
        explained(
            &[&["http://shop.example/language", "-H", &format!("Accept-Language: {language}")], &cookie[..]].concat(),
        )
    };
    let text = of("de-secret");
    has(
        &text,
        &[
            "verdict    hit",
            "with the cookie currency (cookies)",
            "variants   2 are stored, and the request selects one of them",
            "by accept-language: status 200, 9 B, fresh for",
            "past ",
            " s ago: miss (uri-miss), after ",
            " s ago: miss (vary-miss), after ",
        ],
    );
    assert!(!text.contains("fr-secret"), "{text}");
    has(&of("it"), &["the request selects none of them", "responses of this address vary by accept-language"]);
    assert_eq!(socket.purge(r#"{"tag": "page", "host": "shop.example", "soft": true}"#).status, 200);
    has(&of("de-secret"), &["a soft purge covered it at 20", ": tag page of shop.example"]);

    let text = explained(&["http://shop.example/old/a", "-H", "X-Forwarded-Proto: https"]);
    has(&text, &["redirect   to /new/a by the rule moved", "http://shop.example/old/a"]);
    assert!(!text.contains("client "), "{text}");
    let words =
        ["http://secure.example/", "-H", "X-Forwarded-Proto: https", "-H", "X-Forwarded-For: 192.0.2.7, 10.0.0.1"];
    has(&explained(&words), &["verdict    redirect by the server: 301", "redirect   to https://secure.example/\n"]);
    has(
        &explained(&[&words[..], &["--from", "127.0.0.2"]].concat()),
        &[
            "verdict    miss",
            "client     192.0.2.7 by https",
            "as trusted proxies say: 127.0.0.2, 10.0.0.1",
            "key        https://secure.example/",
        ],
    );
    let denied = ["http://closed.example/", "-H", "X-Forwarded-For: 192.0.2.7", "--from", "127.0.0.2"];
    has(&explained(&denied), &["answer of the server itself: 403", "limits refuse it"]);
    let unnamed = ["http://closed.example/", "-H", "X-Forwarded-For: unknown", "--from", "127.0.0.2"];
    has(&explained(&unnamed), &["verdict    miss", "they don't name the client"]);
}

#[test]
fn what_is_no_request_is_refused_with_advice() {
    let (socket, root) = (Socket::new(), Site::new());
    let _server = Server::configured(&configuration(&socket, "http://127.0.0.1:9", &root));
    for (body, words) in [
        ("", "the body is no question"),
        (r#"{"url": "/page"}"#, "has no scheme"),
        (r#"{"url": "ftp://a/page"}"#, "has no scheme"),
        (r#"{"url": "http://a b/"}"#, "such as http://example.org/page"),
        (r#"{"url": "http://a/", "method": "G T"}"#, "is no method"),
        (r#"{"url": "http://a/", "method": "QUERY"}"#, "QUERY"),
        (r#"{"url": "http://a/", "method": "PURGE"}"#, "eyewall purge"),
        (r#"{"url": "http://user:word@a/"}"#, "Authorization"),
        (r#"{"url": "http://a/", "headers": [["Content-Length", "5"]]}"#, "leave out Content-Length"),
        (r#"{"url": "http://a/", "headers": [["a b", "c"]]}"#, "no name of a field"),
        (r#"{"url": "http://a/", "headers": [["a", "b\n"]]}"#, "no field can have"),
        (r#"{"url": "http://a/", "verb": "GET"}"#, "unknown field"),
        (r#"{"url": "http://a/", "from": "nowhere"}"#, "the body is no question"),
    ] {
        let reply = socket.ask("POST", "/explain", &[], body);
        assert_eq!(reply.status, 400, "{body}");
        assert!(reply.text().contains(words), "{body}: {}", reply.text());
    }
    assert_eq!(socket.ask("GET", "/explain", &[], "").status, 405);
    let place = socket.path();
    let ended = run(eyewall().args(["explain", "page", "--server"]).arg(&place), b"");
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("has no scheme"), "{}", ended.stderr);
    let ended = run(eyewall().args(["explain", "http://a/"]), b"");
    assert!(ended.code == 2 && ended.stderr.contains("--server"), "{}", ended.stderr);
    let ended = run(eyewall().args(["explain", "http://a/", "-H", "nonsense", "--server"]).arg(&place), b"");
    assert!(ended.code == 2 && ended.stderr.contains("a colon"), "{}", ended.stderr);
}
