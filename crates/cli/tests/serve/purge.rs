//! PURGE, as plugins and scripts send it: Eyewall fetches its targets again, and nothing else.

use crate::common::admin::json;
use crate::common::client::Reply;
use crate::common::origin::Origin;
use crate::common::server::{Server, Site};

/// Repeats a request until its response is stored.
fn store(server: &Server, target: &str, fields: &[&str]) {
    while !server.ask("GET", target, fields).is_hit() {}
}

fn is_hit(server: &Server, target: &str) -> bool {
    server.get(target).is_hit()
}

/// The only result of a successful purge.
fn purged(reply: &Reply) -> (String, String) {
    assert_eq!(reply.status, 200, "{reply:?}");
    let report = json(reply);
    let text = |name: &str| report["purged"][0][name].as_str().unwrap_or_default().to_owned();
    (text("name"), text("result"))
}

fn two_sites(origin: &Origin, server: &str) -> Server {
    let origin = origin.url();
    Server::configured(&format!(
        "{server}[[site]]\nhosts = [\"one.example\"]\naliases = [\"www.one.example\"]\norigins = [\"{origin}\"]\n\
         key = {{ strip_query = [\"ref\"] }}\n\
         [[site]]\nhosts = [\"one.example.org\", \"*.two.example\"]\norigins = [\"{origin}\"]\n"
    ))
}

#[test]
fn an_address_is_purged_with_all_its_variants() {
    let origin = Origin::counting("Cache-Control: max-age=60\r\nVary: Accept-Language");
    let server = Server::over_origin(&origin.url());
    let languages = ["Accept-Language: de", "Accept-Language: en"];
    for language in languages {
        store(&server, "/page", &[language]);
        store(&server, "/page/other", &[language]);
    }
    let first = server.ask("PURGE", "/page", &[]);
    assert_eq!(purged(&first), ("http://test/page".to_owned(), "found".to_owned()));
    assert_eq!(purged(&server.ask("PURGE", "/page", &[])).1, "absent", "it is no error");
    for language in languages {
        assert!(!server.ask("GET", "/page", &[language]).is_hit(), "{language}");
        assert!(server.ask("GET", "/page/other", &[language]).is_hit(), "{language}");
    }
    assert!(origin.asked().iter().all(|asked| asked.method == "GET"), "it is not for the origin");
}

#[test]
fn an_address_is_purged_with_all_its_key_parts() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server =
        Server::configured(&format!("[[site]]\norigins = [\"{}\"]\nkey = {{ cookies = [\"lang\"] }}\n", origin.url()));
    let cookies = ["Cookie: a=b", "Cookie: lang=de", "Cookie: lang=en"];
    for cookie in cookies {
        store(&server, "/page", &[cookie]);
        store(&server, "/page2", &[cookie]);
    }
    assert_eq!(purged(&server.ask("PURGE", "/page", &[])).1, "found");
    for cookie in cookies {
        assert!(!server.ask("GET", "/page", &[cookie]).is_hit(), "{cookie}");
        assert!(server.ask("GET", "/page2", &[cookie]).is_hit(), "{cookie}");
    }
    assert_eq!(purged(&server.ask("PURGE", "/never", &[])).1, "accepted", "there may be entries of any cookie");
}

#[test]
fn an_address_is_read_as_in_a_request() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = two_sites(&origin, "");
    store(&server, "http://one.example/a?q=1", &[]);
    let same = server.ask("PURGE", "http://www.one.example/b/../a?ref=mail&q=1", &[]);
    assert_eq!(purged(&same), ("http://one.example/a?q=1".to_owned(), "found".to_owned()));
    assert!(!is_hit(&server, "http://one.example/a?q=1"));
    assert_eq!(server.ask("PURGE", "http://three.example/", &[]).status, 421, "no site has this host");
}

#[test]
fn a_pattern_of_a_plugin_purges_addresses_of_this_host_only() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = two_sites(&origin, "");
    let all = [
        "http://one.example/blog/a",
        "http://one.example/blog/b?c",
        "http://one.example/shop",
        "http://one.example:81/blog/a",
        "http://one.example.org/blog/a",
        "http://a.two.example/blog/a",
    ];
    let hits = || all.map(|target| server.get(target).is_hit());
    let store_all = || {
        for target in all {
            store(&server, target, &[]);
        }
    };
    store_all();
    assert_eq!(purged(&server.ask("PURGE", "http://one.example/blog/.*", &["X-Purge-Method: regex"])).1, "accepted");
    assert_eq!(hits(), [false, false, true, true, true, true]);
    store_all();
    assert_eq!(purged(&server.ask("PURGE", "http://www.one.example/.*", &[])).0, "http://one.example/");
    assert_eq!(hits(), [false, false, false, true, true, true]);
    for target in ["http://one.example/a|b", "http://one.example/(a)"] {
        let reply = server.ask("PURGE", target, &["X-Purge-Method: regex"]);
        assert_eq!((reply.status, reply.text().contains("`.*`")), (400, true), "{target}");
    }
}

