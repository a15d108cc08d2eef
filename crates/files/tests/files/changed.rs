//! A file changes during a request: no response mixes versions, and the caller gets an error.

use std::fs::{self, File};
use std::io::Write as _;
use std::task::{Context, Poll, Waker};

use eyewall_files::{CachedFile, Source, is_changed};
use eyewall_http::message::Request;
use http::{HeaderMap, Method};

use crate::support::{Ground, bytes, content, get, take};

/// Some fragments of 32 KiB.
const LENGTH: u64 = 100_000;

async fn error_of(file: &CachedFile) -> std::io::Error {
    let fields = HeaderMap::new();
    file.answer(Request { method: &Method::GET, fields: &fields }).await.unwrap_err()
}

#[tokio::test]
async fn a_file_that_is_another_when_it_is_read_is_not_answered() {
    let changes: [fn(&Ground); 5] = [
        |ground| drop(ground.write("page", bytes(LENGTH + 1))),
        |ground| File::options().append(true).open(ground.at("page")).unwrap().write_all(b"more").unwrap(),
        |ground| File::options().write(true).open(ground.at("page")).unwrap().write_all(b"as long").unwrap(),
        |ground| File::options().write(true).open(ground.at("page")).unwrap().set_len(3).unwrap(),
        |ground| File::options().write(true).open(ground.at("page")).unwrap().set_len(0).unwrap(),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let ground = Ground::new();
        let file = ground.make("page", bytes(LENGTH));
        change(&ground);
        assert!(is_changed(&error_of(&file).await), "{number}");
        assert_eq!(ground.files.statistics().stored, 0);
        assert!(content(&ground.settled("page")) == fs::read(ground.at("page")).unwrap());
    }
}

#[tokio::test]
async fn a_body_ends_with_an_error_where_the_file_changes_while_it_is_taken() {
    for length in [LENGTH, 40_000] {
        let ground = Ground::new();
        let file = ground.make("page", bytes(LENGTH));
        let mut body = file.content();
        assert!(body.next().unwrap().is_ok());
        ground.write("page", vec![0; length as usize]);
        let error = body.next().unwrap().unwrap_err();
        assert!(is_changed(&error) && error.to_string().contains("changed"), "{error}");
        assert!(body.next().is_none() && body.bytes_left() == 0, "nothing comes after an error");
        assert!(!file.is_cached());
    }
}

#[test]
fn a_file_that_is_replaced_while_it_is_read_comes_as_it_was() {
    let ground = Ground::new();
    let file = ground.make("page", bytes(LENGTH));
    let mut body = file.content();
    let mut taken = body.next().unwrap().unwrap().to_vec();
    let next = ground.write("next", "the next version");
    fs::rename(next, ground.at("page")).unwrap();
    taken.extend(body.flat_map(|piece| piece.unwrap()));
    assert!(taken == bytes(LENGTH));
    assert!(!file.is_cached(), "who asks for the old one, now, is nobody");
    assert_eq!(content(&ground.settled("page")), b"the next version");
}

#[test]
fn a_file_that_is_known_and_replaced_while_it_is_read_comes_as_it_was() {
    let ground = Ground::new();
    ground.write("page", bytes(LENGTH));
    ground.old("page");
    let file = ground.files.open_blocking(ground.at("page")).unwrap();
    let mut body = file.content();
    let mut taken = body.next().unwrap().unwrap().to_vec();
    fs::remove_file(ground.at("page")).unwrap();
    taken.extend(body.flat_map(|piece| piece.unwrap()));
    assert!(taken == bytes(LENGTH));
}

#[tokio::test]
async fn a_file_that_has_just_changed_is_sent_and_not_kept() {
    let ground = Ground::new();
    // The loop ends, unless the machine stops each time between the write and the look.
    let taken = loop {
        ground.write("page", "new");
        let file = ground.files.open(ground.at("page")).await.unwrap();
        if !file.fields().contains_key("etag") {
            break get(&file, &[]).await;
        }
    };
    assert_eq!((taken.source, &taken.body[..]), (Source::File("just-changed"), &b"new"[..]));
    assert!(!taken.fields.contains_key("last-modified"), "they could stand for two versions");
    assert_eq!(ground.files.statistics().stored, 0);
}

#[tokio::test]
async fn a_request_for_a_path_gets_the_present_file() {
    let ground = Ground::new();
    for version in ["first", "second, longer", "third"] {
        ground.write("page", version);
        let fields = HeaderMap::new();
        for _ in 0..3 {
            let request = Request { method: &Method::GET, fields: &fields };
            let taken = take(ground.files.answer(ground.at("page"), request).await.unwrap());
            assert_eq!(taken.body, version.as_bytes());
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_caller_that_polls_and_then_iterates_gets_each_byte_once() {
    let ground = Ground::new();
    let file = ground.make("page", bytes(LENGTH));
    let mut body = file.content();
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(body.poll_piece(&mut context), Poll::Pending));
    let mut taken = body.next().unwrap().unwrap().to_vec();
    while !body.poll_piece(&mut context).map(|piece| piece.map(|piece| taken.extend(piece.unwrap()))).is_pending() {
        if body.bytes_left() == 0 {
            break;
        }
    }
    taken.extend(body.flat_map(|piece| piece.unwrap()));
    assert!(taken == bytes(LENGTH));
}
