//! The fast path answers hits in memory. Its responses, and those before and after them, are the same as on the full path.

use std::io::{Read as _, Write as _};

use crate::common::client::{Reply, connect};
use crate::common::origin::{Asked, Origin, respond};
use crate::common::server::{Server, Site};

/// A field that forces the full path, and has no other effect.
const FULL_PATH: &str = "TE: trailers";

/// Status and fields by name, without those that depend on the second.
fn told(reply: &Reply) -> (u16, Vec<(&str, &str)>) {
    fn timeless((name, value): &(String, String)) -> &str {
        match name.as_str() {
            "age" | "date" => "?",
            "cache-status" => value.split("ttl=").next().unwrap_or_default(),
            _ => value,
        }
    }
    let mut fields: Vec<(&str, &str)> = reply.fields.iter().map(|field| (field.0.as_str(), timeless(field))).collect();
    fields.sort_by_key(|(name, _)| *name);
    (reply.status, fields)
}

fn site(asked: &Asked) -> (u16, String, Vec<u8>) {
    let fields = match asked.target.as_str() {
        "/old" => "Age: 30\r\nServer: o",
        "/own" => "X-Own: 1\r\nX-Own: \u{e9}\r\nSet-Own:  two  words \r\nX-Empty:",
        "/asked-before" => "Via: 1.1 other\r\nCache-Status: Other; hit\r\nCDN-Cache-Control: max-age=90",
        "/coded" => "Vary: Accept-Encoding\r\nContent-Encoding: gzip\r\nETag: W/\"a\"",
        "/by-cookie" => "Vary: Cookie",
        "/by-many" => "Vary: Accept-Language, X-Device, X-Forwarded-Host\r\nAccept-Ranges: bytes",
        "/tagged" => "Surrogate-Key: a b\r\nStripped: 1",
        _ => "Content-Type: text/html",
    };
    let status = match asked.target.as_str() {
        "/gone" => 410,
        "/moved" => 301,
        "/absent" => 404,
        "/odd" => 299,
        _ => 200,
    };
    let body = if asked.target == "/empty" { Vec::new() } else { asked.target.repeat(3000).into_bytes() };
    (status, format!("Cache-Control: max-age=60\r\n{fields}"), body)
}

#[test]
fn both_paths_give_the_same_response() {
    let origin = Origin::answering(site);
    let server = Server::over_site(
        &origin.url(),
        "cache = { strip_response = [\"Stripped\"] }\nkey = { cookies = [\"lang\"], strip_query = [\"utm_*\"], sort_query = true }\n\
         [[site.rule]]\ncookie = [\"session\"]\nbypass = true\n[[site.rule]]\nheader = { X-Bypass = \"1\" }\nbypass = true\n",
    );
    let request =
        ["Accept-Encoding: gzip", "Accept-Language: de, en;q=0.5", "X-Device: phone", "X-Forwarded-Host: evil"];
    for target in [
        "/",
        "/old",
        "/own",
        "/asked-before",
        "/coded",
        "/by-cookie",
        "/by-many",
        "/tagged",
        "/gone",
        "/moved",
        "/absent",
        "/odd",
        "/%7Eme/../a?b=2&utm_x=1&a=1",
        "/empty",
    ] {
        for more in [&[][..], &["Cookie: lang=de; theme=dark"], &["Cookie: lang=en", "Cookie: x=y"], &["X-Bypass: 0"]] {
            let fields = [&request[..], more].concat();
            server.ask("GET", target, &fields);
            let ask_long = || server.ask("GET", target, &[&fields[..], &[FULL_PATH]].concat());
            let mut long = ask_long();
            // No last byte tells its client that an empty body is stored.
            while target == "/empty" && !long.is_hit() {
                long = ask_long();
            }
            assert!(long.is_hit(), "{target} {more:?}: {}", long.cache());
            let short = server.ask("GET", target, &fields);
            assert_eq!(told(&short), told(&long), "{target} {more:?}");
            assert!(short.body == long.body, "{target} {more:?}");
        }
    }
    let asked = origin.asked().len();
    for (bypassing, rule) in [("Cookie: session=1", "rule-1"), ("X-Bypass: 1", "rule-2")] {
        let expected = format!("Eyewall; fwd=bypass; fwd-status=200; detail={rule}");
        assert_eq!(server.ask("GET", "/", &[bypassing]).cache(), expected);
    }
    assert_eq!(origin.asked().len(), asked + 2);
}

