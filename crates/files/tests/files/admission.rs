//! Which files are kept, by their length and by the admission; and the counts of requests.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use eyewall_files::{FileCacheOptions, FileStatistics, Source, Statistics, admission};
use eyewall_http::message::Request;
use http::{HeaderMap, Method};

use crate::support::{Ground, bytes, content, get, take};

#[tokio::test]
async fn short_and_long_files_are_sent_without_being_kept() {
    let ground = Ground::with(FileCacheOptions::new().min_bytes(10).max_bytes(100_000));
    for (length, source) in [
        (9, Source::File("too-small")),
        (10, Source::Stored),
        (100_000, Source::Stored),
        (100_001, Source::File("too-large")),
    ] {
        let file = ground.make(&length.to_string(), bytes(length));
        let taken = get(&file, &[]).await;
        assert!(taken.body == bytes(length));
        assert_eq!((taken.source, file.is_cached()), (source, source == Source::Stored), "{length}");
    }
    assert_eq!(ground.files.used_bytes(), 100_010);
}

#[tokio::test]
async fn unless_it_is_said_a_file_may_take_a_quarter_of_the_volume() {
    let ground = Ground::new();
    let quarter = ground.files.cache().size() / 4;
    let file = ground.make("fits", bytes(quarter));
    assert_eq!(get(&file, &[]).await.source, Source::Stored);
    let file = ground.make("too long", bytes(quarter + 1));
    let taken = get(&file, &[]).await;
    assert!(taken.source == Source::File("too-large") && taken.body == bytes(quarter + 1));
}

#[tokio::test]
async fn a_file_admitted_at_two_requests_is_kept_the_second_time() {
    let ground = Ground::with(FileCacheOptions::new().admission(admission::asked_for(2)));
    let file = ground.make("page", "page");
    for source in [Source::File("not-admitted"), Source::Stored, Source::Volume] {
        assert_eq!(get(&file, &[]).await.source, source);
    }
    assert_eq!(ground.files.file_statistics(ground.at("page")), Some(FileStatistics { hits: 1, misses: 2 }));
}

#[tokio::test]
async fn large_files_earn_their_room_and_small_ones_are_kept_at_once() {
    let ground = Ground::with(FileCacheOptions::new().admission(admission::by_use_and_size(50_000)));
    let small = ground.make("small", bytes(49_999));
    assert_eq!(get(&small, &[]).await.source, Source::Stored);
    let large = ground.make("large", bytes(100_000));
    for source in [Source::File("not-admitted"), Source::File("not-admitted"), Source::Stored, Source::Volume] {
        assert_eq!(get(&large, &[]).await.source, source);
    }
}

#[test]
fn an_admission_is_told_which_file_it_is_about() {
    let asked: Arc<Mutex<Vec<(PathBuf, u64, u64)>>> = Arc::default();
    let told = Arc::clone(&asked);
    let ground = Ground::with(FileCacheOptions::new().admission(move |file| {
        told.lock().unwrap().push((file.path.to_owned(), file.bytes, file.asked));
        false
    }));
    let file = ground.make("page", "four");
    for _ in 0..2 {
        assert_eq!(content(&file), b"four");
    }
    assert_eq!(*asked.lock().unwrap(), [(ground.at("page"), 4, 1), (ground.at("page"), 4, 2)]);
    assert_eq!(ground.files.used_bytes(), 0);
}

#[tokio::test]
async fn a_head_has_the_fields_of_a_get_and_reads_nothing() {
    let ground = Ground::new();
    let file = ground.make("page.css", "body {}");
    let none = HeaderMap::new();
    let head = Request { method: &Method::HEAD, fields: &none };
    for source in [Source::File("head"), Source::Volume] {
        let answer = file.answer(head).await.unwrap();
        assert_eq!((answer.source, answer.body.bytes_left()), (source, 0));
        assert_eq!(file.answer_now(head).source, source);
        let got = get(&file, &[]).await;
        assert_eq!((answer.status, answer.fields), (got.status, got.fields));
    }
    assert_eq!(ground.files.statistics().stored, 1);
}

