//! An operator has an access log and wants to know how large the cache should be.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::command::{Ended, Volume, eyewall, run};

/// Two hundred pages of 10,000 bytes, each requested three times in turn: 2 MB of entries. Two thirds of the requests can hit.
fn pages() -> String {
    let mut log = String::new();
    for number in 0..600 {
        let _ = writeln!(
            log,
            "192.0.2.1 - - [10/Oct/2025:13:55:36 +0000] \"GET /page?{} HTTP/1.1\" 200 10000 \"-\" \"curl/8\"",
            number % 200
        );
    }
    log
}

fn advise(words: &[&str], log: &[u8]) -> Ended {
    run(eyewall().args(["advise", "-"]).args(words), log)
}

fn json(words: &[&str], log: &[u8]) -> serde_json::Value {
    let ended = advise(&[&["--json"], words].concat(), log);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    serde_json::from_str(ended.text()).unwrap()
}

fn close(value: &serde_json::Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - expected).abs() < 1e-6)
}

#[test]
fn a_volume_that_holds_everything_misses_only_first_requests() {
    let advice = json(&["--size", "8M"], pages().as_bytes());
    assert_eq!((&advice["lines"], &advice["requests"], &advice["keys"]), (&600.into(), &600.into(), &200.into()));
    assert!(close(&advice["sizes"][0]["object_hits"]["ratio"], 2.0 / 3.0), "{advice}");
    assert!(close(&advice["sizes"][0]["byte_hits"]["ratio"], 2.0 / 3.0), "{advice}");
    assert!(close(&advice["object_hits_max_ratio"], 2.0 / 3.0), "{advice}");
    assert!(close(&advice["sizes"][0]["object_hits"]["error"], 0.0), "all keys were replayed: {advice}");
}

#[test]
fn the_default_sizes_reach_from_too_small_to_large_enough() {
    let advice = json(&[], pages().as_bytes());
    let sizes = advice["sizes"].as_array().unwrap();
    let hits = |point: &serde_json::Value| point["object_hits"]["ratio"].as_f64().unwrap();
    assert!(hits(&sizes[0]) < 0.5, "{advice}");
    assert!(close(&sizes.last().unwrap()["object_hits"]["ratio"], 2.0 / 3.0), "{advice}");
    let recommended = advice["recommended_bytes"].as_u64().unwrap();
    assert!((2 << 20..=4 << 20).contains(&recommended), "the pages are 2 MB: {advice}");
    assert!(close(&advice["more"][1]["object_hits_points"], 0.0), "more gains nothing: {advice}");
}

#[test]
fn the_gain_of_a_larger_volume_is_shown() {
    let advice = json(&["--now", "1536K"], pages().as_bytes());
    assert_eq!(advice["base"]["size_bytes"], 1536 << 10);
    assert_eq!(advice["more"][1]["size_bytes"], 3 << 20);
    assert!(advice["more"][1]["object_hits_points"].as_f64().unwrap() > 10.0, "{advice}");
    let text = advise(&["--now", "1536K"], pages().as_bytes());
    assert!(text.text().contains("now          1.5 MiB hits "), "{}", text.text());
    assert!(text.text().contains("2 times      3 MiB gains +"), "{}", text.text());
}

#[test]
fn people_get_a_curve_a_table_and_a_command() {
    let ended = advise(&[], pages().as_bytes());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "no progress where there is no terminal");
    for part in [
        "standard input   600 lines: 600 requests of 5.7 MiB count, for 200 keys\n",
        "one-hit      0.0 % of the keys, 0.0 % of their bytes, were requested only once\n",
        "at best      66.7 % of requests can hit",
        "misses   ",
        "     SIZE      OBJECT HITS ",
        "eyewall create --size ",
        "% of its slots in use; ",
    ] {
        assert!(ended.text().contains(part), "{part} in\n{}", ended.text());
    }
}

