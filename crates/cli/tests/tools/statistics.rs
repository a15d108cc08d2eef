//! `stat` shows the state of the volume: a page for people, an object for programs.

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
    assert!(text.lines().next().unwrap().ends_with("site.eye   4 MiB, 1 entry; entries up to 256 KiB"), "{text}");
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
fn reads_by_the_tools_do_not_count_as_uses() {
    let volume = Volume::new();
    volume.put("key", b"value");
    let before = figures(&volume);
    for words in [vec!["get", "key"], vec!["get", "nothing"], vec!["ls"], vec!["stat"]] {
        volume.run(words);
    }
    assert_eq!(figures(&volume), before);
}

#[test]
fn a_tier_is_shown_in_use_and_after_its_processes() {
    let volume = Volume::new();
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let with = |words: &[&str]| {
        let mut command = volume.command(["stat", "--tier-folder", folder.path().to_str().unwrap()]);
        crate::command::run(command.args(words), b"").text().to_owned()
    };
    assert!(!with(&[]).contains("tier "));
    let cache = eyewall::Options::new().tier(1 << 20).tier_folder(folder.path()).open(volume.path()).unwrap();
    let text = with(&[]);
    for part in ["\ntier     ", " of 1 MiB in memory, 0 copies, 1 process\n", "\n         0 hits, 0 void; "] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains("killed"), "{text}");
    let told: serde_json::Value = serde_json::from_str(&with(&["--json"])).unwrap();
    assert_eq!((&told["tier"]["size_bytes"], &told["tier"]["processes"]), (&(1 << 20).into(), &1.into()));
    assert!(figures(&volume)["tier"].is_null(), "it lies elsewhere");

    // As if its processes had been killed: the file is still there.
    let (path, kept) = (cache.tier_path().unwrap().to_owned(), folder.path().join("kept"));
    std::fs::copy(&path, &kept).unwrap();
    drop(cache);
    std::fs::rename(kept, &path).unwrap();
    let text = with(&[]);
    assert!(text.contains(" copies, 0 processes\n") && text.contains(path.to_str().unwrap()), "{text}");
    assert!(text.contains("is the tier of processes that were killed"), "{text}");
}

#[test]
fn a_server_is_asked_alone_and_its_absence_is_reported() {
    let volume = Volume::new();
    let socket = volume.folder().join("admin.sock");
    let ended = crate::command::run(volume.command(["stat", "--server"]).arg(&socket), b"");
    assert_eq!((ended.code, ended.text()), (3, ""));
    assert!(ended.stderr.contains("no answer from a server at"), "{}", ended.stderr);
    for words in [&["--server", "a.sock", "--sizes"][..], &["--server", "http://127.0.0.1"], &["--token-file", "token"]]
    {
        let ended = volume.run(["stat"].iter().chain(words));
        assert_eq!((ended.code, ended.text()), (2, ""), "{words:?}");
    }
}
