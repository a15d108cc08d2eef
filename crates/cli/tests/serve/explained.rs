//! An explanation says what becomes of a request: random requests get what was foretold. With `EYEWALL_SOAK` there are 10,000 of them.

use serde_json::{Value, json};

use crate::common::admin::{Socket, json as json_of};
use crate::common::client::Reply;
use crate::common::command::{eyewall, run};
use crate::common::origin::{Asked, Origin};
use crate::common::server::{Server, Site};

/// Sites with rules of all kinds, over one origin.
fn configuration(socket: &Socket, origin: &str, root: &Site) -> String {
    let root = root.path().display();
    format!(
        r#"[server]
{table}
[[site]]
hosts = ["shop.example"]
aliases = ["www.shop.example"]
origins = ["{origin}"]
key = {{ cookies = ["currency"], headers = ["X-Device"], strip_query = ["utm_*"], sort_query = true, ignore_cookies = ["_ga*"] }}
cache = {{ default_ttl = "10m", negative_ttl = {{ 404 = "5m" }}, stale_while_revalidate = "20s" }}

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
"#,
        table = socket.table().replace("[server.admin]\n", "admin = { ").trim_end().to_owned() + " }",
    )
}

/// No lifetime ends while the test runs: what is stale is so from its arrival.
fn answer(asked: &Asked) -> (u16, String, Vec<u8>) {
    let name = asked.target.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let html = "Content-Type: text/html\r\n";
    let (status, fields) = match name.split('.').next().unwrap_or_default() {
        "fresh" => (200, "Cache-Control: max-age=6000\r\nETag: \"a\""),
        "shared" => (200, "Cache-Control: max-age=0, s-maxage=6000"),
        "stale" => (200, "Cache-Control: max-age=60\r\nAge: 70\r\nETag: \"a\""),
        "windowed" => (200, "Cache-Control: max-age=60, stale-while-revalidate=60000\r\nAge: 70\r\nETag: \"a\""),
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

/// A sequence of numbers, the same in each run (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn one<'a>(&mut self, among: &[&'a str]) -> &'a str {
        among[self.below(among.len())]
    }
}

struct Wanted {
    method: String,
    url: String,
    fields: Vec<(String, String)>,
}

/// Most requests are for one of the last addresses.
fn url(random: &mut Random, last: &mut Vec<String>) -> String {
    if last.len() > 4 && random.below(4) > 0 {
        return last[random.below(last.len())].clone();
    }
    let host = random.one(&[
        "shop.example",
        "shop.example",
        "shop.example",
        "www.shop.example",
        "my.blog.example",
        "files.example",
        "only-files.example",
        "unknown.example",
    ]);
    let folder = random.one(&["", "", "", "static/", "admin/", "old/", "Static//", "%61dmin/"]);
    let name = random.one(&[
        "fresh",
        "shared",
        "stale",
        "windowed",
        "must",
        "validated",
        "kept",
        "unstorable",
        "private",
        "cookie",
        "language",
        "anything",
        "absent",
        "broken",
        "elsewhere",
        "other",
        "page.html",
        "folder",
        "fresh.tmp",
        ".hidden",
        "%zz",
    ]);
    let query = random.one(&["", "", "", "?a=1", "?utm_source=x", "?b=2&a=1&utm_id=7", "?keep", "?preview=true"]);
    let url = format!("http://{host}/{folder}{name}{query}");
    if last.len() >= 24 {
        last.remove(0);
    }
    last.push(url.clone());
    url
}