#[test]
fn every_format_of_a_log_gives_the_same_figures() {
    let ncsa = pages();
    let (mut plain, mut objects) = (String::new(), String::new());
    for line in ncsa.lines() {
        let target = line.split(' ').nth(6).unwrap();
        let _ = writeln!(plain, "{target} 10000");
        let _ = write!(objects, "{{\"method\":\"GET\",\"request_uri\":\"{target}\",\"status\":\"200\",");
        let _ = writeln!(objects, "\"bytes_sent\":10000}}\r");
    }
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(ncsa.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let twice = [packed.clone(), packed.clone()].concat();
    let figures = |log: &[u8]| {
        let advice = json(&["--size", "8M"], log);
        (advice["requests"].clone(), advice["keys"].clone(), advice["bytes"].clone(), advice["footprint_bytes"].clone())
    };
    let expected = figures(ncsa.as_bytes());
    assert_eq!(figures(plain.as_bytes()), expected);
    assert_eq!(figures(objects.as_bytes()), expected);
    assert_eq!(figures(&packed), expected);
    assert_eq!(figures(&twice).0, 1200, "logs that were packed one after the other");
    assert_eq!(json(&["--format", "ncsa"], ncsa.as_bytes())["keys"], 200);
}

#[test]
fn several_logs_are_one() {
    let volume = Volume::absent();
    let (first, second) = (volume.folder().join("log.1"), volume.folder().join("log"));
    std::fs::write(&first, "a 1000\nb 1000\n").unwrap();
    std::fs::write(&second, "{\"key\":\"a\",\"size\":1000}\n").unwrap();
    let ended = run(eyewall().args(["advise", "--json", "--size", "1M"]).args([&first, &second]), b"");
    let advice: serde_json::Value = serde_json::from_str(ended.text()).unwrap();
    assert_eq!((&advice["requests"], &advice["keys"]), (&3.into(), &2.into()));
    assert!(close(&advice["sizes"][0]["object_hits"]["ratio"], 1.0 / 3.0), "{advice}");
    assert!(close(&advice["one_hit_keys_ratio"], 0.5), "{advice}");
}

#[test]
fn only_responses_that_a_cache_could_give_count() {
    let line = |request: &str, status: u16, bytes: &str| format!("h - - [t] \"{request}\" {status} {bytes}\n");
    let log = [
        line("GET /a HTTP/1.1", 200, "5000"),
        line("GET /a HTTP/1.1", 304, "-"),
        line("GET /a HTTP/1.1", 206, "100"),
        line("GET /a HTTP/1.1", 404, "0"),
        line("HEAD /a HTTP/1.1", 200, "0"),
        line("POST /a HTTP/1.1", 200, "5000"),
        line("GET /a HTTP/1.1", 500, "700"),
        line("-", 408, "-"),
    ];
    let advice = json(&["--size", "1M"], log.concat().as_bytes());
    assert_eq!((&advice["requests"], &advice["bytes"]), (&4.into(), &5100.into()));
    assert_eq!((&advice["other_methods"], &advice["other_statuses"]), (&2.into(), &2.into()));
    assert_eq!(advice["footprint_bytes"], 5048, "as large as the largest answer");
    assert!(close(&advice["sizes"][0]["object_hits"]["ratio"], 0.75), "{advice}");
    assert!(close(&advice["sizes"][0]["byte_hits"]["ratio"], 100.0 / 5100.0), "{advice}");
}

#[test]
fn objects_that_are_too_large_for_an_entry_miss_and_are_reported() {
    let advice = json(&["--size", "1M", "--size", "64M"], "large 100000\nsmall 100\n".repeat(10).as_bytes());
    let (small, large) = (&advice["sizes"][0], &advice["sizes"][1]);
    assert_eq!((&small["too_large_requests"], &large["too_large_requests"]), (&10.into(), &0.into()));
    assert!(close(&small["object_hits"]["ratio"], 0.45) && close(&large["object_hits"]["ratio"], 0.9), "{advice}");
}

#[test]
fn the_curve_can_be_drawn_into_a_file() {
    let volume = Volume::absent();
    let file = volume.folder().join("curve.svg");
    let ended = advise(&["--svg", file.to_str().unwrap()], pages().as_bytes());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let image = std::fs::read_to_string(&file).unwrap();
    for part in
        ["<svg ", "role=\"img\"", "<title id=\"title\">", "<desc id=\"desc\">", "prefers-color-scheme:dark", "</svg>"]
    {
        assert!(image.contains(part), "{part}");
    }
    let ended = advise(&["--svg", "/nowhere/at/all.svg"], pages().as_bytes());
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("/nowhere/at/all.svg"), "{}", ended.stderr);
}
