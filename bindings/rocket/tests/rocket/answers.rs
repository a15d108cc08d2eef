//! Heads, conditions and codings.

use std::path::PathBuf;
use std::time::Duration;

use eyewall_rocket::{CachedFile, CachedFiles, FileCache, FileCacheOptions};
use rocket::http::{ContentType, Method, Status};
use rocket::local::asynchronous::Client;
use rocket::response::status;
use rocket::{Request, State, async_test, catch, catchers, post, routes};

use crate::support::{Site, WAYS, field, get, head, text};

#[async_test]
async fn a_file_has_its_type_and_length() {
    let site = Site::new(FileCacheOptions::new());
    for (name, media_type) in
        [("a.html", "text/html; charset=utf-8"), ("a.svg", "image/svg+xml"), ("a.mystery", "application/octet-stream")]
    {
        site.write(name, "content");
        let client = site.client().await;
        for way in WAYS {
            let response = get(&client, &format!("{way}/{name}"), &[]).await;
            assert_eq!(response.status(), Status::Ok);
            assert_eq!(field(&response, "content-type"), media_type);
            assert_eq!(field(&response, "accept-ranges"), "bytes");
            assert_eq!(response.body().preset_size(), Some(7));
            assert_eq!(response.into_string().await.unwrap(), "content");
        }
    }
}

#[async_test]
async fn an_empty_file_is_sent() {
    let site = Site::new(FileCacheOptions::new());
    site.write("empty", "");
    let client = site.client().await;
    for way in WAYS {
        assert_eq!(text(&client, &format!("{way}/empty")).await, (Status::Ok, String::new()));
    }
}

#[async_test]
async fn a_missing_file_is_a_404() {
    let site = Site::new(FileCacheOptions::new());
    site.write("folder/a", "");
    let client = site.client().await;
    for target in ["/missing", "/folder", "/named/missing", "/named/folder"] {
        assert_eq!(get(&client, target, &[]).await.status(), Status::NotFound, "{target}");
    }
}

#[async_test]
async fn conditions_are_judged_in_their_order() {
    let site = Site::new(FileCacheOptions::new());
    site.write("a.txt", "content");
    site.settle_for("a.txt", Duration::from_millis(1200));
    let client = site.client().await;
    let first = get(&client, "/a.txt", &[]).await;
    let (tag, modified) = (field(&first, "etag"), field(&first, "last-modified"));
    assert!(tag.starts_with('"') && !modified.is_empty());
    let long_ago = "Thu, 01 Jan 1998 00:00:00 GMT";
    for (fields, status) in [
        (&[("if-none-match", &*tag)][..], Status::NotModified),
        (&[("if-none-match", "*")], Status::NotModified),
        (&[("if-none-match", "\"other\"")], Status::Ok),
        (&[("if-modified-since", &modified)], Status::NotModified),
        (&[("if-modified-since", long_ago)], Status::Ok),
        (&[("if-match", "\"other\"")], Status::PreconditionFailed),
        (&[("if-match", &tag)], Status::Ok),
        (&[("if-unmodified-since", long_ago)], Status::PreconditionFailed),
        (&[("if-unmodified-since", &modified)], Status::Ok),
        // RFC 9110, section 13.2.2: tags come before dates, and positive conditions before negative ones.
        (&[("if-none-match", "\"other\""), ("if-modified-since", &modified)], Status::Ok),
        (&[("if-match", "\"other\""), ("if-none-match", &tag)], Status::PreconditionFailed),
        (&[("if-match", &tag), ("if-unmodified-since", long_ago)], Status::Ok),
        (&[("if-none-match", &tag), ("range", "bytes=0-1")], Status::NotModified),
    ] {
        for way in WAYS {
            let response = get(&client, &format!("{way}/a.txt"), fields).await;
            assert_eq!(response.status(), status, "{fields:?}");
            if status == Status::NotModified {
                assert_eq!(field(&response, "etag"), tag);
                assert_eq!(field(&response, "content-length"), "");
            }
            let body = response.into_string().await.unwrap_or_default();
            assert_eq!(body, if status == Status::Ok { "content" } else { "" }, "{fields:?}");
        }
    }
}

#[async_test]
async fn head_is_the_head_of_get() {
    let site = Site::new(FileCacheOptions::new());
    site.write("a.txt", "content");
    site.settle("a.txt");
    let client = site.client().await;
    for way in WAYS {
        let target = format!("{way}/a.txt");
        let tag = field(&get(&client, &target, &[]).await, "etag");
        // A range is for GET only (RFC 9110, section 14.2).
        for fields in [&[][..], &[("range", "bytes=0-1")]] {
            let response = head(&client, &target, fields).await;
            assert_eq!((response.status(), field(&response, "etag")), (Status::Ok, tag.clone()));
            assert_eq!(response.body().preset_size(), Some(7));
            assert_eq!(response.into_bytes().await.unwrap_or_default(), b"");
        }
        let response = head(&client, &target, &[("if-none-match", &tag)]).await;
        assert_eq!(response.status(), Status::NotModified);
    }
}

