//! Somebody tries to read files that are not public: files outside the root, and files whose names begin with a dot.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::client::Reply;
use crate::common::server::{Server, Site};

#[test]
fn no_path_climbs_out_of_the_root() {
    let site = Site::new();
    site.write("secret.txt", "secret");
    site.write("root/index.html", "public");
    let server = Server::over_folder(&site.path().join("root"));
    for target in [
        "/../secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "/%2E%2E%2Fsecret.txt",
        "/a/../../secret.txt",
        "/.%2e/secret.txt",
        "/%252e%252e/secret.txt",
        "/..%c0%afsecret.txt",
        "/..\\secret.txt",
        "//..//secret.txt",
    ] {
        let reply = server.get(target);
        assert!(matches!(reply.status, 400 | 404), "{target}: {}", reply.status);
        assert!(!reply.text().contains("secret\n") && reply.text() != "secret", "{target}");
    }
    assert_eq!(server.get("/%zz").status, 400, "a broken escape");
    assert_eq!(server.get("/a%00b").status, 400, "a NUL");
}

#[test]
fn dotfiles_are_not_found() {
    let site = Site::new();
    site.write(".env", "secret");
    site.write(".git/config", "secret");
    site.write("a/.htpasswd", "secret");
    let server = Server::over_folder(site.path());
    for target in ["/.env", "/%2eenv", "/.git/config", "/.git/", "/a/.htpasswd", "/./.env"] {
        let reply = server.get(target);
        assert_eq!(reply.status, 404, "{target}");
        assert!(!reply.text().contains("secret"), "{target}");
    }
}

#[test]
fn links_out_of_the_root_are_not_followed_and_links_within_are() {
    let site = Site::new();
    site.write("secret.txt", "secret");
    site.write("root/page.html", "public");
    let root = site.path().join("root");
    symlink("../secret.txt", root.join("relative")).unwrap();
    symlink(site.path().join("secret.txt"), root.join("absolute")).unwrap();
    symlink("..", root.join("folder")).unwrap();
    symlink("/proc/self/environ", root.join("process")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("page.html", root.join("within")).unwrap();
    let server = Server::over_folder(&root);
    for target in ["/relative", "/absolute", "/folder/secret.txt", "/process", "/loop"] {
        let reply = server.get(target);
        assert_eq!(reply.status, 404, "{target}");
        assert!(!reply.text().contains("secret\n"), "{target}");
    }
    assert_eq!(server.get("/within").text(), "public");
}

#[test]
fn a_file_that_becomes_a_link_out_of_the_root_is_no_longer_served_from_the_volume() {
    let site = Site::new();
    site.write("secret.txt", "secret");
    site.write("root/page.html", "public");
    let root = site.path().join("root");
    let server = Server::over_folder(&root);
    server.get_until("/page.html", Reply::is_hit);
    fs::remove_file(root.join("page.html")).unwrap();
    symlink("../secret.txt", root.join("page.html")).unwrap();
    assert_eq!(server.get("/page.html").status, 404);
}

#[test]
fn special_files_do_not_block_the_server() {
    let site = Site::new();
    let pipe = site.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let server = Server::over_folder(site.path());
    assert_eq!(server.get("/pipe").status, 404);
}
