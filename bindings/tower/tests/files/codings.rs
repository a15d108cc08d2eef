//! Precompressed files beside plain ones.

use crate::support::{Site, get};

#[tokio::test]
async fn each_client_gets_the_form_that_it_prefers() {
    let site = Site::new(&["page.html", "page.html.gz", "page.html.br", "page.html.zst", "other.html"]);
    let dir = site.serve().precompressed(true);
    site.get_until(&dir, "/page.html", "etag").await;
    let mut tags = Vec::new();
    for (accepted, coding, body) in [
        ("gzip, deflate, br", "br", "page.html.br"),
        ("zstd", "zstd", "page.html.zst"),
        ("gzip", "gzip", "page.html.gz"),
        ("deflate", "", "page.html"),
    ] {
        for _ in 0..2 {
            let taken = get(&dir, "/page.html", &[("accept-encoding", accepted)]).await;
            assert_eq!((taken.field("content-encoding"), taken.text()), (coding, body), "{accepted}");
            assert_eq!(taken.field("vary"), "accept-encoding");
            assert_eq!(taken.field("content-type"), "text/html; charset=utf-8");
            tags.push(taken.field("etag").to_owned());
        }
        let had =
            get(&dir, "/page.html", &[("accept-encoding", accepted), ("if-none-match", tags.last().unwrap())]).await;
        assert_eq!(had.status, 304);
    }
    tags.dedup();
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 4, "each has a tag of its own");
    assert_eq!(get(&dir, "/other.html", &[("accept-encoding", "br")]).await.field("vary"), "");
}

#[tokio::test]
async fn compressed_forms_are_not_sent_by_default() {
    let site = Site::new(&["page.html", "page.html.gz"]);
    let taken = get(&site.serve(), "/page.html", &[("accept-encoding", "gzip")]).await;
    assert_eq!((taken.text(), taken.field("vary")), ("page.html", ""));
}
