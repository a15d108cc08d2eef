use tempfile::TempDir;

use super::*;
use crate::walk::Walk;

/// A file that is there, and the memory that it is known by.
fn ground() -> (TempDir, Memory) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page.html"), "hello").unwrap();
    (folder, Memory::watching().unwrap())
}

fn path(name: &str) -> FilePath {
    FilePath::parse(name, false).unwrap()
}

fn remember(memory: &Memory, folder: &TempDir, name: &str, since: Instant) {
    let mut walk = Walk::new(memory);
    walk.watch(&folder.path().join(path(name).relative()));
    let premises = walk.premises().unwrap();
    memory.remember(&path(name), &Arc::new(Named::Nothing), premises, since);
}

#[test]
fn nothing_is_known_for_longer_than_it_is_trusted() {
    let (folder, memory) = ground();
    let since = Instant::now();
    remember(&memory, &folder, "/page.html", since);
    assert!(memory.recall(&path("/page.html"), since + TRUST / 2).is_some());
    assert!(memory.recall(&path("/page.html"), since + TRUST).is_none());
}

#[test]
fn a_full_memory_makes_room_of_what_is_known_no_longer() {
    let (folder, memory) = ground();
    let memory = Memory { known_max: 1, ..memory };
    let since = Instant::now();
    remember(&memory, &folder, "/page.html", since);
    remember(&memory, &folder, "/other.html", since);
    assert!(memory.recall(&path("/page.html"), since).is_some());
    assert!(memory.recall(&path("/other.html"), since).is_none());
    let later = since + TRUST;
    remember(&memory, &folder, "/other.html", later);
    assert!(memory.recall(&path("/other.html"), later).is_some());
    let state = memory.state.read().unwrap();
    assert_eq!(state.known.len(), 1);
}

#[test]
fn where_looks_are_trusted_for_long_names_that_are_not_there_make_room() {
    let memory = Memory { known_max: 2, ..Memory::trusting(Duration::from_hours(1)) };
    let since = Instant::now();
    let remember = |name: &str, found, at| memory.remember(&path(name), &Arc::new(found), Vec::new(), at);
    let is_known = |name: &str, at| memory.recall(&path(name), at).is_some();
    remember("/none", Named::Nothing, since);
    remember("/folder", Named::Folder, since);
    assert!(is_known("/none", since) && is_known("/folder", since));
    remember("/other", Named::Folder, since);
    assert!(!is_known("/none", since) && is_known("/folder", since) && is_known("/other", since));
    let later = since + TRUST;
    remember("/third", Named::Folder, later);
    assert!(is_known("/folder", later) && is_known("/other", later) && !is_known("/third", later));
}

#[test]
fn names_that_are_not_there_take_no_more_than_their_room() {
    const NAMES_MAX: usize = 64;
    let (folder, memory) = ground();
    let memory = Memory { names_max: NAMES_MAX, ..memory };
    // So late that no sweep of this test finds it too old.
    let since = Instant::now() + Duration::from_hours(1);
    remember(&memory, &folder, "/page.html", since);
    let before = memory.counts();
    let mut premises = Vec::new();
    for number in 0..8 * NAMES_MAX {
        let mut walk = Walk::new(&memory);
        walk.watch(&folder.path().join(format!("none-{number}")));
        // Every other one is given up at once.
        premises.extend(walk.premises().filter(|_| number % 2 == 0));
        assert!(memory.counts().1 <= NAMES_MAX, "{number}");
    }
    assert!(memory.counts().1 > before.1);
    assert!(memory.recall(&path("/page.html"), since).is_some());
    drop(premises);
    memory.sweep(&mut memory.change(), since);
    assert_eq!(memory.counts(), before);
    remember(&memory, &folder, "/other.html", since);
    assert!(memory.recall(&path("/other.html"), since).is_some(), "there is room again");
}

#[test]
fn names_are_counted_until_the_kernel_tells_of_them() {
    let (folder, memory) = ground();
    let since = Instant::now();
    remember(&memory, &folder, "/page.html", since);
    let (_, names) = memory.counts();
    remember(&memory, &folder, "/none.html", since);
    assert_eq!(memory.counts().1, names + 1);
    remember(&memory, &folder, "/none.html", since);
    assert_eq!(memory.counts().1, names + 1, "once");
    std::fs::write(folder.path().join("none.html"), "").unwrap();
    assert!(memory.recall(&path("/none.html"), since).is_none());
    assert_eq!(memory.counts().1, names);
    std::fs::remove_dir_all(folder.path()).unwrap();
    assert!(memory.recall(&path("/page.html"), since).is_none());
    assert!(memory.counts().1 < names);
    memory.change().watches.void_all(memory.inotify.as_ref().unwrap());
    assert_eq!(memory.counts(), (0, 0));
}

