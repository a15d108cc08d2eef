//! The origin makes each response once for all nodes.

use super::{Node, Peers, is_of_peer, key_file, settings};
use crate::common::client::Reply;
use crate::common::command::{eyewall, run};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

fn asked(origin: &Origin, target: &str) -> usize {
    origin.asked().iter().filter(|asked| asked.target == target).count()
}

#[test]
fn each_response_is_made_once_and_kept_where_it_is_asked_for_again() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600\r\nETag: \"1\"");
    let peers = Peers::start(&redis, 3, &format!("origins = [\"{}\"]", origin.url()));
    let mut of_peers = 0;
    for number in 0..30 {
        let target = format!("/page{number}?a=b");
        let replies: Vec<Reply> = peers.nodes.iter().map(|node| node.get(&target)).collect();
        assert!(replies.iter().all(|reply| reply.body == replies[0].body), "{replies:?}");
        of_peers += replies.iter().filter(|reply| is_of_peer(reply)).count();
        assert!(replies.iter().all(|reply| reply.field("via").contains("eyewall")));
        assert_eq!(asked(&origin, &target), 1);
    }
    assert!((40..=60).contains(&of_peers), "each page has one home: {of_peers}");
    for node in &peers.nodes {
        node.get("/page1?a=b");
        assert!(node.get("/page1?a=b").is_hit(), "a node keeps what is asked for again");
        let reply = node.server.ask("GET", "/page1?a=b", &["If-None-Match: \"1\""]);
        assert_eq!(reply.status, 304);
    }
    assert_eq!(asked(&origin, "/page1?a=b"), 1);
}

#[test]
fn variants_cookies_and_rewritten_fields_reach_the_home_as_they_were() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::answering(|asked| {
        let body = format!("{} {} {}", asked.field("accept-language"), asked.field("cookie"), asked.field("x-rule"));
        (200, "Cache-Control: max-age=600\r\nVary: Accept-Language\r\nXkey: all".to_owned(), body.into_bytes())
    });
    let site = format!(
        "origins = [\"{}\"]\nkey = {{ cookies = [\"lang\"] }}\n[[site.rule]]\nset_request_headers = {{ \"X-Rule\" = \"yes\" }}\n",
        origin.url()
    );
    let peers = Peers::start(&redis, 2, &site);
    for fields in [
        ["Accept-Language: de", "Cookie: lang=a"],
        ["Accept-Language: en", "Cookie: lang=a"],
        ["Accept-Language: de", "Cookie: lang=b"],
    ] {
        let before = origin.asked().len();
        for _ in 0..3 {
            for node in &peers.nodes {
                let reply = node.server.ask("GET", "/a", &fields);
                let expected = format!("{} {} yes", &fields[0][17..], &fields[1][8..]);
                assert_eq!(reply.text(), expected, "{reply:?}");
                let reply = node.server.ask("GET", "/a", &[fields[0], fields[1], "Accept-Encoding: gzip"]);
                assert_eq!(reply.status, 200);
            }
        }
        assert_eq!(origin.asked().len(), before + 1);
    }
}

#[test]
fn large_bodies_and_parts_of_them_are_whole() {
    let Some(redis) = Redis::start(&[]) else { return };
    let body: Vec<u8> = (0..3u32 << 20).map(|number| (number % 251) as u8).collect();
    let expected = body.clone();
    let origin =
        Origin::answering(move |_| (200, "Cache-Control: max-age=600\r\nETag: \"1\"".to_owned(), body.clone()));
    let peers = Peers::start(&redis, 2, &format!("origins = [\"{}\"]", origin.url()));
    for node in &peers.nodes {
        for _ in 0..3 {
            let reply = node.get("/large");
            assert!(reply.body == expected, "{} bytes", reply.body.len());
        }
        let reply = node.server.ask("GET", "/large", &["Range: bytes=1000000-1000009"]);
        assert_eq!((reply.status, &reply.body[..]), (206, &expected[1_000_000..1_000_010]));
    }
    assert_eq!(origin.asked().len(), 1);
}

#[test]
fn responses_that_may_not_be_stored_come_from_the_origin() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: private");
    let peers = Peers::start(&redis, 2, &format!("origins = [\"{}\"]", origin.url()));
    let mut bodies: Vec<Vec<u8>> = (0..6).map(|number| peers.nodes[number % 2].get("/private").body.clone()).collect();
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), 6, "no client gets the response of another");
    // The home has tried once for the other node.
    assert!(origin.asked().len() <= 7, "{}", origin.asked().len());
}

#[test]
fn a_list_of_addresses_names_the_peers_as_well() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let site = format!("origins = [\"{}\"]", origin.url());
    let folder = tempfile::tempdir().unwrap();
    let key = key_file(&folder, "k");
    let first = Node::start(&settings(&redis, &key, "[]"), &site);
    let second = Node::start(&settings(&redis, &key, &format!("[\"{}\"]", first.peer_url())), &site);
    second.await_peers(2, "up");
    let mut command = eyewall();
    command.args(["fleet", "--server"]).arg(second.admin.path());
    let (shown, other) = (run(&mut command, b""), first.peer_url());
    assert!(shown.text().contains(&format!("peer {other}: up\n")), "{}", shown.text());
    assert!(shown.text().contains(": this node\n"), "{}", shown.text());
    let of_peers = (0..20).filter(|number| is_of_peer(&second.get(&format!("/{number}")))).count();
    assert!((1..20).contains(&of_peers), "{of_peers} of 20 have the first node as their home");
    // The first one knows nobody, so it makes all itself.
    assert!((100..120).all(|number| !is_of_peer(&first.get(&format!("/{number}")))));
}

#[test]
fn the_home_passes_the_ids_of_the_request_on() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let site = format!(
        "origins = [\"{}\"]\n[server.tracing]\nrequest_id = \"X-Request-ID\"\nreturn_request_id = true\ntrace_context = true\n",
        origin.url()
    );
    let peers = Peers::start(&redis, 2, &site);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    // One of two nodes is the home of each.
    for number in 0..8 {
        let target = format!("/{number}");
        let reply = peers.nodes[0].server.ask("GET", &target, &[&format!("traceparent: {parent}")]);
        let asked = origin.asked().into_iter().find(|asked| asked.target == target).unwrap();
        assert_eq!((asked.field("x-request-id"), asked.field("traceparent")), (reply.field("x-request-id"), parent));
    }
}
