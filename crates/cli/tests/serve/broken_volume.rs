//! A broken volume is no outage: the server renames it at its start, and creates a new one.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Stdio;

use crate::common::client::Reply;
use crate::common::command::eyewall;
use crate::common::origin::Origin;
use crate::common::server::Server;

/// The renamed volumes beside this one.
fn aside(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("pages.eyewall.broken-")).collect()
}

/// Breaks the file of a volume.
fn break_it(path: &Path, how: &str) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    match how {
        "empty" => file.set_len(0).unwrap(),
        "truncated" => file.set_len(1 << 20).unwrap(),
        "overwritten" => file.write_all_at(&[0xa5; 4096], 0).unwrap(),
        // After the magic and the version.
        _ => file.write_all_at(&[0xff; 16], 64).unwrap(),
    }
}

#[test]
fn the_server_starts_with_a_new_one() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages.eyewall");
    assert!(
        eyewall()
            .args(["create", "--size", "8M", "--cache"])
            .arg(&path)
            .stdout(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    for how in ["empty", "truncated", "header", "overwritten"] {
        break_it(&path, how);
        let mut command = eyewall();
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--size", "8M", "--origin", &origin.url(), "--cache"])
            .arg(&path);
        let server = Server::spawn(command.stderr(Stdio::null()));
        server.get("/");
        assert!(server.get_until("/", Reply::is_hit).is_hit(), "{how}");
        let names = aside(folder.path());
        assert_eq!(names.len(), 1, "{how}: one is kept");
        let stat = eyewall().args(["stat", "--cache"]).arg(&path).output().unwrap();
        let told = String::from_utf8(stat.stdout).unwrap() + &String::from_utf8(stat.stderr).unwrap();
        assert!(told.contains(&names[0]), "{told}");
    }
}

#[test]
fn a_broken_volume_without_a_folder_in_its_path_is_kept_too() {
    let folder = tempfile::tempdir().unwrap();
    for how in ["first", "second"] {
        fs::write(folder.path().join("pages.eyewall"), b"").unwrap();
        let mut command = eyewall();
        command.args(["serve", "--listen", "127.0.0.1:0", "--size", "8M", "--root", ".", "--cache", "pages.eyewall"]);
        drop(Server::spawn(command.current_dir(folder.path()).stderr(Stdio::null())));
        let names = aside(folder.path());
        assert_eq!(names.len(), 1, "{how}");
        let stat = eyewall().args(["stat", "--cache", "pages.eyewall"]).current_dir(folder.path()).output().unwrap();
        let told = String::from_utf8(stat.stdout).unwrap() + &String::from_utf8(stat.stderr).unwrap();
        assert!(told.contains(&names[0]), "{told}");
    }
}

#[test]
fn keep_broken_does_not_rename_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages.eyewall");
    fs::write(&path, b"").unwrap();
    let mut command = eyewall();
    command.args(["serve", "--listen", "127.0.0.1:0", "--keep-broken", "--root", "/", "--cache"]).arg(&path);
    let ended = command.output().unwrap();
    assert_eq!(ended.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("is damaged"), "{ended:?}");
    assert!(aside(folder.path()).is_empty());
}
