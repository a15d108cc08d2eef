//! The users of a web server share a volume. It is created with the requested mode and group, whatever the umask is.
//! Users without access get an error that says what would help.

#![cfg(test)]

mod common;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use common::{Child, disk_folder, is_root, listen, play, say};
use eyewall::{Cache, Error, Options};

/// Any user except root.
const USER: u32 = 65_534;
const GROUP: u32 = 4711;

#[test]
fn child() {
    play(&[("member", member), ("stranger", stranger), ("poor creator", poor_creator)]);
}

fn become_user(group: u32) {
    // SAFETY: no pointers but an empty list.
    unsafe {
        assert_eq!(libc::setgroups(0, std::ptr::null()), 0);
        assert_eq!(libc::setgid(group), 0);
        assert_eq!(libc::setuid(USER), 0);
    }
}

fn open_folder() -> tempfile::TempDir {
    let folder = disk_folder();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    folder
}

/// Whether a stranger can reach a folder at all, since a home folder above it may be closed.
fn is_reachable(folder: &Path) -> bool {
    let open = |folder: &Path| folder.metadata().is_ok_and(|data| data.mode() & 0o001 != 0);
    let reachable = folder.ancestors().all(open);
    if !reachable {
        println!("skipped: strangers can't reach {}", folder.display());
    }
    reachable
}

#[test]
fn a_volume_has_its_mode_whatever_the_umask() {
    let _turn = common::turn();
    let folder = open_folder();
    // SAFETY: no pointers are involved, and the other tests of this file don't depend on it.
    let before = unsafe { libc::umask(0o077) };
    for mode in [0o600, 0o660, 0o644, 0o666] {
        let path = folder.path().join(format!("{mode:o}"));
        Options::new().size(512 << 10).mode(mode).open(&path).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, mode);
    }
    Options::new().size(512 << 10).open(folder.path().join("default")).unwrap();
    assert_eq!(folder.path().join("default").metadata().unwrap().mode() & 0o7777, 0o600);
    // SAFETY: as above.
    unsafe { libc::umask(before) };
}

fn member(arguments: &[&str]) {
    become_user(GROUP);
    let cache = Cache::open(arguments[0]).unwrap();
    assert_eq!(&*cache.get("root's").unwrap().unwrap(), b"value");
    cache.put("member's", "value").unwrap();
    say("attached");
    listen();
}

#[test]
fn members_of_the_group_share_it() {
    let _turn = common::turn();
    if !is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let folder = open_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(512 << 10).mode(0o660).group(GROUP).open(&path).unwrap();
    assert_eq!((path.metadata().unwrap().gid(), path.metadata().unwrap().mode() & 0o777), (GROUP, 0o660));
    if !is_reachable(folder.path()) {
        return;
    }
    cache.put("root's", "value").unwrap();
    let mut member = Child::start("member", &[path.to_str().unwrap()]);
    member.expect("attached");
    assert_eq!(cache.stats().unwrap().processes, 2);
    assert_eq!(&*cache.get("member's").unwrap().unwrap(), b"value");
    member.tell("leave");
    member.finish();
}

/// May read the volume but not write it, may not read the second volume, and may not create a third one.
fn stranger(arguments: &[&str]) {
    let folder = Path::new(arguments[0]);
    become_user(USER);
    let error = Cache::open(folder.join("readable")).unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
    assert!(error.to_string().contains("open it with read_only(true), or as a user who may write it"), "{error}");
    let cache = Options::new().read_only(true).open(folder.join("readable")).unwrap();
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"value");
    let error = cache.put("key", "other").unwrap_err();
    assert!(
        matches!(error, Error::ReadOnly { advice: "this cache was opened read-only; open it for writing", .. }),
        "{error:?}"
    );
    let error = Options::new().read_only(true).open(folder.join("closed")).unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. } | Error::Io { .. }), "{error:?}");
    let error = Options::new().size(512 << 10).open(folder.join("new")).unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
    assert!(error.to_string().contains("choose another directory"), "{error}");
}

#[test]
fn strangers_get_messages_that_help() {
    let _turn = common::turn();
    let folder = open_folder();
    if !is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    if !is_reachable(folder.path()) {
        return;
    }
    let small = Options::new().size(512 << 10);
    small.clone().mode(0o644).open(folder.path().join("readable")).unwrap().put("key", "value").unwrap();
    small.open(folder.path().join("closed")).unwrap();
    let before = std::fs::read(folder.path().join("readable")).unwrap();
    Child::start("stranger", &[folder.path().to_str().unwrap()]).finish();
    assert!(std::fs::read(folder.path().join("readable")).unwrap() == before, "a reader changes nothing");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

fn poor_creator(arguments: &[&str]) {
    become_user(USER);
    let options = Options::new().size(512 << 10).group(GROUP);
    let error = options.open(Path::new(arguments[0]).join("volume")).unwrap_err();
    assert!(error.to_string().contains("it can't be given to group 4711"), "{error}");
}

#[test]
fn a_foreign_group_is_an_error_and_leaves_nothing() {
    let _turn = common::turn();
    if !is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let folder = open_folder();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    if !is_reachable(folder.path()) {
        return;
    }
    Child::start("poor creator", &[folder.path().to_str().unwrap()]).finish();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