#[async_test]
async fn a_client_that_accepts_a_compressed_form_gets_it() {
    let site = Site::new(FileCacheOptions::new().precompressed(true));
    site.write("a.html", "plain");
    site.write("a.html.br", "by brotli");
    site.write("a.html.gz", "by gzip");
    site.settle("a.html.gz");
    let rocket = site.rocket().mount("/precompressed", CachedFiles::from(site.root()).precompressed(true).rank(9));
    let client = Client::untracked(rocket).await.unwrap();
    for way in ["/precompressed", "/named"] {
        let mut tags = Vec::new();
        for (accepted, coding, body) in
            [("gzip, br", "br", "by brotli"), ("gzip", "gzip", "by gzip"), ("zstd", "", "plain"), ("", "", "plain")]
        {
            let response = get(&client, &format!("{way}/a.html"), &[("accept-encoding", accepted)]).await;
            assert_eq!(field(&response, "content-encoding"), coding, "{accepted}");
            assert_eq!(field(&response, "content-type"), "text/html; charset=utf-8");
            assert!(field(&response, "vary").eq_ignore_ascii_case("accept-encoding"));
            tags.push(field(&response, "etag"));
            assert_eq!(response.into_string().await.unwrap(), body);
        }
        tags.dedup();
        assert_eq!(tags.len(), 3, "{tags:?}");
        let fields = [("accept-encoding", "gzip"), ("if-none-match", &*tags[0])];
        assert_eq!(get(&client, &format!("{way}/a.html"), &fields).await.status(), Status::Ok, "br's tag isn't gzip's");
    }
    let plain = get(&client, "/a.html", &[("accept-encoding", "br")]).await;
    assert_eq!((field(&plain, "content-encoding"), field(&plain, "vary")), (String::new(), String::new()));
}

#[async_test]
async fn a_wrapped_file_keeps_the_status_and_type_of_its_wrapper() {
    #[rocket::get("/as-text/<path..>")]
    async fn as_text(path: PathBuf, root: &State<PathBuf>, files: &State<FileCache>) -> (ContentType, CachedFile) {
        (ContentType::Plain, CachedFile::open(root.join(path), files).await.unwrap())
    }
    #[post("/post/<path..>")]
    async fn post(path: PathBuf, root: &State<PathBuf>, files: &State<FileCache>) -> status::Accepted<CachedFile> {
        status::Accepted(CachedFile::open(root.join(path), files).await.unwrap())
    }
    let site = Site::new(FileCacheOptions::new());
    site.write("a.html", "content");
    let rocket = site.rocket().manage(site.root().to_owned()).mount("/", routes![as_text, post]);
    let client = Client::untracked(rocket).await.unwrap();
    let response = get(&client, "/as-text/a.html", &[("range", "bytes=1-2")]).await;
    assert_eq!(field(&response, "content-type"), "text/plain; charset=utf-8");
    assert_eq!((response.status(), response.into_string().await.unwrap().as_str()), (Status::PartialContent, "on"));
    let request = client.req(Method::Post, "/post/a.html").header(rocket::http::Header::new("range", "bytes=1-2"));
    let response = request.dispatch().await;
    assert_eq!((response.status(), response.into_string().await.unwrap().as_str()), (Status::Accepted, "content"));
}

#[async_test]
async fn an_error_page_is_sent_whole_with_the_status_of_the_error() {
    #[catch(404)]
    async fn not_found(request: &Request<'_>) -> Option<CachedFile> {
        let (root, files) = (request.rocket().state::<PathBuf>()?, request.rocket().state::<FileCache>()?);
        Some(CachedFile::open(root.join("404.html"), files).await.ok()?.unconditional())
    }
    let site = Site::new(FileCacheOptions::new());
    site.write("404.html", "nothing here");
    let rocket = site.rocket().manage(site.root().to_owned()).register("/", catchers![not_found]);
    let client = Client::untracked(rocket).await.unwrap();
    for fields in [&[][..], &[("range", "bytes=0-1")], &[("if-none-match", "*")]] {
        let response = get(&client, "/missing", fields).await;
        assert_eq!(response.status(), Status::NotFound, "{fields:?}");
        assert_eq!(response.into_string().await.unwrap(), "nothing here");
    }
}

/// Files of sysfs announce a page, and have less.
#[async_test]
async fn an_unreadable_file_is_a_500_before_any_byte_is_sent() {
    #[rocket::get("/short")]
    async fn short(files: &State<FileCache>) -> std::io::Result<CachedFile> {
        CachedFile::open("/sys/devices/system/cpu/online", files).await
    }
    let site = Site::new(FileCacheOptions::new());
    let rocket =
        site.rocket().mount("/", routes![short]).mount("/sys", CachedFiles::from("/sys/devices/system/cpu").rank(9));
    let client = Client::untracked(rocket).await.unwrap();
    for target in ["/short", "/sys/online"] {
        assert_eq!(get(&client, target, &[]).await.status(), Status::InternalServerError, "{target}");
    }
}
