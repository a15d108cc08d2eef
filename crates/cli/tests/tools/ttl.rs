//! A value with a time to live is a hit for that time, and then a miss, which is no error.

use std::time::{Duration, Instant};

use crate::command::{Volume, run};

#[test]
fn the_remaining_time_is_shown() {
    let volume = Volume::new();
    assert_eq!(run(&mut volume.command(["put", "short", "--ttl", "1h"]), b"value").code, 0);
    volume.put("for ever", b"value");
    let list = volume.run(["ls", "--json"]);
    for line in list.text().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let left = line["ttl_left_seconds"].as_f64();
        match line["key"].as_str() {
            Some("short") => assert!(left.is_some_and(|left| 0.0 < left && left <= 3600.0), "{line}"),
            _ => assert_eq!(left, None, "{line}"),
        }
    }
    assert_eq!(list.text().lines().count(), 2);
}

#[test]
fn an_expired_value_is_a_miss() {
    let volume = Volume::new();
    assert_eq!(run(&mut volume.command(["put", "key", "--ttl", "1ms"]), b"value").code, 0);
    let start = Instant::now();
    while volume.run(["get", "key"]).code == 0 {
        assert!(start.elapsed() < Duration::from_mins(1), "it never expires");
    }
    let got = volume.run(["get", "key"]);
    assert_eq!((got.code, got.text(), got.stderr.as_str()), (1, "", ""));
}
