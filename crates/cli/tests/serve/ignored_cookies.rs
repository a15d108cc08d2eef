//! Analytics cookies differ between readers, and pages don't: readers share stored pages, and the origin never gets the cookies.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::common::origin::Origin;
use crate::common::server::Server;

/// A field that forces the full path, and has no other effect.
const FULL_PATH: &str = "TE: trailers";

/// An origin whose responses have the cookies that it got.
fn echo(fields: &'static str) -> Origin {
    Origin::answering(move |asked| (200, fields.to_owned(), format!("[{}]", asked.field("cookie")).into_bytes()))
}

const VARIES: &str = "Cache-Control: max-age=600\r\nVary: Cookie\r\nContent-Type: text/html";

#[test]
fn readers_with_analytics_cookies_of_their_own_share_a_page_that_varies_by_cookie() {
    for preset in ["blog", "wordpress", "static", "mediawiki", "dokuwiki", "drupal"] {
        let origin = echo(VARIES);
        let server = Server::over_site(&origin.url(), &format!("preset = \"{preset}\"\n"));
        for reader in 0..40 {
            let cookies = format!("Cookie: _ga=GA1.1.{reader}; _ga_ABC=GS1.{reader}; _pk_id.1.1fff={reader}");
            let way: &[&str] = if reader % 2 == 0 { &[&cookies] } else { &[&cookies, FULL_PATH] };
            assert_eq!(server.ask("GET", "/", way).text(), "[]", "{preset}");
        }
        assert_eq!(origin.asked().len(), 1, "{preset}");
        assert!(server.ask("GET", "/", &["Cookie: _fbp=fb.1"]).is_hit() && server.get("/").is_hit(), "{preset}");
    }
}

#[test]
fn other_cookies_choose_pages_and_reach_the_origin_unchanged() {
    let origin = echo(VARIES);
    let server = Server::over_site(&origin.url(), "key = { ignore_cookies = [\"_ga*\", \"chat\"] }\n");
    let ask = |fields: &[&str]| server.ask("GET", "/", fields);
    for (first, second, seen) in [
        (&["Cookie: lang=de; _ga=1"][..], &["Cookie: _ga=2", "Cookie: lang=de; chat=3"][..], "[lang=de]"),
        (&["Cookie: chat=1; a=\"b c\" ;d"], &["Cookie: a=\"b c\" ;d; _gat=2"], "[a=\"b c\" ;d]"),
        (&["Cookie: _fbp=1"], &["Cookie: _ga=3; _fbp=1"], "[_fbp=1]"),
    ] {
        assert_eq!(ask(first).text(), seen);
        for way in [second.to_vec(), [second, &[FULL_PATH]].concat()] {
            let reply = ask(&way);
            assert!(reply.is_hit() && reply.text() == seen, "{way:?}: {} {}", reply.cache(), reply.text());
        }
    }
    assert_eq!(origin.asked().len(), 3);
    let posted = server.ask("POST", "/", &["Cookie: _ga=1; lang=fr", "Content-Length: 0"]);
    assert_eq!(posted.text(), "[lang=fr]");
}

#[test]
fn rules_and_keys_do_not_see_ignored_cookies() {
    let origin = echo("Cache-Control: max-age=600");
    let rule = "[[site.rule]]\ncookie = [\"_*\"]\nbypass = true\n";
    let server =
        Server::over_site(&origin.url(), &format!("key = {{ ignore_analytics = true, cookies = [\"lang\"] }}\n{rule}"));
    for way in [&["Cookie: _ga=1"][..], &["Cookie: _ga=2"], &["Cookie: _ga=3", FULL_PATH]] {
        assert!(!server.ask("GET", "/", way).cache().contains("bypass"), "{way:?}");
    }
    assert_eq!(origin.asked().len(), 1);
    assert!(server.ask("GET", "/", &["Cookie: _own=1"]).cache().contains("bypass"));
}

