//! Long files are stored in fragments. Whatever the length and the requested bytes, the response has the file's
//! bytes.

use std::ops::Range;

use eyewall_files::Source;

use crate::support::{Ground, bytes, content, get};

/// How long fragments are, as the pieces of a long file show.
fn fragment_bytes(ground: &Ground) -> u64 {
    let long = ground.make("long", bytes(1 << 20));
    let first = long.content().next().unwrap().unwrap();
    assert!(first.len() < 64 << 10);
    first.len() as u64
}

#[tokio::test]
async fn files_of_any_length_are_whole_from_the_file_and_from_the_volume() {
    let ground = Ground::new();
    let fragment = fragment_bytes(&ground);
    for length in [0, 1, fragment - 1, fragment, fragment + 1, 2 * fragment, 3 * fragment + 5] {
        let stored = ground.files.statistics().stored;
        let name = format!("of-{length}");
        let file = ground.make(&name, bytes(length));
        assert!(!file.is_cached());
        for source in [Source::Stored, Source::Volume] {
            let taken = get(&file, &[]).await;
            assert!(taken.status == 200 && taken.source == source && taken.body == bytes(length), "{length}");
            assert!(file.is_cached() && ground.files.contains(ground.at(&name)).unwrap());
        }
        assert_eq!(ground.files.statistics().stored - stored, length.div_ceil(fragment).max(1), "{length}");
    }
    assert_eq!(ground.files.statistics().not_stored, 0);
}

#[tokio::test]
async fn ranges_may_begin_and_end_anywhere() {
    let ground = Ground::new();
    let fragment = fragment_bytes(&ground);
    let length = 3 * fragment + 5;
    let whole = bytes(length);
    let (f, end) = (fragment, length - 1);
    let ranges: [Range<u64>; 8] =
        [0..1, f - 1..f, f..f + 1, f - 1..f + 1, 1..2 * f, f - 3..3 * f + 2, 3 * f..length, end..length];
    for (number, range) in ranges.into_iter().enumerate() {
        // First a file with no stored fragments; then the rest of it.
        let file = ground.make(&number.to_string(), &whole);
        let asked = format!("bytes={}-{}", range.start, range.end - 1);
        for _ in 0..2 {
            let part = get(&file, &[("range", &asked)]).await;
            assert_eq!(part.fields["content-range"], format!("bytes {}-{}/{length}", range.start, range.end - 1));
            assert!(part.status == 206 && part.body == whole[range.start as usize..range.end as usize], "{asked}");
        }
        let touched = (range.end - 1) / fragment - range.start / fragment + 1;
        assert!(file.is_cached() == (touched == 4), "{asked} costs the fragments that it lies in, and no more");
        assert!(content(&file) == whole && file.is_cached());
    }
}

#[tokio::test]
async fn several_ranges_come_in_one_body() {
    let ground = Ground::new();
    let fragment = fragment_bytes(&ground);
    let whole = bytes(3 * fragment + 5);
    let file = ground.make("page.bin", &whole);
    let asked = format!("bytes=0-9,{}-{},-5", fragment - 2, fragment + 1);
    for _ in 0..2 {
        let parts = get(&file, &[("range", &asked)]).await;
        let said = parts.fields["content-type"].to_str().unwrap();
        let boundary = said.strip_prefix("multipart/byteranges; boundary=").unwrap().trim_matches('"');
        let delimiter = format!("--{boundary}");
        let pieces = split(&parts.body, delimiter.as_bytes());
        assert!(parts.status == 206 && pieces.len() == 5 && pieces[4] == b"--\r\n", "{said}: {}", pieces.len());
        let f = fragment as usize;
        for (piece, part) in pieces[1..].iter().zip([&whole[..10], &whole[f - 2..f + 2], &whole[whole.len() - 5..]]) {
            let expected = [part, b"\r\n"].concat();
            assert!(piece.ends_with(&[b"\r\n\r\n", &expected[..]].concat()));
        }
    }
}

#[tokio::test]
async fn missing_bytes_are_not_sent() {
    let ground = Ground::new();
    let file = ground.make("page", "twelve bytes");
    let none = get(&file, &[("range", "bytes=12-")]).await;
    assert_eq!((none.status.as_u16(), &none.fields["content-range"]), (416, &"bytes */12".parse().unwrap()));
    assert_eq!((none.source, none.body.len()), (Source::None, 0));
    let file = ground.make("empty", "");
    assert_eq!(get(&file, &[("range", "bytes=0-")]).await.status, 416);
    assert_eq!(get(&file, &[]).await.fields["content-length"], "0");
}

#[test]
fn an_evicted_fragment_is_read_again() {
    let ground = Ground::new();
    let fragment = fragment_bytes(&ground);
    let whole = bytes(3 * fragment + 5);
    let file = ground.make("page", &whole);
    assert!(content(&file) == whole);
    // By the documented form of the keys of files.
    let key = format!("file:{}\0{:x}", ground.at("page").display(), 2);
    assert!(ground.files.cache().remove(key).unwrap() && !file.is_cached());
    let stored = ground.files.statistics().stored;
    assert!(content(&file) == whole && file.is_cached());
    assert_eq!(ground.files.statistics().stored, stored + 1);
}

/// The bytes before, between and after the bytes `at`.
fn split<'a>(mut text: &'a [u8], at: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    while let Some(place) = text.windows(at.len()).position(|window| window == at) {
        pieces.push(&text[..place]);
        text = &text[place + at.len()..];
    }
    pieces.push(text);
    pieces
}
