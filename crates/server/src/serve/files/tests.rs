//! Precompressed files beside plain ones, as a client sees them, and paths for which an origin may have a response.

use std::fs;

use bytes::Bytes;
use eyewall::Options;
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt as _;
use tempfile::TempDir;

use super::*;

/// A folder with these files, and its server.
struct Ground {
    folder: TempDir,
    files: Files,
}

/// A response with its body.
struct Answer {
    status: u16,
    fields: HeaderMap,
    body: Bytes,
}

impl Ground {
    fn new(names: &[&str], settings: FolderOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            // Each has its name as its content, so no two are alike.
            fs::write(folder.path().join(name), name).unwrap();
        }
        let cache = FileCache::new(Options::new().size(4 << 20).anonymous().unwrap());
        Self { files: Files::open(folder.path(), &cache, settings).unwrap(), folder }
    }

    fn precompressed() -> Self {
        let settings = FolderOptions { precompressed: true, ..FolderOptions::default() };
        Self::new(&["page.html", "page.html.gz", "page.html.br", "other.html"], settings)
    }

    async fn find(&self, method: Method, target: &str, fields: &[(&str, &str)]) -> Option<Answer> {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (request, ()) = request.body(()).unwrap().into_parts();
        let (head, body) = self.files.find_answer(&request, false).await?.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Some(Answer { status: head.status.as_u16(), fields: head.headers, body })
    }

    async fn get(&self, target: &str, fields: &[(&str, &str)]) -> Answer {
        self.find(Method::GET, target, fields).await.unwrap()
    }

    /// Asks until the files are old enough to have tags.
    async fn get_tagged(&self, target: &str, fields: &[(&str, &str)]) -> Answer {
        loop {
            let answer = self.get(target, fields).await;
            if !answer.field("etag").is_empty() {
                return answer;
            }
        }
    }
}

impl Answer {
    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

#[tokio::test]
async fn each_client_gets_the_coding_that_it_prefers() {
    let ground = Ground::precompressed();
    for (accepted, coding, body) in [
        ("gzip, deflate, br", "br", "page.html.br"),
        ("gzip", "gzip", "page.html.gz"),
        ("zstd", "", "page.html"),
        ("*", "", "page.html"),
    ] {
        // From the file, and then from the volume.
        for _ in 0..2 {
            let answer = ground.get_tagged("/page.html", &[("accept-encoding", accepted)]).await;
            assert_eq!((answer.field("content-encoding"), &answer.body[..]), (coding, body.as_bytes()), "{accepted}");
            assert_eq!(answer.field("content-type"), "text/html; charset=utf-8");
            assert_eq!(answer.field("content-length"), body.len().to_string());
            assert_eq!(answer.field("vary"), "accept-encoding");
        }
    }
    let head = ground.find(Method::HEAD, "/page.html", &[("accept-encoding", "br")]).await.unwrap();
    assert_eq!((head.field("content-length"), head.field("content-encoding"), head.body.len()), ("12", "br", 0));
}

#[tokio::test]
async fn each_coding_has_its_own_tag() {
    let ground = Ground::precompressed();
    let (gzip, br) = ([("accept-encoding", "gzip")], [("accept-encoding", "br")]);
    let tags = [
        ground.get_tagged("/page.html", &gzip).await.field("etag").to_owned(),
        ground.get_tagged("/page.html", &br).await.field("etag").to_owned(),
        ground.get_tagged("/page.html", &[]).await.field("etag").to_owned(),
    ];
    assert!(tags[0].ends_with("-gz\"") && tags[1].ends_with("-br\"") && !tags[2].contains('-'), "{tags:?}");
    let had = ground.get("/page.html", &[gzip[0], ("if-none-match", &tags[0])]).await;
    assert_eq!((had.status, had.field("vary"), had.field("etag")), (304, "accept-encoding", tags[0].as_str()));
    for tag in &tags[1..] {
        let other = ground.get("/page.html", &[gzip[0], ("if-none-match", tag)]).await;
        assert_eq!((other.status, &other.body[..]), (200, &b"page.html.gz"[..]), "{tag}");
    }
}

#[tokio::test]
async fn ranges_are_those_of_the_coding() {
    let ground = Ground::precompressed();
    let tag = ground.get_tagged("/page.html", &[("accept-encoding", "gzip")]).await.field("etag").to_owned();
    let asked = [("accept-encoding", "gzip"), ("range", "bytes=-2"), ("if-range", &tag)];
    let part = ground.get("/page.html", &asked).await;
    assert_eq!((part.status, part.field("content-range"), &part.body[..]), (206, "bytes 10-11/12", &b"gz"[..]));
    assert_eq!((part.field("content-encoding"), part.field("vary")), ("gzip", "accept-encoding"));
    let whole = ground.get("/page.html", &[("accept-encoding", "br"), asked[1], asked[2]]).await;
    assert_eq!((whole.status, &whole.body[..]), (200, &b"page.html.br"[..]), "the client has another coding");
}

#[tokio::test]
async fn a_precompressed_file_by_its_own_name_is_a_file_like_others() {
    let ground = Ground::precompressed();
    let answer = ground.get("/page.html.gz", &[("accept-encoding", "gzip, br")]).await;
    assert_eq!((answer.field("content-type"), answer.field("content-encoding")), ("application/gzip", ""));
    assert_eq!((answer.field("vary"), &answer.body[..]), ("", &b"page.html.gz"[..]));
    let answer = ground.get("/other.html", &[("accept-encoding", "gzip, br")]).await;
    assert_eq!((answer.field("vary"), &answer.body[..]), ("", &b"other.html"[..]), "there is nothing to choose from");
}

#[tokio::test]
async fn a_rewritten_precompressed_file_is_read_again() {
    let ground = Ground::precompressed();
    let gzip = [("accept-encoding", "gzip")];
    let first = ground.get_tagged("/page.html", &gzip).await;
    fs::write(ground.folder.path().join("page.html.gz"), "made again..").unwrap();
    let second = ground.get_tagged("/page.html", &gzip).await;
    assert_eq!(&second.body[..], b"made again..");
    assert_ne!(first.field("etag"), second.field("etag"));
    fs::remove_file(ground.folder.path().join("page.html.gz")).unwrap();
    let third = ground.get_tagged("/page.html", &gzip).await;
    assert_eq!((third.field("content-encoding"), &third.body[..]), ("", &b"page.html"[..]));
}

#[tokio::test]
async fn a_path_without_a_file_is_left_to_the_origin() {
    let ground = Ground::new(&["page.html", ".secret"], FolderOptions::default());
    for target in ["/none.html", "/", "/page.html/", "/.secret", "/.well-known/x", "/a%2fb", "/../page.html"] {
        assert!(ground.find(Method::GET, target, &[]).await.is_none(), "{target}");
    }
    assert!(ground.find(Method::GET, "/page.html", &[]).await.is_some());
    let ground = Ground::new(&[".secret"], FolderOptions { dotfiles: true, ..FolderOptions::default() });
    assert_eq!(&ground.get("/.secret", &[]).await.body[..], b".secret");
}
