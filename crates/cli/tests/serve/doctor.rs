//! The doctor finds what is wrong with a configuration's places and origins, and says what to change.

use std::net::TcpListener;

use serde_json::Value;

use crate::common::command::{Ended, eyewall, run};
use crate::common::origin::Origin;
use crate::common::server::Site;

/// The doctor's words about a configuration.
fn examined(site: &Site, text: &str, more: &[&str]) -> Ended {
    site.write("eyewall.toml", text);
    run(eyewall().arg("doctor").arg(site.path().join("eyewall.toml")).args(more), b"")
}

#[test]
fn what_is_well_is_said_and_an_origin_that_can_be_cached_is_praised() {
    let site = Site::new();
    let origin = Origin::answering(|_| (200, "Cache-Control: max-age=60".to_owned(), b"page".to_vec()));
    let text = format!("[cache]\nsize = \"8M\"\n[[site]]\norigins = [\"{}\"]\n", origin.url());
    let ended = examined(&site, &text, &[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    for words in
        ["kernel: Linux", "descriptors", "volume: it is in memory", "answers 200 in", "fresh for 60 s", "0 faults"]
    {
        assert!(ended.text().contains(words), "{words} is missing in\n{}", ended.text());
    }
    assert_eq!(origin.asked().len(), 1);
}

#[test]
fn a_front_page_that_is_not_stored_comes_with_advice() {
    for (fields, rules, words) in [
        ("X: y", "", "not stored (no-lifetime)"),
        ("Cache-Control: private, max-age=9", "", "not stored (private)"),
        ("Cache-Control: max-age=9\r\nSet-Cookie: a=b", "", "not stored (set-cookie)"),
        ("Cache-Control: max-age=9\r\nVary: *", "", "not stored (vary)"),
        ("X: y", "preset = \"blog\"\n", "is stored, and fresh for"),
        ("X: y", "[[site.rule]]\nname = \"none\"\nprefix = [\"/\"]\nbypass = true\n", "the rule none keeps"),
        ("X: y", "[[site.rule]]\nprefix = [\"/\"]\nno_store = true\n", "(no_store)"),
        ("Cache-Control: max-age=9\r\nDate: Thu, 01 Jan 2015 00:00:00 GMT", "", "clock"),
    ] {
        let site = Site::new();
        let origin =
            Origin::answering(move |_| (200, format!("Content-Type: text/html\r\n{fields}"), b"page".to_vec()));
        let ended = examined(&site, &format!("[[site]]\norigins = [\"{}\"]\n{rules}", origin.url()), &[]);
        assert_eq!(ended.code, 0, "{}", ended.text());
        assert!(ended.text().contains(words), "{words} is missing in\n{}", ended.text());
    }
}

#[test]
fn faults_end_with_a_code_of_their_own() {
    let site = Site::new();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let broken = Origin::answering(|_| (503, "X: y".to_owned(), Vec::new()));
    let text = format!(
        "[cache]\npath = \"{}/x.eye\"\n[[site]]\norigins = [\"http://{gone}\", \"{}\"]\n",
        site.path().display(),
        broken.url()
    );
    site.write("x.eye", "no volume");
    let ended = examined(&site, &text, &["--json"]);
    assert_eq!(ended.code, 6, "{}", ended.stderr);
    let report: Value = serde_json::from_str(ended.text()).unwrap();
    let faults = report["findings"].as_array().unwrap().iter().filter(|finding| finding["state"] == "fault");
    let faults: Vec<String> =
        faults.map(|finding| finding["words"].to_string() + &finding["advice"].to_string()).collect();
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(
        faults[0].contains("x.eye") && faults[1].contains("no response") && faults[2].contains("503"),
        "{faults:?}"
    );

    let ended = examined(&site, "[[site]]\nroots = []\n", &[]);
    assert_eq!(ended.code, 2, "{}", ended.text());
    assert!(ended.stderr.contains("roots"), "{}", ended.stderr);
}
