//! The cached look-ups of a folder are forgotten when the folder changes, and not before.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::root::Symlinks;

/// A folder tree. `current`, a link to `site`, is the root.
struct Ground {
    top: TempDir,
    tree: Tree,
}

impl Ground {
    fn new() -> Self {
        Self::with(FolderOptions { precompressed: true, ..FolderOptions::default() })
    }

    fn with(settings: FolderOptions) -> Self {
        let top = tempfile::tempdir().unwrap();
        for folder in ["site/a", "site/b", "next/a", "elsewhere"] {
            fs::create_dir_all(top.path().join(folder)).unwrap();
        }
        for file in ["site/a/page.html", "site/b/target.html", "site/b/index.html", "next/a/page.html"] {
            fs::write(top.path().join(file), "first").unwrap();
        }
        symlink("../b/target.html", top.path().join("site/a/link.html")).unwrap();
        symlink("site", top.path().join("current")).unwrap();
        let root = Root::open(&top.path().join("current")).unwrap();
        Self { tree: Tree::new(root, settings, Freshness::Watched), top }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.top.path().join(path)
    }

    /// Looks up a target when everything there is old enough to be remembered.
    fn look(&self, target: &str) -> Look {
        self.tree.look(&path(target), SystemTime::now() + Duration::from_hours(1), &Counters::default()).unwrap()
    }

    fn is_known(&self, target: &str) -> bool {
        self.tree.lookup(&path(target)).is_some()
    }

    /// The codings of the representations of a file; empty if there is no file.
    fn codings(&self, target: &str) -> Vec<Option<Coding>> {
        match &*self.look(target).named {
            Named::File(representations) => {
                representations.iter().map(|representation| representation.coding).collect()
            }
            Named::Folder | Named::Nothing => Vec::new(),
        }
    }

    fn append(&self, name: &str) {
        File::options().append(true).open(self.at(name)).unwrap().write_all(b"more").unwrap();
    }
}

fn path(target: &str) -> FilePath {
    FilePath::parse(target, true).unwrap()
}

/// Makes a change that has to make the cache forget a target.
#[track_caller]
fn forgets(target: &str, change: impl FnOnce(&Ground)) {
    let ground = Ground::new();
    // A name that the folder doesn't know.
    fs::hard_link(ground.at("site/a/page.html"), ground.at("elsewhere/other-name")).unwrap();
    // A look takes less time than its result is trusted, unless the machine stops for a while.
    loop {
        ground.look(target);
        if ground.is_known(target) {
            break;
        }
    }
    change(&ground);
    assert!(!ground.is_known(target), "{target}");
}

#[test]
fn a_change_of_the_file() {
    let page = "/a/page.html";
    forgets(page, |ground| fs::write(ground.at("site/a/page.html"), "again").unwrap());
    forgets(page, |ground| ground.append("site/a/page.html"));
    forgets(page, |ground| {
        File::options().write(true).open(ground.at("site/a/page.html")).unwrap().set_len(2).unwrap();
    });
    forgets(page, |ground| ground.append("elsewhere/other-name"));
    forgets(page, |ground| {
        fs::set_permissions(ground.at("site/a/page.html"), Permissions::from_mode(0o600)).unwrap();
    });
    forgets(page, |ground| {
        let file = File::options().write(true).open(ground.at("site/a/page.html")).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    });
}

#[test]
fn a_change_of_its_name() {
    let page = "/a/page.html";
    forgets(page, |ground| fs::remove_file(ground.at("site/a/page.html")).unwrap());
    forgets(page, |ground| fs::rename(ground.at("site/a/page.html"), ground.at("site/a/gone")).unwrap());
    forgets(page, |ground| fs::rename(ground.at("next/a/page.html"), ground.at("site/a/page.html")).unwrap());
}

