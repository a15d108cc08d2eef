//! Files that are longer than an entry may be.

use eyewall::Options;
use eyewall_tower::ServeDir;
use eyewall_tower::files::FileCache;

use crate::support::{Site, bytes, get};

#[tokio::test]
async fn ten_megabytes_are_kept_in_fragments_of_a_volume_of_forty() {
    let site = Site::new(&[]);
    let whole = bytes(10_000_000);
    site.write("film.bin", &whole);
    let files = FileCache::new(Options::new().size(40 << 20).anonymous().unwrap());
    let dir = ServeDir::new(site.at(""), &files).unwrap().cache_status("files");
    // Wait until it may be kept, so that one request stores it.
    loop {
        let first = get(&dir, "/film.bin", &[("range", "bytes=0-0")]).await;
        if first.fields.contains_key("etag") {
            assert_eq!(first.field("cache-status"), "files; fwd=uri-miss; stored");
            break;
        }
    }
    assert_eq!(files.statistics().stored, 1, "a range costs the fragments that it lies in");
    for _ in 0..2 {
        let taken = get(&dir, "/film.bin", &[]).await;
        assert_eq!((taken.field("cache-status"), taken.field("content-length")), ("files; hit", "10000000"));
        assert!(taken.body == whole);
        assert!(files.contains(site.at("film.bin")).unwrap());
    }
    assert_eq!(files.used_bytes(), 10_000_000);
    let part = get(&dir, "/film.bin", &[("range", "bytes=1048570-3145740")]).await;
    assert!(part.status == 206 && part.body == whole[1_048_570..=3_145_740]);
    assert_eq!(files.cache().stats().unwrap().pins, 0);
}
