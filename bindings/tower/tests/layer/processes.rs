//! Several processes on one volume share stored responses, and can collapse their requests.
//!
//! Two caches that opened the same file stand for two processes: they share only the volume.

use std::future::{Ready, ready};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use eyewall::{Options, Purge};
use http::Response;
use tokio::sync::Semaphore;

use crate::support::{Site, respond};

fn over<F>(path: &Path, answer: impl Fn() -> F + Send + Sync + 'static) -> Site
where
    F: Future<Output = io::Result<Response<Body>>> + Send,
{
    let cache = Options::new().size(4 << 20).open(path).unwrap();
    Site::over(cache, |layer| layer.across_processes(true), move |_, _| answer())
}

fn page(text: &'static str) -> Ready<io::Result<Response<Body>>> {
    ready(Ok(respond(&[("cache-control", "max-age=60")], text)))
}

#[tokio::test]
async fn a_stored_response_answers_and_is_purged_in_all_processes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let (one, other) = (over(&path, || page("of one")), over(&path, || page("of other")));
    one.get("/").await;
    let hit = other.get("/").await;
    assert_eq!((hit.text(), hit.is_hit(), other.count()), ("of one", true, 0));
    other.layer.purger().all(Purge::Hard).await.unwrap();
    assert!(!one.get("/").await.is_hit());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_asks_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let gate = Arc::new(Semaphore::new(0));
    let permits = Arc::clone(&gate);
    let one = over(&path, move || {
        let permits = Arc::clone(&permits);
        async move {
            permits.acquire().await.unwrap().forget();
            page("of one").await
        }
    });
    let other = over(&path, || page("of other"));
    let ask = |site: &Site| {
        let site = site.clone();
        tokio::spawn(async move { site.get("/").await })
    };
    let first = ask(&one);
    while one.count() == 0 {
        tokio::task::yield_now().await;
    }
    let second = ask(&other);
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1);
    assert_eq!(first.await.unwrap().text(), "of one");
    assert_eq!(second.await.unwrap().text(), "of one");
    assert_eq!((one.count(), other.count()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_request_asks_when_the_first_gives_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let one = over(&path, std::future::pending);
    let other = over(&path, || page("of other"));
    let first = tokio::spawn({
        let one = one.clone();
        async move { one.get("/").await }
    });
    while one.count() == 0 {
        tokio::task::yield_now().await;
    }
    let second = tokio::spawn({
        let other = other.clone();
        async move { other.get("/").await }
    });
    first.abort();
    assert_eq!(second.await.unwrap().text(), "of other");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_keeps_no_thread_waiting_for_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let one = over(&path, std::future::pending);
    let cache = Options::new().size(4 << 20).open(&path).unwrap();
    // The runtime of a test ends with its last thread.
    let set = |layer: eyewall_tower::CacheLayer| layer.across_processes(true).patience(Duration::MAX);
    let other = Site::over(cache, set, |_, _| page("of other"));
    let ask = |site: &Site| {
        let site = site.clone();
        tokio::spawn(async move { site.get("/").await })
    };
    let first = ask(&one);
    while one.count() == 0 {
        tokio::task::yield_now().await;
    }
    let second = ask(&other);
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    second.abort();
    assert!(second.await.unwrap_err().is_cancelled());
    assert!(!first.is_finished());
}
