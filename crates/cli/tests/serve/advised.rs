//! Advice from a running server: traffic with a known fault gets the right advice, and following it gains what was foretold.

use std::io::{Read as _, Write as _};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::admin::{Socket, json};
use crate::common::client::{connect, send};
use crate::common::command::{eyewall, run};
use crate::common::origin::{Asked, Origin, respond};
use crate::common::server::Server;

/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_mins(1);
/// How much a gain may differ from what was foretold: of all requests.
const TOLERANCE: f64 = 0.03;

fn answer(asked: &Asked) -> (u16, String, Vec<u8>) {
    let cookie = if asked.target.starts_with("/shop/") { "\r\nSet-Cookie: session=1" } else { "" };
    (200, format!("Cache-Control: max-age=600{cookie}"), vec![b'x'; 10_000])
}

/// `SplitMix64`, a pseudorandom number.
fn mix(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The share of hits, and the advice after these requests, by a server with this configuration behind its cookies and its volume.
fn served(cache: &str, site: &str, targets: &[String]) -> (f64, Value) {
    let (socket, origin) = (Socket::new(), Origin::answering(answer));
    let origins = format!("[[site]]\nhosts = [\"test\"]\norigins = [\"{}\"]\n", origin.url());
    let server = Server::configured(&format!("{}{cache}{origins}{site}", socket.table()));
    let hits = targets.iter().filter(|target| server.get(target).is_hit()).count();
    let advice = json(&socket.ask("GET", "/advice", &[], ""));
    let shown = run(eyewall().args(["advise", "--server"]).arg(socket.path()), b"");
    assert_eq!((shown.code, shown.text().contains("WHY")), (0, true), "{}", shown.text());
    let best = advice["remedies"][0]["configuration"].as_str().unwrap_or("no line of the configuration");
    assert!(best.lines().all(|line| shown.text().contains(line)), "{}", shown.text());
    (hits as f64 / targets.len() as f64, advice)
}

/// The remedy of this reason: its lines and its gain.
fn remedy<'a>(advice: &'a Value, reason: &str) -> (&'a str, f64) {
    let remedies = advice["remedies"].as_array().unwrap();
    let found = remedies.iter().find(|remedy| remedy["reason"] == reason);
    let found = found.unwrap_or_else(|| panic!("{reason}: {advice:#}"));
    (found["configuration"].as_str().unwrap(), found["request_gain"].as_f64().unwrap())
}

fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() <= TOLERANCE
}

#[test]
fn parameters_of_trackers_and_cookies_are_found_and_what_helps_gains_what_was_foretold() {
    let targets: Vec<String> = (0..900)
        .map(|number| match mix(number) % 3 {
            0 => format!("/shop/{}", mix(number + 1000) % 20),
            _ => format!("/page/{}?id=7&utm_source={}", mix(number + 1000) % 40, mix(number + 2000) % 8),
        })
        .collect();
    let (before, advice) = served("", "", &targets);
    assert!(is_close(advice["hit_ratio"].as_f64().unwrap(), before), "{before} {advice:#}");
    assert_eq!(advice["sample"]["requests"], targets.len());
    let hottest = &advice["hottest"][0];
    assert!(hottest["path"].as_str().unwrap().starts_with("test/"), "{hottest}");
    assert!(hottest["requests"].as_u64() > advice["hottest"][9]["requests"].as_u64(), "{hottest}");
    assert!(advice["slowest"][0]["first_byte_us"].as_u64() >= advice["slowest"][9]["first_byte_us"].as_u64());
    for (reason, lines) in [
        ("trackers", "[site.key]\nstrip_trackers = true\n"),
        ("set-cookie", "[[site.rule]]\nprefix = [\"/shop/\"]\nstrip_response = [\"Set-Cookie\"]\n"),
    ] {
        let (configuration, gain) = remedy(&advice, reason);
        assert_eq!(configuration, lines);
        let (after, _) = served("", configuration, &targets);
        assert!(gain > 0.2 && is_close(after - before, gain), "{reason}: foretold {gain}, from {before} to {after}");
    }
}

#[test]
fn a_volume_for_half_of_the_pages_is_too_small() {
    // About 4 MiB, with a few favourites.
    let targets: Vec<String> =
        (0..3000).map(|number| format!("/{}", (mix(number) % 400).min(mix(number + 5000) % 400))).collect();
    let (before, advice) = served("[cache]\nsize = \"2M\"\n", "", &targets);
    let (configuration, gain) = remedy(&advice, "evicted");
    let (after, _) = served(configuration, "", &targets);
    assert!(gain > 0.05 && is_close(after - before, gain), "foretold {gain}, from {before} to {after}: {advice:#}");
    let ratios: Vec<f64> =
        advice["sizes"].as_array().unwrap().iter().map(|size| size["hit_ratio"].as_f64().unwrap()).collect();
    assert!(ratios.len() == 4 && ratios.is_sorted() && is_close(ratios[1], before), "{advice:#}");
    assert_eq!(advice["misses"][0]["reason"], "evicted", "{advice:#}");
}

#[test]
fn a_request_that_waited_for_another_one_is_not_called_evicted() {
    let (release, wait_for_release) = channel::<()>();
    let wait_for_release = Mutex::new(wait_for_release);
    let origin = Origin::raw(move |_, stream| {
        respond(stream, 200, "Cache-Control: max-age=60", 8, b"one ");
        let _ = wait_for_release.lock().unwrap().recv();
        let _ = stream.write_all(b"page");
    });
    let socket = Socket::new();
    let site = format!("[[site]]\nhosts = [\"test\"]\norigins = [\"{}\"]\n", origin.url());
    let server = Server::configured(&format!("{}{site}", socket.table()));
    // The second request comes while the response to the first one is under way.
    let clients = [(); 2].map(|()| {
        let mut client = connect(server.address);
        send(&mut client, "GET", "/", &[]);
        client.read_exact(&mut [0; 4]).unwrap();
        client
    });
    release.send(()).unwrap();
    let start = Instant::now();
    let advice = loop {
        let advice = json(&socket.ask("GET", "/advice", &[], ""));
        if advice["sample"]["requests"] == 2 {
            break advice;
        }
        assert!(start.elapsed() < PATIENCE, "still {advice:#}");
    };
    let mut reasons: Vec<&str> =
        advice["misses"].as_array().unwrap().iter().map(|share| share["reason"].as_str().unwrap()).collect();
    reasons.sort_unstable();
    assert_eq!(reasons, ["collapsed", "first"], "{advice:#}");
    drop(clients);
}

#[test]
fn a_server_without_requests_has_nothing_to_say() {
    let (_, advice) = served("", "", &[]);
    assert_eq!((&advice["sample"]["requests"], &advice["sample"]["is_small"]), (&0.into(), &true.into()));
    assert_eq!(advice["remedies"], serde_json::json!([]));
}
