//! An operator looks at details: stripes, processes, sizes, and the map.

use crate::command::Volume;

fn some() -> Volume {
    let volume = Volume::new();
    for (key, bytes) in [("one", 100), ("two", 120), ("three", 5000)] {
        volume.put(key, &vec![b'x'; bytes]);
    }
    volume
}

fn json(volume: &Volume, words: &[&str]) -> serde_json::Value {
    serde_json::from_str(volume.run(words).text()).unwrap()
}

#[test]
fn parts_are_shown_on_request() {
    let volume = some();
    let _cache = eyewall::Cache::open(volume.path()).unwrap();
    let plain = volume.run(["stat"]);
    assert!(!plain.text().contains("STRIPE") && !plain.text().contains("PROCESS"), "{}", plain.text());
    let all = volume.run(["stat", "--stripes", "--processes", "--sizes"]);
    let text = all.text();
    for part in ["STRIPE  RING", "     0  small", "        main", &format!("{:>8}  ", std::process::id())] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(text.contains("    128 B             2    ") && text.contains("██████████"), "{text}");
    assert!(text.contains("      4 KiB             1   ") || text.contains("4 KiB             1"), "{text}");
    let details = &json(&volume, &["stat", "--json", "--sizes"])["details"];
    assert!(
        details["stripes"].is_null() && details["sizes"].as_array().is_some_and(|sizes| sizes.len() == 6),
        "{details}"
    );
    assert!(json(&volume, &["stat", "--json"])["details"].is_null());
}

#[test]
fn the_map_is_a_picture_an_image_or_an_object() {
    let volume = some();
    let map = volume.run(["map"]);
    let rows: Vec<&str> = map.text().lines().collect();
    assert_eq!(map.code, 0);
    assert!(rows[1].starts_with("  0 small ") && rows[2].contains(" main "), "{rows:?}");
    assert!(rows[1].chars().count() == 80 && rows[1].ends_with('='), "{rows:?}");
    assert!(rows[3..].iter().any(|row| row.contains("free")), "{rows:?}");
    let rings = json(&volume, &["map", "--json"]);
    let rings = rings["rings"].as_array().unwrap().iter();
    let extents = rings.flat_map(|ring| ring["extents"].as_array().unwrap()).filter(|extent| extent["kind"] != "index");
    let bytes: u64 = extents.map(|extent| extent["bytes"].as_u64().unwrap()).sum();
    assert_eq!(Some(bytes), json(&volume, &["stat", "--json"])["data_bytes"].as_u64());
    let file = volume.folder().join("map.svg");
    assert_eq!(volume.run(["map", "--svg", file.to_str().unwrap()]).text(), "");
    let svg = std::fs::read_to_string(file).unwrap();
    assert!(svg.contains("prefers-color-scheme:dark") && svg.contains("<title ") && svg.contains("<desc "));
    assert_eq!(volume.run(["map", "--svg", "/nowhere/map.svg"]).code, 3);
}
