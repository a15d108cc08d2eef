use tempfile::TempDir;

use super::*;
use crate::walk::Walk;

/// A file, and the path cache that knows it.
fn ground() -> (TempDir, PathCache) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page.html"), "hello").unwrap();
    (folder, PathCache::watching().unwrap())
}

fn ago(time: Duration) -> Instant {
    Instant::now().checked_sub(time).unwrap()
}

fn path(name: &str) -> FilePath {
    FilePath::parse(name, false).unwrap()
}

fn insert(path_cache: &PathCache, folder: &TempDir, name: &str, since: Instant) {
    let mut walk = Walk::new(path_cache);
    walk.watch(&folder.path().join(path(name).relative()));
    let dependencies = walk.dependencies().unwrap();
    path_cache.insert(&path(name), &Arc::new(Named::Nothing), dependencies, since);
}

#[test]
fn no_path_is_known_longer_than_it_is_trusted() {
    let (folder, path_cache) = ground();
    let since = Instant::now();
    insert(&path_cache, &folder, "/page.html", since);
    assert!(path_cache.lookup(&path("/page.html"), since + TRUST / 2).is_some());
    assert!(path_cache.lookup(&path("/page.html"), since + TRUST).is_none());
}

#[test]
fn a_full_cache_drops_outdated_paths() {
    let (folder, path_cache) = ground();
    let path_cache = PathCache { known_max: 1, ..path_cache };
    let since = Instant::now();
    insert(&path_cache, &folder, "/page.html", since);
    insert(&path_cache, &folder, "/other.html", since);
    assert!(path_cache.lookup(&path("/page.html"), since).is_some());
    assert!(path_cache.lookup(&path("/other.html"), since).is_none());
    let later = since + TRUST;
    insert(&path_cache, &folder, "/other.html", later);
    assert!(path_cache.lookup(&path("/other.html"), later).is_some());
    let state = path_cache.state.read().unwrap();
    assert_eq!(state.known.len(), 1);
}

#[test]
fn missing_names_make_room_if_looks_are_trusted_for_long() {
    let path_cache = PathCache { known_max: 2, ..PathCache::trusting(Duration::from_hours(1)) };
    let since = Instant::now();
    let insert = |name: &str, found, at| path_cache.insert(&path(name), &Arc::new(found), Vec::new(), at);
    let is_known = |name: &str, at| path_cache.lookup(&path(name), at).is_some();
    insert("/none", Named::Nothing, since);
    insert("/folder", Named::Folder, since);
    assert!(is_known("/none", since) && is_known("/folder", since));
    insert("/other", Named::Folder, since);
    assert!(!is_known("/none", since) && is_known("/folder", since) && is_known("/other", since));
    let later = since + TRUST;
    insert("/third", Named::Folder, later);
    assert!(is_known("/folder", later) && is_known("/other", later) && !is_known("/third", later));
}

#[test]
fn missing_names_take_no_more_than_their_limit() {
    const NAMES_MAX: usize = 64;
    let (folder, path_cache) = ground();
    let path_cache = PathCache { names_max: NAMES_MAX, ..path_cache };
    // So late that no sweep of this test finds it outdated.
    let since = Instant::now() + Duration::from_hours(1);
    insert(&path_cache, &folder, "/page.html", since);
    let before = path_cache.counts();
    let mut dependencies = Vec::new();
    for number in 0..8 * NAMES_MAX {
        let mut walk = Walk::new(&path_cache);
        walk.watch(&folder.path().join(format!("none-{number}")));
        // Every second one is dropped at once.
        dependencies.extend(walk.dependencies().filter(|_| number % 2 == 0));
        assert!(path_cache.counts().1 <= NAMES_MAX, "{number}");
    }
    assert!(path_cache.counts().1 > before.1);
    assert!(path_cache.lookup(&path("/page.html"), since).is_some());
    drop(dependencies);
    path_cache.sweep(&mut path_cache.change(), since);
    assert_eq!(path_cache.counts(), before);
    insert(&path_cache, &folder, "/other.html", since);
    assert!(path_cache.lookup(&path("/other.html"), since).is_some(), "there is room again");
}

#[test]
fn names_are_counted_until_the_kernel_reports_them() {
    let (folder, path_cache) = ground();
    let since = Instant::now();
    insert(&path_cache, &folder, "/page.html", since);
    let (_, names) = path_cache.counts();
    insert(&path_cache, &folder, "/none.html", since);
    assert_eq!(path_cache.counts().1, names + 1);
    insert(&path_cache, &folder, "/none.html", since);
    assert_eq!(path_cache.counts().1, names + 1, "once");
    std::fs::write(folder.path().join("none.html"), "").unwrap();
    assert!(path_cache.lookup(&path("/none.html"), since).is_none());
    assert_eq!(path_cache.counts().1, names);
    std::fs::remove_dir_all(folder.path()).unwrap();
    assert!(path_cache.lookup(&path("/page.html"), since).is_none());
    assert!(path_cache.counts().1 < names);
    path_cache.change().watches.invalidate_all(path_cache.inotify.as_ref().unwrap());
    assert_eq!(path_cache.counts(), (0, 0));
}