#[test]
fn a_change_of_the_folders_above() {
    let page = "/a/page.html";
    forgets(page, |ground| fs::rename(ground.at("site/a"), ground.at("site/c")).unwrap());
    forgets(page, |ground| fs::rename(ground.at("site"), ground.at("old")).unwrap());
    forgets(page, |ground| fs::remove_dir_all(ground.at("site/a")).unwrap());
    forgets(page, |ground| {
        symlink("next", ground.at("new")).unwrap();
        fs::rename(ground.at("new"), ground.at("current")).unwrap();
    });
    forgets(page, |ground| {
        fs::set_permissions(ground.at("site/a"), Permissions::from_mode(0o700)).unwrap();
    });
}

#[test]
fn a_change_behind_a_link() {
    let link = "/a/link.html";
    forgets(link, |ground| ground.append("site/b/target.html"));
    forgets(link, |ground| fs::remove_file(ground.at("site/b/target.html")).unwrap());
    forgets(link, |ground| fs::remove_file(ground.at("site/a/link.html")).unwrap());
    forgets(link, |ground| fs::rename(ground.at("site/b"), ground.at("site/c")).unwrap());
    // The step upwards from the link then leads to another folder.
    forgets(link, |ground| fs::rename(ground.at("site/a"), ground.at("elsewhere/a")).unwrap());
}

#[test]
fn a_new_file_where_none_was() {
    forgets("/a/none.html", |ground| fs::write(ground.at("site/a/none.html"), "").unwrap());
    forgets("/a/none.html", |ground| symlink("page.html", ground.at("site/a/none.html")).unwrap());
    forgets("/c/d/none.html", |ground| fs::create_dir(ground.at("site/c")).unwrap());
    forgets("/c/d/none.html", |ground| fs::rename(ground.at("elsewhere"), ground.at("site/c")).unwrap());
    forgets("/a/page.html/below", |ground| fs::remove_file(ground.at("site/a/page.html")).unwrap());
    forgets("/a/", |ground| fs::write(ground.at("site/a/index.html"), "").unwrap());
    forgets("/a", |ground| fs::write(ground.at("site/a/index.html"), "").unwrap());
    forgets("/b", |ground| fs::remove_file(ground.at("site/b/index.html")).unwrap());
    forgets("/a/page.html", |ground| fs::write(ground.at("site/a/page.html.gz"), "").unwrap());
}

#[test]
fn a_change_beside_the_file_is_no_change() {
    let ground = Ground::new();
    loop {
        ground.look("/a/page.html");
        fs::write(ground.at("site/a/other.html"), "").unwrap();
        ground.append("site/a/other.html");
        fs::create_dir(ground.at("site/c")).unwrap();
        fs::rename(ground.at("site/c"), ground.at("site/d")).unwrap();
        if ground.is_known("/a/page.html") {
            return;
        }
        // A slow machine may once have taken longer than a result is trusted.
        fs::remove_dir(ground.at("site/d")).unwrap();
    }
}

#[test]
fn a_file_that_has_just_changed_is_not_remembered() {
    let ground = Ground::new();
    ground.tree.look(&path("/a/page.html"), SystemTime::now(), &Counters::default()).unwrap();
    assert!(!ground.is_known("/a/page.html"));
}

#[test]
fn a_request_after_a_write_never_gets_the_old_state() {
    const WRITES: u64 = 20_000;
    let ground = Ground::new();
    fs::write(ground.at("site/grows"), "").unwrap();
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = File::options().append(true).open(ground.at("site/grows")).unwrap();
            for bytes in 1..=WRITES {
                file.write_all(b"x").unwrap();
                written.store(bytes, Ordering::Release);
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let target = path("/grows");
                let mut before = 0;
                while before < WRITES {
                    before = written.load(Ordering::Acquire);
                    let look = ground.tree.lookup(&target).unwrap_or_else(|| ground.look("/grows"));
                    let Named::File(representations) = &*look.named else { panic!("it is there") };
                    assert!(
                        representations[0].version.bytes >= before,
                        "{} of {before}",
                        representations[0].version.bytes
                    );
                }
            });
        }
    });
}

