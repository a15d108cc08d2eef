//! A user who may read the volume but not write it can read everything, and change nothing.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::command::{Volume, program, run};

/// The number of a user that owns no file.
const NOBODY: u32 = 65_534;

/// `eyewall` as a user to whom permissions of files apply. They don't apply to root, as which tests run in containers.
fn eyewall_of_nobody(volume: &Volume, words: &[&str]) -> Command {
    let binary = program();
    let is_root = fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
    let mut command = if is_root {
        // That user may not enter the folder of the binary.
        let copy = volume.folder().join("eyewall");
        if !copy.exists() {
            fs::copy(binary, &copy).unwrap();
        }
        let mut command = Command::new(copy);
        command.uid(NOBODY).gid(NOBODY);
        command
    } else {
        Command::new(binary)
    };
    command.env_remove("EYEWALL_CACHE").arg("--cache").arg(volume.path()).args(words);
    command
}

#[test]
fn reading_works_and_writing_is_refused() {
    let volume = Volume::new();
    volume.put("key", b"value");
    fs::set_permissions(volume.folder(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(volume.path(), Permissions::from_mode(0o444)).unwrap();
    let as_nobody = |words: &[&str]| run(&mut eyewall_of_nobody(&volume, words), b"new");

    let got = as_nobody(&["get", "key"]);
    assert_eq!((got.code, got.text(), got.stderr.as_str()), (0, "value", ""));
    assert_eq!(as_nobody(&["get", "nothing"]).code, 1);
    assert!(as_nobody(&["ls"]).text().contains("  key\n"));
    let stat = as_nobody(&["stat", "--json"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(stat.text()).unwrap()["entries"], 1);

    for words in [&["put", "key"][..], &["rm", "key"]] {
        let ended = as_nobody(words);
        assert_eq!(ended.code, 3, "{words:?}");
        assert!(
            ended.stderr.contains("this user may not write ") && ended.stderr.contains("site.eye"),
            "{words:?}: {}",
            ended.stderr
        );
    }
    assert_eq!(volume.run(["get", "key"]).text(), "value");
}

#[test]
fn a_missing_right_to_read_is_reported() {
    let volume = Volume::new();
    fs::set_permissions(volume.folder(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(volume.path(), Permissions::from_mode(0o000)).unwrap();
    let ended = run(&mut eyewall_of_nobody(&volume, &["get", "key"]), b"");
    assert_eq!((ended.code, ended.text()), (3, ""));
    assert!(ended.stderr.contains("this user may not read ") && ended.stderr.contains("site.eye"), "{}", ended.stderr);
}

#[test]
fn a_missing_right_to_write_the_folder_is_reported_with_advice() {
    let volume = Volume::absent();
    fs::set_permissions(volume.folder(), Permissions::from_mode(0o755)).unwrap();
    let mut command = eyewall_of_nobody(&volume, &["create", "--size", "1M"]);
    fs::set_permissions(volume.folder(), Permissions::from_mode(0o555)).unwrap();
    let ended = run(&mut command, b"");
    fs::set_permissions(volume.folder(), Permissions::from_mode(0o755)).unwrap();
    assert_eq!((ended.code, ended.text()), (3, ""));
    assert!(ended.stderr.contains("may not create a volume in"), "{}", ended.stderr);
}