#[test]
fn both_paths_give_the_same_file() {
    let site = Site::new();
    for name in ["index.html", "a b.css", "below/page.html", "page.js", "page.js.gz", "empty.txt"] {
        site.write(name, if name == "empty.txt" { "" } else { name });
    }
    let server = Server::configured(&format!("[[site]]\nroot = {:?}\nprecompressed = true\n", site.path()));
    for target in ["/", "/a%20b.css?v=2", "//below/page.html", "/page.js", "/empty.txt"] {
        for accepted in ["Accept-Encoding: gzip", "Accept-Encoding: identity"] {
            let ask = |more: &[&str]| server.ask("GET", target, &[&[accepted], more].concat());
            // A look is remembered when the file has not changed for a second.
            let mut long = ask(&[FULL_PATH]);
            while !long.is_hit() || long.field("last-modified").is_empty() {
                long = ask(&[FULL_PATH]);
            }
            let short = ask(&[]);
            assert_eq!(told(&short), told(&long), "{target} {accepted}");
            assert!(short.body == long.body, "{target} {accepted}");
        }
    }
    for (target, status) in [("/absent", 404), ("/below", 404), ("/../index.html", 400), ("/.git", 404), ("/%zz", 400)]
    {
        assert_eq!(server.get(target).status, status, "{target}");
    }
    site.write("index.html", "changed");
    assert_eq!(server.get("/").text(), "changed");
}

#[test]
fn a_client_with_conditions_gets_the_full_path() {
    let origin = Origin::counting("Cache-Control: max-age=60\r\nETag: \"a\"");
    let server = Server::over_origin(&origin.url());
    server.get("/");
    assert!(server.get("/").is_hit());
    assert_eq!(server.ask("GET", "/", &["If-None-Match: \"a\""]).status, 304);
    assert_eq!(server.ask("GET", "/", &["Range: bytes=0-0"]).status, 206);
    assert!(!server.ask("GET", "/", &["Cache-Control: no-cache"]).is_hit());
    assert!(!server.ask("GET", "/", &["Authorization: x", "Pragma: no-cache"]).is_hit());
    assert_eq!(server.ask("HEAD", "/", &[]).body, b"");
}

/// The responses that came over one connection, by status and body.
fn replies(mut bytes: &[u8]) -> Vec<(u16, String)> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        let length: usize = length.map_or(0, |digits| digits.parse().unwrap());
        let is_chunked = head.contains("transfer-encoding: chunked");
        assert!(!is_chunked, "{head}");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = String::from_utf8(bytes[end..end + length].to_vec()).unwrap();
        bytes = &bytes[end + length..];
        replies.push((status, body));
    }
    replies
}

#[test]
fn responses_keep_the_order_of_their_requests() {
    let origin = Origin::raw(|asked, stream| {
        let length: usize = asked.field("content-length").parse().unwrap_or(0);
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        let body = format!("{} {} {}", asked.method, asked.target, String::from_utf8(body).unwrap());
        respond(stream, 200, "Cache-Control: max-age=60", body.len(), body.as_bytes());
    });
    let server = Server::over_origin(&origin.url());
    server.get("/ready");
    assert!(server.get_until("/ready", Reply::is_hit).status == 200);
    let ready = "GET /ready HTTP/1.1\r\nHost: test\r\n\r\n";
    let all = [
        ready,
        "GET /miss HTTP/1.1\r\nHost: test\r\n\r\n",
        ready,
        ready,
        "POST /taken HTTP/1.1\r\nHost: test\r\nContent-Length: 35\r\n\r\nGET /ready HTTP/1.1\r\nHost: test\r\n\r\n",
        ready,
        "GET /other HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n",
        "GET /ready HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n",
        "GET /never HTTP/1.1\r\nHost: test\r\n\r\n",
    ]
    .concat();
    let posted = "POST /taken GET /ready HTTP/1.1\r\nHost: test\r\n\r\n";
    let page = (200, "GET /ready ".to_owned());
    let expected = [
        page.clone(),
        (200, "GET /miss ".to_owned()),
        page.clone(),
        page.clone(),
        (200, posted.to_owned()),
        page.clone(),
        (200, "GET /other ".to_owned()),
        page,
    ];
    // At once, and in pieces of any length.
    for piece_bytes in [all.len(), 100, 7] {
        let mut client = connect(server.address);
        for piece in all.as_bytes().chunks(piece_bytes) {
            client.write_all(piece).unwrap();
        }
        let mut bytes = Vec::new();
        // The server didn't read the bytes after the last request, so it may reset the connection after the last response.
        let _ = client.read_to_end(&mut bytes);
        assert_eq!(replies(&bytes), expected, "in pieces of {piece_bytes}");
    }
}