fn wanted(random: &mut Random, last: &mut Vec<String>) -> Wanted {
    let url = url(random, last);
    let method = random.one(&[
        "GET", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "HEAD", "POST", "OPTIONS", "DELETE", "CONNECT",
    ]);
    let mut fields = Vec::new();
    for (name, values, share) in [
        (
            "Cookie",
            &["session=1", "currency=eur", "_ga=1; currency=usd", "wordpress_logged_in_x=1", "theme=dark"][..],
            3,
        ),
        ("X-Device", &["phone", "desk"], 5),
        ("Accept-Language", &["de", "en", "fr, de;q=0.5"], 3),
        (
            "Cache-Control",
            &[
                "no-cache",
                "max-age=0",
                "max-age=5",
                "max-stale",
                "max-stale=30",
                "min-fresh=9000",
                "only-if-cached",
                "no-store",
            ],
            3,
        ),
        ("Range", &["bytes=0-3", "bytes=-2", "bytes=0-1,3-4", "bytes=0-0,1-1,2-2,3-3,4-4,5-5,6-6,7-7,8-8"], 8),
        ("If-None-Match", &["\"a\"", "*"], 8),
        ("If-Range", &["\"a\"", "Thu, 01 Jan 1970 00:00:00 GMT"], 12),
        ("Authorization", &["Basic eDp5"], 12),
        ("X-Forwarded-Host", &["evil.example"], 12),
        ("Max-Forwards", &["0", "1"], 6),
    ] {
        if random.below(share) == 0 {
            fields.push((name.to_owned(), random.one(values).to_owned()));
        }
    }
    if random.below(20) == 0 {
        fields.push(("Upgrade".to_owned(), "h2c".to_owned()));
    }
    Wanted { method: method.to_owned(), url, fields }
}

/// How `Cache-Status` begins: without times, and without what the origin's response adds.
fn foretold(status: &str) -> Vec<&str> {
    let parts = status.split("; ").skip(1);
    parts.filter(|part| *part == "hit" || part.starts_with("fwd=") || part.starts_with("detail=")).collect()
}

/// Whether the reply is what the explanation says.
fn agrees(explanation: &Value, reply: &Reply) -> bool {
    let status = explanation["status"].as_u64();
    if status.is_some_and(|status| status != u64::from(reply.status)) {
        return false;
    }
    match explanation["cache_status"].as_str() {
        Some(told) => {
            let told = foretold(told);
            let got = foretold(reply.cache());
            got.starts_with(&told[..1]) && told.iter().all(|part| got.contains(part))
        }
        // A file, or an answer of the server's own.
        None => match explanation["verdict"].as_str() {
            Some("file") => matches!(reply.status, 200 | 206 | 304 | 412 | 416),
            _ => status.is_some() && reply.cache().is_empty(),
        },
    }
}

#[test]
fn random_requests_get_what_was_foretold() {
    let (socket, root) = (Socket::new(), Site::new());
    root.write("page.html", "a page");
    std::fs::create_dir(root.path().join("folder")).unwrap();
    root.write("folder/index.html", "an index");
    root.write(".hidden", "a secret");
    for name in ["other", "language", "stale"] {
        root.write(name, "a file");
    }
    let origin = Origin::answering(answer);
    let server = Server::configured(&configuration(&socket, &origin.url(), &root));
    let count = if std::env::var_os("EYEWALL_SOAK").is_some() { 10_000 } else { 1500 };
    let (mut random, mut last) = (Random(20_261_127), Vec::new());
    let mut verdicts = std::collections::BTreeMap::<String, usize>::new();
    for number in 0..count {
        if random.below(40) == 0 {
            let body = random.one(&[
                r#"{"url": "http://shop.example/fresh"}"#,
                r#"{"host": "shop.example", "soft": true}"#,
                r#"{"tag": "page", "host": "shop.example"}"#,
                r#"{"everything": true, "soft": true}"#,
            ]);
            assert_eq!(socket.purge(body).status, 200);
        }
        let Wanted { method, url, fields } = wanted(&mut random, &mut last);
        let question = json!({ "url": url, "method": method, "headers": fields }).to_string();
        let explained = socket.ask("POST", "/explain", &[], &question);
        assert_eq!(explained.status, 200, "{question}: {}", explained.text());
        let explanation = json_of(&explained);
        *verdicts.entry(explanation["verdict"].as_str().unwrap().to_owned()).or_default() += 1;
        let lines: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let reply = server.ask(&method, &url, &lines);
        assert!(
            agrees(&explanation, &reply),
            "request {number}: {method} {url} {fields:?}\nforetold {explanation:#}\ngot {} {}",
            reply.status,
            reply.cache()
        );
    }
    for verdict in ["hit", "stale", "revalidate", "miss", "pass", "file", "redirect", "error"] {
        assert!(verdicts.get(verdict).is_some_and(|count| *count > 5), "{verdict} is missing: {verdicts:?}");
    }
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
        "without utm_source=x, which the site strips",
        "rules      admin: doesn't apply (prefix)",
        "pages: applies",
        "stored     status 200, 9 B",
        "lifetime: 6000 s: max-age of the origin (RFC 9111, section 4.2.1)",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
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
