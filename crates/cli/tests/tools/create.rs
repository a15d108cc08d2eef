//! `create` creates a volume once, with the given size and permissions, and never overwrites it.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use crate::command::Volume;

#[test]
fn the_file_has_the_given_size_and_only_its_owner_has_access() {
    let volume = Volume::sized("1M");
    let file = volume.path().metadata().unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    let stat = volume.run(["stat", "--json"]);
    let stat: serde_json::Value = serde_json::from_str(stat.text()).unwrap();
    assert_eq!(stat["size_bytes"], 1 << 20);
}

#[test]
fn mode_and_group_can_be_given() {
    let volume = Volume::absent();
    let group = volume.folder().metadata().unwrap().gid().to_string();
    assert_eq!(volume.run(["create", "--size", "1M", "--mode", "0660", "--group", &group]).code, 0);
    let file = volume.path().metadata().unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o660);
    assert_eq!(file.gid().to_string(), group);
}

#[test]
fn an_existing_volume_is_not_changed() {
    let volume = Volume::new();
    volume.put("key", b"value");
    let again = volume.run(["create", "--size", "4M"]);
    assert_eq!(again.code, 3);
    assert!(again.stderr.contains("exists already and was not changed"), "{}", again.stderr);
    assert_eq!(volume.run(["get", "key"]).text(), "value");
}

#[test]
fn another_file_at_the_path_is_not_changed() {
    let volume = Volume::absent();
    std::fs::write(volume.path(), b"a letter").unwrap();
    assert_eq!(volume.run(["create", "--size", "4M"]).code, 3);
    assert_eq!(std::fs::read(volume.path()).unwrap(), b"a letter");
}

#[test]
fn sizes_out_of_range_are_refused_with_the_limits() {
    let volume = Volume::absent();
    for words in [vec!["--size", "4K"], vec!["--size", "1M", "--entry-bytes-max", "512K"]] {
        let ended = volume.run(["create"].iter().chain(&words));
        assert_eq!(ended.code, 2, "{words:?}: {}", ended.stderr);
        let told = format!("eyewall: {} is ", words[words.len() - 2..].join(" "));
        let told = told.replace("4K", "4 KiB").replace("--entry-bytes-max 512K is ", "--entry-bytes-max is 512 KiB; ");
        assert!(ended.stderr.starts_with(&told), "{told} in {}", ended.stderr);
        assert!(!volume.path().exists(), "{words:?} left a file behind");
    }
}

#[test]
fn a_missing_folder_is_reported() {
    let volume = Volume::absent();
    let mut command = crate::command::eyewall();
    command.args(["create", "--size", "1M", "--cache"]).arg(volume.folder().join("no/such/folder/site.eye"));
    let ended = crate::command::run(&mut command, b"");
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.starts_with("eyewall: the folder "), "{}", ended.stderr);
    assert!(ended.stderr.contains("doesn't exist; create it first"), "{}", ended.stderr);
}

#[test]
fn a_group_can_be_given_by_name_or_number() {
    let id = rustix::process::getgid().as_raw();
    let groups = std::fs::read_to_string("/etc/group").unwrap();
    let name = groups.lines().find(|line| line.split(':').nth(2) == Some(&id.to_string()));
    let name = name.and_then(|line| line.split(':').next()).map(str::to_owned);
    for group in name.into_iter().chain([id.to_string()]) {
        let volume = Volume::absent();
        let ended = volume.run(["create", "--size", "1M", "--group", &group]);
        assert_eq!(ended.code, 0, "{group}: {}", ended.stderr);
        assert_eq!(std::os::unix::fs::MetadataExt::gid(&std::fs::metadata(volume.path()).unwrap()), id);
    }
    let ended = Volume::absent().run(["create", "--size", "1M", "--group", "no-such-group"]);
    assert_eq!((ended.code, ended.text()), (2, ""));
    assert!(ended.stderr.contains("there is no group `no-such-group`"), "{}", ended.stderr);
}

#[test]
fn the_limit_of_an_entry_has_the_same_name_as_in_a_configuration() {
    for flag in ["--entry-bytes-max", "--entry-max"] {
        assert_eq!(Volume::absent().run(["create", "--size", "1M", flag, "16K"]).code, 0, "{flag}");
    }
}
