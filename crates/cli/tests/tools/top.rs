//! `top` without a terminal writes a page, or an object per update.

use crate::command::Volume;

#[test]
fn without_a_terminal_a_page_is_written() {
    let volume = Volume::new();
    volume.put("/index.html", b"value");
    let cache = eyewall::Cache::open(volume.path()).unwrap();
    cache.get("/index.html").unwrap();
    let top = volume.run(["top", "--interval", "10ms", "--probe-puts"]);
    assert_eq!((top.code, top.stderr.as_str()), (0, ""));
    for part in ["HITS     MISSES", "/index.html", &format!("{:>8} ", std::process::id()), " p99, "] {
        assert!(top.text().contains(part), "{part} in\n{}", top.text());
    }
    assert!(!top.text().contains("not measured"), "{}", top.text());
    assert_eq!(cache.iter().count(), 1, "the probe's own key is gone");
}

#[test]
fn programs_get_an_object_per_update() {
    let volume = Volume::new();
    let top = volume.run(["top", "--interval", "10ms", "--json", "--once"]);
    let look: serde_json::Value = serde_json::from_str(top.text()).unwrap();
    assert_eq!((top.code, look["entries"].as_u64()), (0, Some(0)));
    assert!(look["per_second"]["hits"].is_number() && look["hit_ratio"].is_null() && look["get"].is_null(), "{look}");
}