#[test]
fn a_name_that_is_too_long_is_not_kept() {
    let (folder, path_cache) = ground();
    insert(&path_cache, &folder, "/page.html", Instant::now());
    let before = path_cache.counts();
    let mut walk = Walk::new(&path_cache);
    walk.watch(&folder.path().join("a".repeat(NAME_BYTES_MAX + 1)));
    assert!(walk.dependencies().is_none());
    assert_eq!(path_cache.counts(), before);
}

#[test]
fn after_more_events_than_the_kernel_queues_everything_is_forgotten() {
    let (folder, path_cache) = ground();
    std::fs::write(folder.path().join("other.html"), "").unwrap();
    let since = Instant::now();
    insert(&path_cache, &folder, "/page.html", since);
    insert(&path_cache, &folder, "/none.html", since);
    let queue: usize =
        std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    // Two names in turn, because two equal events in a row become one.
    for _ in 0..=queue / 2 {
        std::fs::hard_link(folder.path().join("other.html"), folder.path().join("link.html")).unwrap();
        std::fs::remove_file(folder.path().join("link.html")).unwrap();
    }
    assert!(path_cache.lookup(&path("/page.html"), since).is_none());
    assert!(path_cache.lookup(&path("/none.html"), since).is_none());
    insert(&path_cache, &folder, "/page.html", since);
    assert!(path_cache.lookup(&path("/page.html"), since).is_some(), "it goes on");
}

#[test]
fn paths_on_shared_file_systems_are_not_known() {
    let path_cache = PathCache::watching().unwrap();
    let mut walk = Walk::new(&path_cache);
    walk.watch("/proc/self/status".as_ref());
    assert!(walk.dependencies().is_none());
}

#[test]
fn watches_are_given_back() {
    let (folder, path_cache) = ground();
    let since = Instant::now();
    insert(&path_cache, &folder, "/page.html", since);
    assert!(path_cache.state.read().unwrap().watches.count() > 1);
    path_cache.sweep(&mut path_cache.change(), since + TRUST);
    assert_eq!(path_cache.state.read().unwrap().watches.count(), 0);
}

#[test]
fn an_unchanged_file_is_known_for_longer() {
    let (folder, path_cache) = ground();
    let path_cache = PathCache { began: ago(Duration::from_mins(1)), ..path_cache };
    let page = path("/page.html");
    insert(&path_cache, &folder, "/page.html", ago(TRUST));
    assert!(path_cache.lookup(&page, Instant::now()).is_none(), "it was looked at too long ago");
    assert!(path_cache.renew(&page, |_| false).is_none());
    assert!(path_cache.lookup(&page, Instant::now()).is_none(), "it is another one");
    // The machine may stop for longer than a result is trusted.
    while path_cache.renew(&page, |_| true).is_none() || path_cache.lookup(&page, Instant::now()).is_none() {}
    std::fs::write(folder.path().join("page.html"), "other").unwrap();
    assert!(path_cache.renew(&page, |_| true).is_none(), "the kernel has told of a change");
    assert!(path_cache.renew(&path("/other.html"), |_| true).is_none(), "nothing is known of it");
}

#[test]
fn one_caller_learns_that_paths_are_due() {
    let (folder, path_cache) = ground();
    let since = Instant::now();
    insert(&path_cache, &folder, "/page.html", since);
    let page = path("/page.html");
    let is_due = |at| path_cache.lookup(&page, at).map(|cached| cached.is_due);
    assert_eq!(is_due(since), Some(false));
    let late = since + TRUST * 3 / 4;
    assert_eq!((is_due(late), is_due(late)), (Some(true), Some(false)));
    path_cache.has_renewed();
    assert_eq!(is_due(late), Some(true));
}

#[test]
fn paths_in_use_are_renewed_together() {
    let (folder, path_cache) = ground();
    let path_cache = PathCache { began: ago(Duration::from_mins(1)), ..path_cache };
    std::fs::write(folder.path().join("other.html"), "hello").unwrap();
    // The machine may stop for longer than a result is trusted.
    loop {
        for name in ["/page.html", "/other.html", "/none.html"] {
            insert(&path_cache, &folder, name, ago(TRUST / 2));
        }
        let now = Instant::now();
        let used = ["/page.html", "/other.html"].map(|name| path_cache.lookup(&path(name), now).is_some());
        if used == [true, true] {
            break;
        }
    }
    let mut due = path_cache.due();
    due.sort_by_key(|path| path.relative().to_owned());
    assert_eq!(due, [path("/other.html"), path("/page.html")], "nobody has asked for the third");
    for path in &due {
        assert!(path_cache.renew(path, |_| true).is_some());
    }
    assert!(path_cache.due().is_empty());
}

#[test]
fn a_path_trusted_for_an_interval_is_neither_due_nor_renewed() {
    let path_cache = PathCache::trusting(TRUST);
    let since = Instant::now();
    path_cache.insert(&path("/page.html"), &Arc::new(Named::Nothing), Vec::new(), since);
    assert!(path_cache.lookup(&path("/page.html"), since + TRUST * 3 / 4).is_some_and(|cached| !cached.is_due));
    assert!(path_cache.renew(&path("/page.html"), |_| true).is_none());
}
