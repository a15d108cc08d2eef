//! A caller that can send bytes of files itself gets pieces of a large file, and the volume gets nothing.

use std::fs::{self, File};
use std::future::poll_fn;
use std::io::{IoSliceMut, Read as _, Seek as _, SeekFrom};

use eyewall_files::{Answer, Body, CachedFile, FilePath, FilePiece, Folder, FolderOptions, Source, is_changed};
use eyewall_http::message::Request;
use http::{HeaderMap, Method};
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::support::{Ground, bytes, fields, take};

const LENGTH: u64 = 2_500_000;

async fn answer(file: &CachedFile, pairs: &[(&'static str, &str)]) -> Answer {
    let fields = fields(pairs);
    file.answer_from_file(Request { method: &Method::GET, fields: &fields }, LENGTH).await.unwrap()
}

async fn piece(body: &mut Body) -> Option<FilePiece> {
    let mut piece = body.next_file_piece()?;
    poll_fn(|context| piece.poll_resident(context)).await.unwrap();
    Some(piece)
}

/// What a socket would get.
async fn sent(mut body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(mut piece) = piece(&mut body).await {
        let mut file = piece.file();
        file.seek(SeekFrom::Start(piece.range().start)).unwrap();
        let sent = file.take(piece.bytes_before_end()).read_to_end(&mut bytes).unwrap();
        piece.check().unwrap();
        piece.advance(sent as u64);
        if !piece.range().is_empty() {
            bytes.extend_from_slice(piece.read_end(&mut [0; FilePiece::END_BYTES]).unwrap());
            piece.advance(u64::MAX);
        }
        assert!(piece.range().is_empty());
    }
    bytes
}

#[tokio::test]
async fn the_whole_and_ranges_come_from_the_file() {
    let ground = Ground::new();
    let file = ground.make("large", bytes(LENGTH));
    if !answer(&file, &[]).await.body.is_from_file() {
        return println!("skipped: the file system doesn't tell what is in memory");
    }
    for (range, expected) in
        [("bytes=0-", 0..2_500_000), ("bytes=5-1048581", 5..1_048_582), ("bytes=-1", 2_499_999..2_500_000)]
    {
        let answer = answer(&file, &[("range", range)]).await;
        assert_eq!((answer.source, answer.body.bytes_left()), (Source::File("sendfile"), expected.len() as u64));
        assert!(sent(answer.body).await == bytes(LENGTH)[expected], "{range}");
    }
    // A caller may also take bytes.
    assert!(take(answer(&file, &[]).await).body == bytes(LENGTH));
    assert_eq!((ground.files.used_bytes(), ground.files.statistics().misses), (0, 5));
    // Others go through the volume: several ranges, and shorter files.
    assert!(!answer(&file, &[("range", "bytes=0-1,5-6")]).await.body.is_from_file());
    let short = ground.make("short", bytes(LENGTH - 1));
    let mut body = answer(&short, &[]).await.body;
    assert!(!body.is_from_file() && piece(&mut body).await.is_none());
}

#[tokio::test]
async fn a_check_tells_whether_the_file_has_changed() {
    let ground = Ground::new();
    let file = ground.make("large", bytes(LENGTH));
    let mut body = answer(&file, &[]).await.body;
    if !body.is_from_file() {
        return println!("skipped: the file system doesn't tell what is in memory");
    }
    let piece = piece(&mut body).await.unwrap();
    fs::remove_file(ground.at("large")).unwrap();
    piece.check().expect("its bytes are the same");
    let other = ground.make("other", bytes(LENGTH));
    let mut body = answer(&other, &[]).await.body;
    let piece = self::piece(&mut body).await.unwrap();
    File::options().write(true).open(ground.at("other")).unwrap().set_len(1).unwrap();
    assert!(is_changed(&piece.check().unwrap_err()));
    let empty = HeaderMap::new();
    let next = other.answer_from_file(Request { method: &Method::GET, fields: &empty }, LENGTH).await;
    assert!(is_changed(&next.unwrap_err()), "a new look is needed");
    // It does not wait for bytes that are gone.
    assert!(self::piece(&mut body).await.is_some());
}

#[tokio::test]
async fn the_end_is_not_read_from_a_changed_file() {
    let ground = Ground::new();
    let file = ground.make("large", bytes(LENGTH));
    let mut room = [0; FilePiece::END_BYTES];
    let mut body = answer(&file, &[("range", "bytes=-5")]).await.body;
    let Some(piece) = piece(&mut body).await else {
        return println!("skipped: the file system doesn't tell what is in memory");
    };
    assert_eq!((piece.bytes_before_end(), piece.read_end(&mut room).unwrap().len()), (0, 5));
    File::options().write(true).open(ground.at("large")).unwrap().set_len(1).unwrap();
    assert!(is_changed(&piece.read_end(&mut room).unwrap_err()));
}

#[tokio::test]
async fn pages_that_were_evicted_are_read_in_before_the_next_call() {
    let ground = Ground::new();
    let file = ground.make("large", bytes(LENGTH));
    let Some(mut piece) = answer(&file, &[]).await.body.next_file_piece() else {
        return println!("skipped: the file system doesn't tell what is in memory");
    };
    File::open(ground.at("large")).unwrap().sync_all().unwrap();
    fadvise(piece.file(), 0, None, Advice::DontNeed).unwrap();
    let count = poll_fn(|context| piece.poll_resident(context)).await.unwrap();
    assert!(count > 0);
    for at in (piece.range().start..piece.range().start + count).step_by(4096) {
        let read = preadv2(piece.file(), &mut [IoSliceMut::new(&mut [0])], at, ReadWriteFlags::NOWAIT);
        // The kind without storage knows no such question.
        assert!(matches!(read, Ok(1) | Err(Errno::OPNOTSUPP)), "{at}: {read:?}");
    }
}

#[tokio::test]
async fn a_small_file_in_memory_is_found_without_waiting() {
    let ground = Ground::new();
    ground.write("page.html", "small");
    ground.old("page.html");
    let folder = Folder::open(ground.folder.path(), &ground.files, FolderOptions::default()).unwrap();
    let path = FilePath::parse("/page.html", false).unwrap();
    let resident = |bytes_end| folder.find_resident(&path, HeaderMap::new, bytes_end);
    assert!(resident(6).is_none(), "nothing is known yet");
    let found = folder.find(&path).await.unwrap();
    let eyewall_files::Found::File(file) = found else { panic!() };
    assert!(resident(6).is_none(), "it isn't in the volume");
    let empty = HeaderMap::new();
    let request = Request { method: &Method::GET, fields: &empty };
    let answer = file.answer(request).await.unwrap();
    assert!(resident(5).is_none(), "it is too long");
    let hits = ground.files.statistics().hits;
    // One that is found and not used doesn't count.
    drop(resident(6));
    let Some(found) = resident(6) else {
        return println!("skipped: nothing tells of changes");
    };
    let lines = String::from_utf8(found.field_lines().unwrap().to_vec()).unwrap();
    let line =
        |(name, value): (&http::HeaderName, &http::HeaderValue)| format!("{name}: {}\r\n", value.to_str().unwrap());
    assert_eq!(lines, answer.fields.iter().map(line).collect::<String>());
    assert_eq!(&found.into_hit()[..], b"small");
    assert_eq!(ground.files.statistics().hits, hits + 1);
}
