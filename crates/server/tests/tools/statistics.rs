//! How the volume is doing: a page for people, an object for programs.

use crate::command::Volume;

#[test]
fn people_see_space_index_and_hit_ratio_at_a_glance() {
    let volume = Volume::new();
    volume.put("key", &[b'x'; 1000]);
    for key in ["key", "key", "key", "nothing"] {
        volume.run(["get", key]);
    }
    let stat = volume.run(["stat"]);
    assert_eq!(stat.code, 0);
    let text = stat.text();
    assert!(text.lines().next().unwrap().ends_with("site.eye   4 MiB, 1 entry of up to 256 KiB"), "{text}");
    for part in ["data     [#", "index    [#", "75.0 %   3 of 4 lookups"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains("warning"), "{text}");
}

#[test]
fn programs_get_every_figure() {
    let volume = Volume::new();
    volume.put("key", b"value");
    volume.run(["get", "key"]);
    let stat: serde_json::Value = serde_json::from_str(volume.run(["stat", "--json"]).text()).unwrap();
    assert_eq!(stat["entries"], 1);
    assert_eq!(stat["hits"], 1);
    assert_eq!(stat["size_bytes"], 4 << 20);
    assert_eq!(stat["read_only"], false);
    assert_eq!(stat["warnings"], serde_json::json!([]));
    assert!(stat["path"].as_str().unwrap().ends_with("site.eye"));
}
