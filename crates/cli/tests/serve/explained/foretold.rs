//! Random requests get what was foretold, in each run the same ones. With `EYEWALL_SOAK` there are 10,000 of them. `EYEWALL_EXPLAIN_SEED` chooses
//! others.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType};
use serde_json::{Value, json};

use super::{answer, configuration};
use crate::common::admin::{Socket, json as json_of};
use crate::common::client::{Reply, parse, send};
use crate::common::origin::Origin;
use crate::common::server::{Server, Site};

const SEED: u64 = 20_261_127;
/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_mins(1);
/// A client, and a trusted proxy.
const UNTRUSTED: Ipv4Addr = Ipv4Addr::LOCALHOST;
const TRUSTED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

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
    /// The address that sends it, if the question names it.
    from: Option<Ipv4Addr>,
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
        "secure.example",
        "closed.example",
        "dead.example",
        "unknown.example",
    ]);
    let folder = random.one(&["", "", "", "static/", "admin/", "old/", "Static//", "%61dmin/"]);
    let name = random.one(&[
        "fresh",
        "shared",
        "stale",
        "aged",
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
                "max-age=3000",
                "max-stale",
                "max-stale=3000",
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
        ("X-Forwarded-Host", &["shop.example", "evil.example", "x@shop.example"], 12),
        ("X-Forwarded-Proto", &["https", "http"], 4),
        ("X-Forwarded-For", &["192.0.2.7", "203.0.113.9, 192.0.2.7, 10.1.1.1", "unknown"], 6),
        ("Max-Forwards", &["0", "1"], 6),
    ] {
        if random.below(share) == 0 {
            fields.push((name.to_owned(), random.one(values).to_owned()));
        }
    }
    if random.below(20) == 0 {
        fields.push(("Upgrade".to_owned(), "h2c".to_owned()));
    }
    let from = [None, Some(UNTRUSTED), Some(TRUSTED)][random.below(3)];
    Wanted { from, method: method.to_owned(), url, fields }
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
            let (told, got) = (foretold(told), foretold(reply.cache()));
            // The health of origins is no part of an explanation.
            let is_unreached = got.iter().any(|part| part.starts_with("detail=origin-"));
            got.starts_with(&told[..1]) && (is_unreached || told.iter().all(|part| got.contains(part)))
        }
        // A file, or an answer of the server's own.
        None => match explanation["verdict"].as_str() {
            Some("file") => matches!(reply.status, 200 | 206 | 304 | 412 | 416),
            _ => status.is_some() && reply.cache().is_empty(),
        },
    }
}

/// Waits until the server has stored what it gets from origins: it also revalidates after a response.
fn settle(socket: &Socket) {
    let begun = Instant::now();
    while json_of(&socket.ask("GET", "/status", &[], ""))["flights"] != 0 {
        assert!(begun.elapsed() < PATIENCE, "a response of the origin is still under way");
    }
}

/// One request from this address, on a connection of its own.
fn ask(server: SocketAddr, Wanted { from, method, url, fields }: &Wanted) -> Reply {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrV4::new(from.unwrap_or(UNTRUSTED), 0)).unwrap();
    rustix::net::connect(&socket, &server).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let lines: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    send(&mut stream, method, url, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let mut bytes = Vec::new();
    // A server may reset a connection that it cuts off: the bytes before that are the reply.
    let _ = stream.read_to_end(&mut bytes);
    parse(&bytes, method == "HEAD")
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
    let count = if std::env::var_os("EYEWALL_SOAK").is_some() { 10_000 } else { 300 };
    let seed = std::env::var("EYEWALL_EXPLAIN_SEED").map_or(SEED, |seed| seed.parse().unwrap());
    println!("EYEWALL_EXPLAIN_SEED={seed}");
    let (mut random, mut last) = (Random(seed), Vec::new());
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
        settle(&socket);
        let wanted = wanted(&mut random, &mut last);
        let Wanted { from, method, url, fields } = &wanted;
        let question = match from {
            Some(from) => json!({ "url": url, "method": method, "headers": fields, "from": from }),
            None => json!({ "url": url, "method": method, "headers": fields }),
        };
        let explained = socket.ask("POST", "/explain", &[], &question.to_string());
        assert_eq!(explained.status, 200, "{question}: {}", explained.text());
        let explanation = json_of(&explained);
        *verdicts.entry(explanation["verdict"].as_str().unwrap().to_owned()).or_default() += 1;
        let reply = ask(server.address, &wanted);
        assert!(
            agrees(&explanation, &reply),
            "request {number}: {method} {url} {fields:?} from {from:?}\nforetold {explanation:#}\ngot {} {}",
            reply.status,
            reply.cache()
        );
    }
    println!("{verdicts:?}");
    for verdict in ["hit", "stale", "revalidate", "miss", "pass", "file", "redirect", "error"] {
        assert!(verdicts.contains_key(verdict), "{verdict} is missing: {verdicts:?}");
    }
}