#[test]
fn a_name_that_is_too_long_is_not_kept() {
    let (folder, memory) = ground();
    remember(&memory, &folder, "/page.html", Instant::now());
    let before = memory.counts();
    let mut walk = Walk::new(&memory);
    walk.watch(&folder.path().join("a".repeat(NAME_BYTES_MAX + 1)));
    assert!(walk.premises().is_none());
    assert_eq!(memory.counts(), before);
}

#[test]
fn after_more_events_than_the_kernel_queues_everything_is_forgotten() {
    let (folder, memory) = ground();
    std::fs::write(folder.path().join("other.html"), "").unwrap();
    let since = Instant::now();
    remember(&memory, &folder, "/page.html", since);
    remember(&memory, &folder, "/none.html", since);
    let queue: usize =
        std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    // Two in turn, since the same twice is one event.
    for _ in 0..=queue / 2 {
        std::fs::hard_link(folder.path().join("other.html"), folder.path().join("link.html")).unwrap();
        std::fs::remove_file(folder.path().join("link.html")).unwrap();
    }
    assert!(memory.recall(&path("/page.html"), since).is_none());
    assert!(memory.recall(&path("/none.html"), since).is_none());
    remember(&memory, &folder, "/page.html", since);
    assert!(memory.recall(&path("/page.html"), since).is_some(), "it goes on");
}

#[test]
fn what_others_change_behind_the_kernels_back_is_not_known() {
    let memory = Memory::watching().unwrap();
    let mut walk = Walk::new(&memory);
    walk.watch("/proc/self/status".as_ref());
    assert!(walk.premises().is_none());
}

#[test]
fn watches_are_given_back() {
    let (folder, memory) = ground();
    let since = Instant::now();
    remember(&memory, &folder, "/page.html", since);
    assert!(memory.state.read().unwrap().watches.count() > 1);
    memory.sweep(&mut memory.change(), since + TRUST);
    assert_eq!(memory.state.read().unwrap().watches.count(), 0);
}

#[test]
fn a_file_that_is_the_same_is_known_for_longer() {
    let (folder, memory) = ground();
    let memory = Memory { began: Instant::now().checked_sub(Duration::from_mins(1)).unwrap(), ..memory };
    let page = path("/page.html");
    remember(&memory, &folder, "/page.html", Instant::now().checked_sub(TRUST).unwrap());
    assert!(memory.recall(&page, Instant::now()).is_none(), "it was looked at too long ago");
    assert!(memory.renew(&page, |_| false).is_none());
    assert!(memory.recall(&page, Instant::now()).is_none(), "it is another one");
    // The machine may stand still for longer than that is good for.
    while memory.renew(&page, |_| true).is_none() || memory.recall(&page, Instant::now()).is_none() {}
    std::fs::write(folder.path().join("page.html"), "other").unwrap();
    assert!(memory.renew(&page, |_| true).is_none(), "the kernel has told of a change");
    assert!(memory.renew(&path("/other.html"), |_| true).is_none(), "nothing is known of it");
}

#[test]
fn one_is_told_that_something_is_due() {
    let (folder, memory) = ground();
    let since = Instant::now();
    remember(&memory, &folder, "/page.html", since);
    let page = path("/page.html");
    let is_due = |at| memory.recall(&page, at).map(|recalled| recalled.is_due);
    assert_eq!(is_due(since), Some(false));
    let late = since + TRUST * 3 / 4;
    assert_eq!((is_due(late), is_due(late)), (Some(true), Some(false)));
    assert!(memory.renew(&page, |_| true).is_some());
    let later = late + TRUST * 9 / 10;
    assert!(is_due(later).is_none_or(|is_due| is_due), "once more, unless it is over by then");
}

#[test]
fn what_is_trusted_for_an_interval_is_neither_due_nor_renewed() {
    let memory = Memory::trusting(TRUST);
    let since = Instant::now();
    memory.remember(&path("/page.html"), &Arc::new(Named::Nothing), Vec::new(), since);
    assert!(memory.recall(&path("/page.html"), since + TRUST * 3 / 4).is_some_and(|recalled| !recalled.is_due));
    assert!(memory.renew(&path("/page.html"), |_| true).is_none());
}
