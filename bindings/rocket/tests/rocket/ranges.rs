//! Parts of files (RFC 9110, section 14).

use eyewall_rocket::FileCacheOptions;
use rocket::async_test;
use rocket::http::Status;

use crate::support::{Site, WAYS, bytes, field, get};

#[async_test]
async fn one_range_gets_that_part() {
    let site = Site::new(FileCacheOptions::new());
    let content = bytes(300_000, 1);
    site.write("a.bin", &content);
    let client = site.client().await;
    for (range, part, told) in [
        ("bytes=0-0", 0..1, "bytes 0-0/300000"),
        ("bytes=1000-200999", 1000..201_000, "bytes 1000-200999/300000"),
        ("bytes=299990-", 299_990..300_000, "bytes 299990-299999/300000"),
        ("bytes=-5", 299_995..300_000, "bytes 299995-299999/300000"),
        ("bytes=299999-400000", 299_999..300_000, "bytes 299999-299999/300000"),
    ] {
        for way in WAYS {
            let response = get(&client, &format!("{way}/a.bin"), &[("range", range)]).await;
            assert_eq!((response.status(), field(&response, "content-range").as_str()), (Status::PartialContent, told));
            assert_eq!(response.body().preset_size(), Some(part.len()));
            assert!(response.into_bytes().await.unwrap() == content[part.clone()], "{range}");
        }
    }
}

#[async_test]
async fn several_ranges_are_a_body_of_several_parts() {
    let site = Site::new(FileCacheOptions::new());
    site.write("a.txt", "0123456789");
    let client = site.client().await;
    for way in WAYS {
        let response = get(&client, &format!("{way}/a.txt"), &[("range", "bytes=0-1,5-6")]).await;
        assert_eq!(response.status(), Status::PartialContent);
        let media_type = field(&response, "content-type");
        let boundary = media_type.strip_prefix("multipart/byteranges; boundary=").unwrap().trim_matches('"');
        let length = response.body().preset_size();
        let body = response.into_string().await.unwrap();
        assert_eq!(length, Some(body.len()));
        let parts: Vec<&str> = body.split(&format!("--{boundary}")).collect();
        assert_eq!(parts.len(), 4, "{body}");
        assert!(parts[1].contains("bytes 0-1/10") && parts[1].ends_with("\r\n\r\n01\r\n"), "{body}");
        assert!(parts[2].contains("bytes 5-6/10") && parts[2].ends_with("\r\n\r\n56\r\n"), "{body}");
        assert!(parts[3].starts_with("--"));
    }
}

#[async_test]
async fn a_range_beyond_the_end_is_a_416() {
    let site = Site::new(FileCacheOptions::new());
    site.write("a.txt", "0123456789");
    let client = site.client().await;
    for way in WAYS {
        let response = get(&client, &format!("{way}/a.txt"), &[("range", "bytes=10-")]).await;
        assert_eq!(response.status(), Status::RangeNotSatisfiable);
        assert_eq!(field(&response, "content-range"), "bytes */10");
        assert_eq!(response.into_bytes().await.unwrap_or_default(), b"");
    }
}

#[async_test]
async fn a_request_without_a_valid_range_gets_the_whole_file() {
    let site = Site::new(FileCacheOptions::new());
    site.write("a.txt", "0123456789");
    let client = site.client().await;
    for range in ["bytes=5-2", "lines=1-2", "bytes"] {
        let response = get(&client, "/a.txt", &[("range", range)]).await;
        assert_eq!((response.status(), response.into_string().await.unwrap().len()), (Status::Ok, 10), "{range}");
    }
}

#[async_test]
async fn a_range_of_another_version_gets_all() {
    let site = Site::new(FileCacheOptions::new());
    site.write("a.txt", "0123456789");
    site.settle("a.txt");
    let client = site.client().await;
    let tag = field(&get(&client, "/a.txt", &[]).await, "etag");
    for way in WAYS {
        for (tag, status) in [(&*tag, Status::PartialContent), ("\"other\"", Status::Ok)] {
            let fields = [("range", "bytes=0-1"), ("if-range", tag)];
            assert_eq!(get(&client, &format!("{way}/a.txt"), &fields).await.status(), status);
        }
    }
}
