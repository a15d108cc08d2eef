//! Nodes ask each other over TLS, and trust one authority.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use super::{Node, is_of_peer, key_file, settings};
use crate::common::authority::Authority;
use crate::common::origin::Origin;
use crate::common::redis::Redis;

/// `[fleet]` of a node that trusts this authority, with a certificate or in clear text.
fn trusting(settings: &str, authority: &Authority, certificate: Option<&Path>) -> String {
    let own = certificate.map(|path| format!("peer_cert_file = \"{}\"\n", path.display())).unwrap_or_default();
    format!("{settings}{own}peer_ca_file = \"{}\"\n", authority.file().display())
}

#[test]
fn nodes_with_and_without_tls_make_each_response_once() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let site = format!("origins = [\"{}\"]", origin.url());
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let certificate = authority.issue("node.pem", &["127.0.0.1"]);
    let base = settings(&redis, &key_file(&folder, "k"), "\"redis\"");
    let start = |certificate| Node::start(&trusting(&base, &authority, certificate), &site);
    let nodes = [Some(&*certificate), Some(&*certificate), None].map(start);
    for node in &nodes {
        node.await_peers(3, "up");
    }
    let urls = nodes.each_ref().map(Node::peer_url);
    assert!(urls[0].starts_with("https://") && urls[1].starts_with("https://") && urls[2].starts_with("http://"));
    let targets: Vec<String> = (0..30).map(|number| format!("/{number}")).collect();
    let replies = targets.iter().flat_map(|target| nodes.iter().map(|node| node.get(target)));
    assert_eq!(replies.filter(is_of_peer).count(), 60);
    assert_eq!(origin.asked().len(), 30);
    // Nobody is answered in clear text.
    let mut stream = TcpStream::connect(urls[0].strip_prefix("https://").unwrap()).unwrap();
    stream.write_all(b"POST /eyewall/peer/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // The other side may reset the connection.
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[test]
fn a_node_with_a_certificate_of_another_authority_is_not_asked() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let site = format!("origins = [\"{}\"]", origin.url());
    let folder = tempfile::tempdir().unwrap();
    let base = settings(&redis, &key_file(&folder, "k"), "\"redis\"");
    let nodes = [(); 2].map(|()| {
        let authority = Authority::new();
        let certificate = authority.issue("node.pem", &["127.0.0.1"]);
        (Node::start(&trusting(&base, &authority, Some(&certificate)), &site), authority)
    });
    for (node, _) in &nodes {
        node.await_peers(1, "unknown");
    }
    for number in 0..10 {
        assert!(nodes.iter().all(|(node, _)| !is_of_peer(&node.get(&format!("/{number}")))));
    }
    assert_eq!(origin.asked().len(), 20);
}

#[test]
fn a_certificate_is_for_the_address_of_its_node_and_a_renewed_one_is_read() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let site = format!("origins = [\"{}\"]", origin.url());
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let base = settings(&redis, &key_file(&folder, "k"), "\"redis\"");
    let wrong = authority.issue("wrong.pem", &["localhost"]);
    let nodes = [&authority.issue("right.pem", &["127.0.0.1"]), &wrong]
        .map(|certificate| Node::start(&trusting(&base, &authority, Some(certificate)), &site));
    nodes[1].await_peers(2, "up");
    nodes[0].await_peers(1, "unknown");
    authority.issue("wrong.pem", &["127.0.0.1"]);
    nodes[0].await_peers(2, "up");
}

#[test]
fn a_reload_reads_which_authorities_nodes_trust() {
    let Some(redis) = Redis::start(&[]) else { return };
    let origin = Origin::counting("Cache-Control: max-age=600");
    let site = format!("origins = [\"{}\"]", origin.url());
    let (folder, old, new) = (tempfile::tempdir().unwrap(), Authority::new(), Authority::new());
    let base = settings(&redis, &key_file(&folder, "k"), "\"redis\"");
    let node = Node::start(&trusting(&base, &old, None), &site);
    let renewed = Node::start(&trusting(&base, &old, Some(&new.issue("node.pem", &["127.0.0.1"]))), &site);
    renewed.await_peers(2, "up");
    let peer = node.await_peer(|peer| peer["why"] == "unreachable");
    assert!(peer["trouble"].as_str().unwrap().contains("certificate"), "{peer}");
    let both = [&old, &new].map(|authority| std::fs::read(authority.file()).unwrap());
    std::fs::write(old.file(), both.concat()).unwrap();
    node.admin.reload();
    node.await_peers(2, "up");
    std::fs::write(old.file(), "nothing").unwrap();
    let refused = node.admin.ask("POST", "/reload", &[], "");
    assert!(refused.status == 422 && refused.text().contains("ca.pem"), "{refused:?}");
    node.await_peers(2, "up");
    std::fs::write(old.file(), &both[0]).unwrap();
    node.admin.reload();
    node.await_peers(1, "down");
}