#[test]
fn a_preset_ignores_analytics_unless_the_site_says_otherwise() {
    let origin = echo(VARIES);
    let server = Server::over_site(&origin.url(), "preset = \"blog\"\nkey = { ignore_analytics = false }\n");
    for number in 0..3 {
        let cookie = format!("_ga={number}");
        assert_eq!(server.ask("GET", "/", &[&format!("Cookie: {cookie}")]).text(), format!("[{cookie}]"));
    }
    assert_eq!(origin.asked().len(), 3);
}

/// An origin that gives each reader a session, and greets logged-in readers.
fn sessions() -> Origin {
    Origin::answering(|asked| {
        let fields = "Cache-Control: no-store\r\nSet-Cookie: sid=new\r\nContent-Type: text/html\r\nVary: Cookie";
        (200, fields.to_owned(), format!("[{}]", asked.field("cookie")).into_bytes())
    })
}

const ANONYMOUS: &str = "[[site.rule]]\nmethod = [\"GET\", \"HEAD\"]\nunless_cookie = [\"login*\"]\n\
     unless_query = [\"do\"]\nunless_path = [\"/api/*\"]\nignore_cookies = [\"sid\"]\n\
     strip_response = [\"Set-Cookie\", \"Cache-Control\"]\ndefault_ttl = \"60s\"\n";

#[test]
fn a_rule_gives_readers_without_a_login_pages_without_their_sessions() {
    let origin = sessions();
    let server = Server::over_site(&origin.url(), ANONYMOUS);
    for reader in 0..10 {
        let session = format!("Cookie: sid={reader}");
        let way: &[&str] = if reader % 2 == 0 { &[&session] } else { &[&session, FULL_PATH] };
        let reply = server.ask("GET", "/", way);
        assert_eq!((reply.text(), reply.field("set-cookie")), ("[]", ""), "{reader}");
    }
    assert_eq!(origin.asked().len(), 1);
    assert!(server.get("/").is_hit());
    // Requests that the rule doesn't match reach the origin unchanged, and its responses reach the client unchanged.
    for (method, target) in [("GET", "/?do=login"), ("GET", "/api/x"), ("POST", "/")] {
        let reply = server.ask(method, target, &["Cookie: sid=1", "Content-Length: 0"]);
        assert_eq!((reply.text(), reply.field("set-cookie")), ("[sid=1]", "sid=new"), "{method} {target}");
    }
    for _ in 0..2 {
        let reply = server.ask("GET", "/", &["Cookie: sid=1; login_x=ada"]);
        assert_eq!((reply.text(), reply.field("set-cookie")), ("[sid=1; login_x=ada]", "sid=new"));
        assert!(!reply.is_hit() && !reply.cache().contains("stored"), "{}", reply.cache());
    }
}

#[test]
fn a_cookie_that_one_rule_drops_is_seen_by_all_rules() {
    let origin = sessions();
    let later = "[[site.rule]]\ncookie = [\"sid=admin\"]\nbypass = true\n";
    let server = Server::over_site(&origin.url(), &format!("{ANONYMOUS}{later}"));
    for way in [&["Cookie: sid=1"][..], &["Cookie: sid=admin"], &["Cookie: sid=admin", FULL_PATH]] {
        let reply = server.ask("GET", "/", way);
        assert_eq!(reply.text(), "[]");
        assert_eq!(reply.cache().contains("bypass"), way[0].contains("admin"), "{}", reply.cache());
    }
}

/// HTTP/2 may send each cookie in a field of its own (RFC 9113, section 8.2.3).
#[tokio::test]
async fn cookies_of_http2_are_ignored_in_every_field() {
    let origin = echo(VARIES);
    let server = Server::over_site(&origin.url(), "key = { ignore_cookies = [\"_ga*\"] }\n");
    let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let driving = tokio::spawn(connection);
    for cookies in [["_ga=1", "lang=de"], ["lang=de", "_gat=2"], ["_ga=3; _gab=4", "lang=de"]] {
        let request = Request::builder().uri("http://a.example/");
        let request = cookies.iter().fold(request, |request, cookie| request.header("cookie", *cookie));
        let response = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "[lang=de]", "{cookies:?}");
    }
    driving.abort();
    assert_eq!(origin.asked().len(), 1);
}
