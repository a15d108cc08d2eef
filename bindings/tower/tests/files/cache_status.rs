//! `Cache-Status` (RFC 9211), if it is enabled.

use http::Method;

use crate::support::{Site, get, request, send};

#[tokio::test]
async fn the_cache_reports_its_work_under_its_name() {
    let site = Site::new(&["page.html"]);
    let dir = site.serve().cache_status("my-files");
    // The look doesn't read the folder.
    loop {
        let head = send(&dir, request(Method::HEAD, "/page.html", &[])).await;
        assert_eq!(head.field("cache-status"), "my-files; fwd=uri-miss; detail=head");
        if head.fields.contains_key("etag") {
            break;
        }
    }
    assert_eq!(get(&dir, "/page.html", &[]).await.field("cache-status"), "my-files; fwd=uri-miss; stored");
    assert_eq!(get(&dir, "/page.html", &[]).await.field("cache-status"), "my-files; hit");
    assert_eq!(send(&dir, request(Method::HEAD, "/page.html", &[])).await.field("cache-status"), "my-files; hit");
    assert_eq!(get(&dir, "/page.html", &[("if-none-match", "*")]).await.field("cache-status"), "");
    assert_eq!(get(&dir, "/none", &[]).await.field("cache-status"), "");
    let named = site.serve().cache_status("two words");
    assert_eq!(get(&named, "/page.html", &[]).await.field("cache-status"), "\"two words\"; hit");
}

#[tokio::test]
async fn cache_status_is_absent_by_default() {
    let site = Site::new(&["page.html"]);
    assert_eq!(get(&site.serve(), "/page.html", &[]).await.field("cache-status"), "");
}