#[test]
fn long_paths_are_not_kept() {
    let ground = Ground::new();
    let kept = || ground.tree.path_cache.as_ref().unwrap().counts();
    let name = |bytes| "a".repeat(bytes);
    for long in [
        format!("/{}", name(60 << 10)),
        format!("/{}", name(256)),
        format!("/a/{}/", name(256)),
        format!("/a/{}", "b/".repeat(30 << 10)),
        format!("/{}/{}/b", name(255), name(255)),
    ] {
        let look = ground.look(&long);
        assert!(matches!(*look.named, Named::Nothing));
        assert!(!ground.is_known(&long));
        assert_eq!(kept(), (0, 0), "of {} bytes", long.len());
    }
    for short in [format!("/{}", name(255)), format!("/{}/{}/", name(255), name(255))] {
        loop {
            ground.look(&short);
            if ground.is_known(&short) {
                break;
            }
        }
    }
    assert_ne!(kept(), (0, 0));
}

#[test]
fn links_are_not_followed_if_the_options_forbid_it() {
    let ground = Ground::with(FolderOptions { symlinks: Symlinks::None, ..FolderOptions::default() });
    assert_eq!(ground.codings("/a/link.html"), []);
    assert_eq!(ground.codings("/a/page.html"), [None], "the root itself is a link");
    symlink("a", ground.at("site/e")).unwrap();
    assert_eq!(ground.codings("/e/page.html"), []);
}

#[test]
fn the_first_index_that_is_a_file_stands_for_its_folder() {
    let index = ["index.htm", "index.html"].map(str::to_owned).to_vec();
    let ground = Ground::with(FolderOptions { index, ..FolderOptions::default() });
    let shown = || match &*ground.look("/b/").named {
        Named::File(representations) => representations[0].below.clone(),
        Named::Folder | Named::Nothing => PathBuf::new(),
    };
    assert_eq!(shown(), Path::new("b/index.html"));
    fs::create_dir(ground.at("site/b/index.htm")).unwrap();
    assert_eq!(shown(), Path::new("b/index.html"), "a folder of this name is none");
    fs::remove_dir(ground.at("site/b/index.htm")).unwrap();
    fs::write(ground.at("site/b/index.htm"), "").unwrap();
    assert_eq!(shown(), Path::new("b/index.htm"));
}

#[test]
fn precompressed_files_count_while_they_are_not_older() {
    let ground = Ground::new();
    let modified = |name: &str, hours| {
        let file = File::options().create(true).truncate(false).write(true).open(ground.at(name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_hours(hours)).unwrap();
    };
    modified("site/a/page.html", 10);
    modified("site/a/page.html.br", 11);
    modified("site/a/page.html.zst", 10);
    modified("site/a/page.html.gz", 9);
    modified("site/a/page.html.gz.br", 20);
    modified("site/a/lonely.html.gz", 20);
    assert_eq!(ground.codings("/a/page.html"), [None, Some(Coding::Brotli), Some(Coding::Zstandard)]);
    modified("site/a/page.html.gz", 10);
    fs::remove_file(ground.at("site/a/page.html.br")).unwrap();
    fs::create_dir(ground.at("site/a/page.html.br")).unwrap();
    assert_eq!(ground.codings("/a/page.html"), [None, Some(Coding::Zstandard), Some(Coding::Gzip)]);
    assert_eq!(ground.codings("/a/page.html.gz"), [None], "what is compressed is not compressed again");
    assert_eq!(ground.codings("/a/lonely.html"), [], "without a plain file there is none");
    let plain = Ground::with(FolderOptions::default());
    fs::write(plain.at("site/a/page.html.gz"), "").unwrap();
    assert_eq!(plain.codings("/a/page.html"), [None], "nobody asked for it");
}

#[test]
fn a_file_is_the_same_while_all_its_forms_are() {
    let ground = Ground::new();
    fs::write(ground.at("site/a/page.html.gz"), "precompressed").unwrap();
    let look = ground.look("/a/page.html");
    assert!(look.named.is_unchanged());
    ground.append("site/a/page.html.gz");
    assert!(!look.named.is_unchanged());
    let look = ground.look("/a/page.html");
    fs::rename(ground.at("next/a/page.html"), ground.at("site/a/page.html")).unwrap();
    assert!(!look.named.is_unchanged());
    assert!(!ground.look("/a/none.html").named.is_unchanged(), "what isn't there is looked for again");
}