#[test]
fn any_number_of_prefixes_never_purges_more_than_they_match() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = two_sites(&origin, "");
    store(&server, "http://one.example.org/", &[]);
    for number in 0..150 {
        let reply = server.ask("PURGE", &format!("http://one.example/{number}/.*"), &[]);
        assert_eq!(json(&reply)["purge_overflows"], 0, "{number}");
    }
    assert!(is_hit(&server, "http://one.example.org/"), "of another host");
}

#[test]
fn tags_that_no_client_sees_are_tags() {
    let origin = Origin::counting("Cache-Control: max-age=60\r\nSurrogate-Key: home");
    let server = Server::over_site(&origin.url(), "[site.cache]\nstrip_response = [\"Surrogate-Key\"]\n");
    store(&server, "/", &[]);
    assert_eq!(server.get("/").field("surrogate-key"), "");
    server.ask("PURGE", "/", &["Xkey: home"]);
    assert!(!is_hit(&server, "/"));
}

#[test]
fn tags_are_those_of_one_site() {
    let origin = Origin::counting("Cache-Control: max-age=60\r\nSurrogate-Key: home post-7\r\nCache-Groups: \"posts\"");
    let server = two_sites(&origin, "");
    let hosts = ["http://one.example/", "http://one.example.org/"];
    let plugins = "X-Cache-Tags: posts"; // tidy: word
    for (field, count) in [("Xkey: post-7", 1), ("Surrogate-Key: no, home", 2), (plugins, 1)] {
        for target in hosts {
            store(&server, target, &[]);
        }
        let reply = server.ask("PURGE", "http://www.one.example/ignored", &[field]);
        assert_eq!(purged(&reply).1, "accepted");
        assert_eq!(json(&reply)["purged"].as_array().unwrap().len(), count, "{field}");
        assert_eq!(hosts.map(|target| is_hit(&server, target)), [false, true], "{field}");
    }
    assert_eq!(server.ask("PURGE", "/", &["Xkey: ,"]).status, 400);
}

#[test]
fn a_client_without_permission_is_refused_whatever_it_sends() {
    for allowed in ["", "\"192.0.2.0/24\", \"::1\""] {
        let origin = Origin::counting("Cache-Control: max-age=60");
        let server = two_sites(&origin, &format!("[server]\npurge_from = [{allowed}]\n"));
        store(&server, "http://one.example/", &[]);
        let asked = origin.asked().len();
        for fields in [&[][..], &["X-Forwarded-For: 192.0.2.1"], &["Forwarded: for=192.0.2.1"], &["Xkey: a"]] {
            let reply = server.ask("PURGE", "http://one.example/", fields);
            assert_eq!((reply.status, reply.text().contains("purge_from")), (403, true), "{fields:?}");
        }
        assert!(is_hit(&server, "http://one.example/"));
        assert_eq!(origin.asked().len(), asked, "nothing of it reached the origin");
    }
}

#[test]
fn a_malformed_purge_is_refused_with_a_message() {
    let origin = Origin::counting("");
    let server = Server::over_origin(&origin.url());
    for (target, fields) in [
        ("/%zz", &[][..]),
        ("*", &[]),
        ("/", &["X-Purge-Method: all"]),
        ("/", &["Surrogate-Key: "]),
        ("/", &["Host: two"]),
    ] {
        assert_eq!(server.ask("PURGE", target, fields).status, 400, "{target} {fields:?}");
    }
    assert!(origin.asked().is_empty());
}

#[test]
fn files_are_never_out_of_date_and_stay() {
    let site = Site::new();
    site.write("a.txt", "text");
    let server = Server::over_folder(site.path());
    server.get_until("/a.txt", Reply::is_hit);
    assert_eq!(purged(&server.ask("PURGE", "/a.txt", &[])).1, "absent");
    assert!(is_hit(&server, "/a.txt"));
    assert_eq!(server.ask("POST", "/a.txt", &["Content-Length: 0"]).status, 405);
}
