//! Conditions in the order of RFC 9110, section 13.2.2, and ranges, of one and of several pieces.

use http::Method;

use crate::support::{Site, get, request, send};

const OLD: &str = "Thu, 01 Jan 1970 00:00:01 GMT";

#[tokio::test]
async fn conditions_come_in_their_order_and_before_ranges() {
    let site = Site::new(&[]);
    site.write("page.txt", "0123456789");
    let dir = site.serve();
    let first = site.get_until(&dir, "/page.txt", "last-modified").await;
    let (tag, time) = (first.field("etag"), first.field("last-modified"));
    let weak = format!("W/{tag}");
    for (fields, status, body) in [
        (&[("if-match", tag), ("if-unmodified-since", OLD)][..], 200, "0123456789"),
        (
            &[("if-match", "\"other\""), ("if-none-match", tag)],
            412,
            "412 Precondition Failed: the precondition failed\n",
        ),
        (&[("if-unmodified-since", OLD)], 412, "412 Precondition Failed: the precondition failed\n"),
        (&[("if-none-match", tag), ("range", "bytes=0-1")], 304, ""),
        (&[("if-none-match", "\"other\""), ("if-modified-since", time)], 200, "0123456789"),
        (&[("if-modified-since", time)], 304, ""),
        (&[("if-range", tag), ("range", "bytes=2-3")], 206, "23"),
        (&[("if-range", &weak), ("range", "bytes=2-3")], 200, "0123456789"),
        (&[("range", "bytes=10-")], 416, "416 Range Not Satisfiable: the file does not have these bytes\n"),
    ] {
        let taken = get(&dir, "/page.txt", fields).await;
        assert_eq!((taken.status, taken.text()), (status, body), "{fields:?}");
        let is_error = status >= 400;
        assert_eq!((taken.field("cache-control") == "no-store", taken.field("etag") == tag), (is_error, !is_error));
        let is_sent = status != 304;
        assert_eq!(taken.field("content-length") == body.len().to_string(), is_sent, "{fields:?}");
    }
    let unsatisfied = get(&dir, "/page.txt", &[("range", "bytes=10-")]).await;
    assert_eq!(
        (unsatisfied.field("content-range"), unsatisfied.field("content-type")),
        ("bytes */10", "text/plain; charset=utf-8")
    );
}

#[tokio::test]
async fn several_ranges_come_in_one_body() {
    let site = Site::new(&[]);
    site.write("page.txt", "0123456789");
    let dir = site.serve();
    let taken = get(&dir, "/page.txt", &[("range", "bytes=0-1,-2")]).await;
    let boundary = taken.field("content-type").strip_prefix("multipart/byteranges; boundary=").unwrap().to_owned();
    let text = taken.text();
    assert!(taken.status == 206 && text.matches(boundary.trim_matches('"')).count() == 3, "{text}");
    assert!(text.contains("bytes 0-1/10\r\n\r\n01\r\n") && text.contains("bytes 8-9/10\r\n\r\n89\r\n"), "{text}");
}

#[tokio::test]
async fn a_head_is_that_of_a_get_without_its_body() {
    let site = Site::new(&["page.txt", "folder/index.html"]);
    let dir = site.serve();
    site.get_until(&dir, "/page.txt", "last-modified").await;
    for (target, fields) in [
        ("/page.txt", &[][..]),
        ("/page.txt", &[("if-match", "\"other\"")]),
        ("/page.txt", &[("if-none-match", "*")]),
        ("/folder", &[]),
        ("/none", &[]),
        ("/%", &[]),
    ] {
        let (head, got) = (send(&dir, request(Method::HEAD, target, fields)).await, get(&dir, target, fields).await);
        assert_eq!((head.status, head.fields, head.body.len()), (got.status, got.fields, 0), "{target}");
    }
    // Ranges are for GET alone.
    let head = send(&dir, request(Method::HEAD, "/page.txt", &[("range", "bytes=0-1")])).await;
    assert_eq!((head.status, head.field("content-length")), (200, "8"));
}
