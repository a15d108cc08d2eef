//! The file of a path: never outside the root, never hidden, and the index of a folder.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;

use eyewall_tower::files::{ServeDir, Symlinks};

use crate::support::{Site, get};

#[tokio::test]
async fn no_path_leaves_the_root() {
    let site = Site::new(&["secret.txt", "root/page.html", "root/sub/page.html"]);
    let dir = ServeDir::new(site.at("root"), &site.files).unwrap();
    for target in [
        "/../secret.txt",
        "/sub/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/.%2e/secret.txt",
        "/sub/%2e%2e/%2e%2e/secret.txt",
        "//../secret.txt",
        "/%2fetc/passwd",
        "/page.html%00.txt",
        "/..%5csecret.txt",
        "/%252e%252e/secret.txt",
    ] {
        let taken = get(&dir, target, &[]).await;
        assert!(taken.status == 400 || taken.status == 404, "{target}: {}", taken.status);
        assert!(!taken.text().contains("secret.txt"), "{target}");
    }
    assert_eq!(get(&dir, "//sub//page.html", &[]).await.text(), "root/sub/page.html");
}

#[tokio::test]
async fn links_are_followed_as_far_as_the_options_permit() {
    let site = Site::new(&["secret.txt", "root/page.html"]);
    symlink("page.html", site.at("root/near")).unwrap();
    symlink("../secret.txt", site.at("root/out")).unwrap();
    symlink(site.at("secret.txt"), site.at("root/absolute")).unwrap();
    let dir = ServeDir::new(site.at("root"), &site.files).unwrap();
    for (symlinks, near, far) in [
        (None, 200, 404),
        (Some(Symlinks::None), 404, 404),
        (Some(Symlinks::Below), 200, 404),
        (Some(Symlinks::Anywhere), 200, 200),
    ] {
        let dir = match symlinks {
            Some(symlinks) => dir.clone().symlinks(symlinks),
            None => dir.clone(),
        };
        for (target, status) in [("/page.html", 200), ("/near", near), ("/out", far), ("/absolute", far)] {
            assert_eq!(get(&dir, target, &[]).await.status, status, "{target}, {symlinks:?}");
        }
    }
}

#[tokio::test]
async fn dotfiles_are_served_if_that_is_set() {
    let site = Site::new(&[".well-known/acme", ".env"]);
    for (yes, status) in [(false, 404), (true, 200)] {
        let dir = site.serve().dotfiles(yes);
        for target in ["/.well-known/acme", "/.env", "/%2eenv"] {
            assert_eq!(get(&dir, target, &[]).await.status, status, "{target}");
        }
    }
}

#[tokio::test]
async fn a_folder_is_its_index_and_has_a_slash() {
    let site =
        Site::new(&["index.html", "sub/index.html", "caf\u{e9} #1/index.html", "a:b/index.html", "start/start.txt"]);
    let dir = site.serve();
    assert_eq!(get(&dir, "/", &[]).await.text(), "index.html");
    assert_eq!(get(&dir, "/sub/", &[]).await.text(), "sub/index.html");
    for (target, location) in [
        ("/sub", "./sub/"),
        ("/sub?a=b&c", "./sub/?a=b&c"),
        ("/sub?", "./sub/?"),
        ("//sub", "./sub/"),
        ("/caf%C3%A9%20%231", "./caf%C3%A9%20%231/"),
        ("/a:b", "./a:b/"),
    ] {
        let taken = get(&dir, target, &[]).await;
        assert_eq!((taken.status, taken.field("location")), (301, location), "{target}");
    }
    let none = dir.clone().append_index_html_on_directories(false);
    assert_eq!((get(&none, "/", &[]).await.status, get(&none, "/sub", &[]).await.status), (404, 404));
    let other = dir.index(["start.txt", "index.html"]);
    assert_eq!(get(&other, "/start/", &[]).await.text(), "start/start.txt");
    assert_eq!(get(&other, "/sub/", &[]).await.text(), "sub/index.html");
}

#[test]
fn a_root_has_to_be_a_folder() {
    let site = Site::new(&["page.html"]);
    for (name, kind) in [("none", io::ErrorKind::NotFound), ("page.html", io::ErrorKind::NotADirectory)] {
        let path = site.at(name);
        let error = ServeDir::new(&path, &site.files).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(&format!("can't serve the folder {}", path.display())), "{error}");
    }
}

#[tokio::test]
async fn a_root_that_is_a_link_can_be_switched() {
    let site = Site::new(&["one/page.html", "two/page.html"]);
    symlink("one", site.at("current")).unwrap();
    let dir = ServeDir::new(site.at("current"), &site.files).unwrap();
    assert_eq!(get(&dir, "/page.html", &[]).await.text(), "one/page.html");
    symlink("two", site.at("next")).unwrap();
    fs::rename(site.at("next"), site.at("current")).unwrap();
    assert_eq!(get(&dir, "/page.html", &[]).await.text(), "two/page.html");
    fs::remove_file(site.at("current")).unwrap();
    assert!(get(&dir, "/page.html", &[]).await.status >= 400);
}
