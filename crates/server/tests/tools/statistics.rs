//! How the volume is doing: a page for people, an object for programs.

use crate::command::Volume;

fn figures(volume: &Volume) -> serde_json::Value {
    serde_json::from_str(volume.run(["stat", "--json"]).text()).unwrap()
}

#[test]
fn people_see_space_index_and_hit_ratio_at_a_glance() {
    let volume = Volume::new();
    volume.put("key", &[b'x'; 1000]);
    let cache = eyewall::Cache::open(volume.path()).unwrap();
    for key in ["key", "key", "key", "nothing"] {
        cache.get(key).unwrap();
    }
    let stat = volume.run(["stat"]);
    assert_eq!(stat.code, 0);
    let text = stat.text();
    assert!(
        text.lines().next().unwrap().ends_with("site.eye   4 MiB, 1 entry; the largest may have 256 KiB"),
        "{text}"
    );
    for part in ["data     [#", "index    [#", "75.0 %   3 of 4 lookups", "users    1 process; "] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert_eq!(text.contains("warning"), cache.storage_warning().is_some(), "{text}");
}

#[test]
fn programs_get_every_figure() {
    let volume = Volume::new();
    volume.put("key", b"value");
    let cache = eyewall::Cache::open(volume.path()).unwrap();
    cache.get("key").unwrap();
    let stat = figures(&volume);
    assert_eq!(stat["entries"], 1);
    assert_eq!(stat["hits"], 1);
    assert_eq!(stat["size_bytes"], 4 << 20);
    let warnings = stat["warnings"].as_array().unwrap();
    match cache.storage_warning() {
        Some(why) => assert!(warnings[0].as_str().unwrap().starts_with(why), "{warnings:?}"),
        None => assert_eq!(warnings.len(), 0),
    }
    assert!(stat["path"].as_str().unwrap().ends_with("site.eye"));
}

#[test]
fn a_look_by_the_tools_is_no_use() {
    let volume = Volume::new();
    volume.put("key", b"value");
    let before = figures(&volume);
    for words in [vec!["get", "key"], vec!["get", "nothing"], vec!["ls"], vec!["stat"]] {
        volume.run(words);
    }
    assert_eq!(figures(&volume), before);
}
