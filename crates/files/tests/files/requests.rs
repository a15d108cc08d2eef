//! Conditions, in the order of RFC 9110, section 13.2.2, and codings, of a file that the program names.

use eyewall_files::FileCacheOptions;

use crate::support::{Ground, content, get};

const OLD: &str = "Thu, 01 Jan 1970 00:00:01 GMT";
const NEVER: &str = "Fri, 01 Jan 2100 00:00:00 GMT";

#[tokio::test]
async fn conditions_are_taken_in_their_order() {
    let ground = Ground::new();
    ground.write("page", "0123456789");
    let file = ground.old("page");
    let tag = file.fields()["etag"].to_str().unwrap().to_owned();
    let time = file.fields()["last-modified"].to_str().unwrap().to_owned();
    for (asked, status, body) in [
        (vec![("if-match", tag.as_str()), ("if-unmodified-since", OLD)], 200, "0123456789"),
        (vec![("if-match", "\"other\""), ("if-none-match", &tag)], 412, ""),
        (vec![("if-unmodified-since", OLD), ("if-none-match", &tag)], 412, ""),
        (vec![("if-unmodified-since", &time)], 200, "0123456789"),
        (vec![("if-none-match", &tag), ("range", "bytes=0-1")], 304, ""),
        (vec![("if-none-match", "\"other\""), ("if-modified-since", NEVER)], 200, "0123456789"),
        (vec![("if-modified-since", &time)], 304, ""),
        (vec![("if-modified-since", OLD), ("range", "bytes=0-1")], 206, "01"),
        (vec![("if-range", &tag), ("range", "bytes=2-3")], 206, "23"),
        (vec![("if-range", "\"other\""), ("range", "bytes=2-3")], 200, "0123456789"),
        (vec![("if-range", &format!("W/{tag}")), ("range", "bytes=2-3")], 200, "0123456789"),
        (vec![("range", "bytes=-3")], 206, "789"),
        (vec![("range", "lines=1-2")], 200, "0123456789"),
    ] {
        let taken = get(&file, &asked).await;
        assert_eq!((taken.status.as_u16(), &taken.body[..]), (status, body.as_bytes()), "{asked:?}");
        assert_eq!(taken.fields.contains_key("etag"), status != 412, "{asked:?}");
    }
}

#[tokio::test]
async fn precompressed_files_are_sent_where_that_is_set() {
    for (yes, coding) in [(true, Some("gzip")), (false, None)] {
        let ground = Ground::with(FileCacheOptions::new().precompressed(yes));
        ground.write("page.html", "plain");
        ground.write("page.html.gz", "precompressed");
        // A file that has just changed has no entity tag.
        ground.settled("page.html.gz");
        let file = ground.settled("page.html");
        let taken = get(&file, &[("accept-encoding", "gzip")]).await;
        assert_eq!(taken.fields.get("content-encoding").map(|value| value.to_str().unwrap()), coding);
        assert_eq!(taken.fields.contains_key("vary"), yes);
        assert_eq!(taken.body, if yes { &b"precompressed"[..] } else { b"plain" });
        assert_eq!((content(&file), file.bytes()), (b"plain".to_vec(), 5), "what the program reads is the plain one");
        let other = get(&file, &[]).await;
        assert_eq!(other.fields["etag"] != taken.fields["etag"], yes);
    }
}
