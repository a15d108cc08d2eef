//! The longest file that the default options keep.

use std::fs::File;

use eyewall::Options;
use eyewall_files::FileCache;

/// A volume's size is rounded down to whole pages. So 10,000,000 is at most a quarter of the requested size.
#[test]
fn a_file_of_10_mb_is_kept_in_40_mb_and_one_of_11_mb_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let files = FileCache::new(Options::new().size(40_000_000).anonymous().unwrap());
    for (bytes, is_kept) in [(10_000_000, true), (11_000_000, false)] {
        let path = folder.path().join(bytes.to_string());
        File::create(&path).unwrap().set_len(bytes).unwrap();
        // A file that has just changed isn't kept yet.
        while files.open_blocking(&path).unwrap().fields().get("etag").is_none() {
            std::thread::yield_now();
        }
        assert_eq!(files.refresh(&path).unwrap(), is_kept, "{bytes}");
    }
}
