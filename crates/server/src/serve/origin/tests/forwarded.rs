//! The origin gets true fields about the client, and the right host.

use http::HeaderValue;

use super::super::forwarded::HostHeader;
use super::client::ask;
use super::scripted::{Asked, Origin};
use super::{Settings, front, settings};

const LIES: [&str; 3] = ["X-Forwarded-For: 192.0.2.9", "X-Forwarded-Proto: https", "Forwarded: for=192.0.2.9"];

fn asked(change: impl FnOnce(&mut Settings)) -> (Origin, Asked) {
    let origin = Origin::counting("");
    let mut settings = settings([origin.url().as_str()]);
    change(&mut settings);
    ask(front(settings), "GET", "/", &LIES);
    let asked = origin.asked().remove(0);
    (origin, asked)
}

#[test]
fn the_truth_about_the_client() {
    let (origin, asked) = asked(|_| ());
    assert_eq!(asked.field("host"), origin.address.to_string());
    assert_eq!(asked.field("x-forwarded-for"), "127.0.0.1");
    assert_eq!((asked.field("x-forwarded-proto"), asked.field("x-forwarded-host")), ("http", "test"));
    assert_eq!(asked.field("forwarded"), "for=127.0.0.1;proto=http;host=\"test\"");
}

#[test]
fn another_name() {
    assert_eq!(asked(|settings| settings.host = HostHeader::Client).1.field("host"), "test");
    let fixed = HostHeader::Fixed(HeaderValue::from_static("b.example"));
    assert_eq!(asked(|settings| settings.host = fixed).1.field("host"), "b.example");
}