#[tokio::test]
async fn an_immediate_answer_has_the_prepared_bytes() {
    let ground = Ground::new();
    let none = HeaderMap::new();
    let get = Request { method: &Method::GET, fields: &none };
    let file = ground.make("page", bytes(100_000));
    let unprepared = take(file.answer_now(get));
    assert!(unprepared.source == Source::File("not-stored") && unprepared.body == bytes(100_000));
    assert!(file.is_cached(), "it is kept when it is taken");
    let file = ground.make("other", bytes(100_000));
    file.prepare().await.unwrap();
    let prepared = take(file.answer_now(get));
    assert!(prepared.source == Source::Stored && prepared.body == bytes(100_000), "it was read for this answer");
}

#[tokio::test]
async fn sent_content_is_counted() {
    let ground = Ground::with(FileCacheOptions::new().max_bytes(100_000));
    assert_eq!(ground.files.statistics(), Statistics::default());
    assert_eq!(ground.files.file_statistics(ground.at("page")), None);
    let (page, large) = (ground.make("page", "page"), ground.make("large", bytes(100_001)));
    let looks = ground.files.statistics().looks;
    for _ in 0..3 {
        get(&page, &[]).await;
    }
    get(&large, &[]).await;
    get(&page, &[("if-none-match", "*")]).await;
    let pieces = 100_001_u64.div_ceil(32 << 10);
    let counted = Statistics { hits: 2, misses: 2, stored: 1, not_stored: pieces, looks };
    assert_eq!(ground.files.statistics(), counted);
    assert_eq!(ground.files.file_statistics(ground.at("page")), Some(FileStatistics { hits: 2, misses: 1 }));
    assert_eq!(ground.files.file_statistics(ground.at("large")), Some(FileStatistics { hits: 0, misses: 1 }));
}

#[tokio::test]
async fn a_file_that_displaces_much_is_kept_at_its_second_request() {
    let ground = Ground::new();
    let size = ground.files.cache().size();
    let large = ground.make("large", bytes(size / 32 + 1));
    let prepared = ground.make("prepared", bytes(size / 32 + 1));
    let film = ground.make("film", bytes(size / 8));
    assert_eq!(get(&ground.make("early", bytes(size / 8)), &[]).await.source, Source::Stored, "there is room");
    for number in 0..size / 2 / 60_000 {
        ground.files.cache().put(format!("page {number}"), vec![7; 60_000]).unwrap();
    }
    for file in [&large, &film] {
        for source in [Source::File("asked-once"), Source::Stored, Source::Volume] {
            let taken = get(file, &[]).await;
            assert!(taken.source == source && taken.body == bytes(file.bytes()), "{:?}", taken.source);
        }
    }
    assert_eq!(get(&ground.make("small", bytes(size / 32)), &[]).await.source, Source::Stored);
    let none = HeaderMap::new();
    for source in [Source::File("asked-once"), Source::Stored] {
        prepared.prepare().await.unwrap();
        assert_eq!(take(prepared.answer_now(Request { method: &Method::GET, fields: &none })).source, source);
    }
}

#[test]
fn who_refreshes_a_file_wants_it_kept() {
    let ground = Ground::new();
    let size = ground.files.cache().size();
    for number in 0..=size / 2 / 60_000 {
        ground.files.cache().put(format!("page {number}"), vec![7; 60_000]).unwrap();
    }
    for name in ["content", "refreshed"] {
        ground.make(name, bytes(size / 16));
    }
    let file = ground.settled("content");
    assert!(content(&file) == bytes(size / 16) && !file.is_cached());
    assert!(content(&file) == bytes(size / 16) && file.is_cached());
    assert!(ground.files.refresh(ground.at("refreshed")).unwrap());
}
