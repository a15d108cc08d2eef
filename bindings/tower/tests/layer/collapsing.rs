//! Request collapsing: of concurrent requests for the same key, one reaches the service.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use http::{Method, Response};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::support::{Reply, Site, request, respond, volume};

/// A site whose answers wait for permits.
fn gated(answer: impl Fn(usize) -> io::Result<Response<Body>> + Send + Sync + 'static) -> (Site, Arc<Semaphore>) {
    let (gate, count) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let (permits, answer) = (Arc::clone(&gate), Arc::new(answer));
    let site = Site::over(
        volume(),
        |layer| layer.patience(Duration::from_mins(10)),
        move |_, _| {
            let (permits, answer) = (Arc::clone(&permits), Arc::clone(&answer));
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            async move {
                permits.acquire().await.unwrap().forget();
                answer(number)
            }
        },
    );
    (site, gate)
}

fn many(site: &Site, path: &'static str) -> Vec<JoinHandle<io::Result<Reply>>> {
    let ask = |site: Site| async move {
        Ok(Reply::of(site.start(request(Method::GET, path, &[], Body::empty())).await?).await)
    };
    (0..8).map(|_| tokio::spawn(ask(site.clone()))).collect()
}

/// Waits until no task can go on.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_others_wait_for_the_first() {
    let (site, gate) = gated(|_| Ok(respond(&[("cache-control", "max-age=60")], "once")));
    let asking = many(&site, "/");
    settle().await;
    assert_eq!(site.count(), 1);
    gate.add_permits(1);
    let mut collapsed = 0;
    for task in asking {
        let reply = task.await.unwrap().unwrap();
        assert_eq!(reply.text(), "once");
        collapsed += usize::from(reply.told().contains("; collapsed"));
    }
    assert_eq!((collapsed, site.count()), (7, 1));
}

#[tokio::test]
async fn each_request_for_an_unshareable_response_asks_at_once_and_none_waits_again() {
    let (site, gate) = gated(|_| Ok(respond(&[("cache-control", "private")], "own")));
    let asking = many(&site, "/");
    settle().await;
    assert_eq!(site.count(), 1);
    gate.add_permits(1);
    settle().await;
    assert_eq!(site.count(), 8, "all the others ask side by side");
    gate.add_permits(7);
    for task in asking {
        assert_eq!(task.await.unwrap().unwrap().text(), "own");
    }
    let later = many(&site, "/");
    settle().await;
    assert_eq!(site.count(), 16, "it is remembered");
    gate.add_permits(8);
    for task in later {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_waiting_request_replaces_the_first_when_its_client_leaves() {
    let (site, gate) = gated(|number| Ok(respond(&[("cache-control", "max-age=60")], format!("of {number}"))));
    let asking = many(&site, "/");
    settle().await;
    asking[0].abort();
    settle().await;
    assert_eq!(site.count(), 2);
    gate.add_permits(1);
    for task in asking.into_iter().skip(1) {
        assert_eq!(task.await.unwrap().unwrap().text(), "of 2");
    }
    assert_eq!(site.count(), 2);
}

#[tokio::test]
async fn a_waiting_request_replaces_the_first_when_that_one_fails() {
    let (site, gate) = gated(|number| match number {
        1 => Err(io::Error::other("no database")),
        _ => Ok(respond(&[("cache-control", "max-age=60")], "made")),
    });
    let asking = many(&site, "/");
    settle().await;
    gate.add_permits(2);
    let mut failed = 0;
    for task in asking {
        match task.await.unwrap() {
            Ok(reply) => assert_eq!(reply.text(), "made"),
            Err(_) => failed += 1,
        }
    }
    assert_eq!((failed, site.count()), (1, 2));
}

#[tokio::test]
async fn requests_for_other_variants_ask_for_themselves() {
    let gate = Arc::new(Semaphore::new(0));
    let permits = Arc::clone(&gate);
    let site = Site::over(
        volume(),
        |layer| layer,
        move |parts, _| {
            let permits = Arc::clone(&permits);
            async move {
                permits.acquire().await.unwrap().forget();
                let language = parts.headers["accept-language"].to_str().unwrap().to_owned();
                Ok(respond(&[("cache-control", "max-age=60"), ("vary", "accept-language")], language))
            }
        },
    );
    let languages = ["de", "fr", "de", "fr"];
    let asking: Vec<_> = languages
        .into_iter()
        .map(|language| {
            let site = site.clone();
            tokio::spawn(async move { site.get_with("/", &[("accept-language", language)]).await })
        })
        .collect();
    settle().await;
    assert_eq!(site.count(), 1);
    gate.add_permits(2);
    for (task, language) in asking.into_iter().zip(languages) {
        assert_eq!(task.await.unwrap().text(), language);
    }
    assert_eq!(site.count(), 2);
}

#[tokio::test]
async fn a_request_with_no_cache_does_not_wait() {
    let (site, gate) = gated(|number| Ok(respond(&[("cache-control", "max-age=60")], format!("of {number}"))));
    let first = many(&site, "/");
    let own = tokio::spawn({
        let site = site.clone();
        async move { site.get_with("/", &[("cache-control", "no-cache")]).await }
    });
    settle().await;
    assert_eq!(site.count(), 2);
    gate.add_permits(2);
    assert!(!own.await.unwrap().told().contains("collapsed"));
    for task in first {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn patience_has_an_end() {
    let (site, gate) = gated(|number| Ok(respond(&[("cache-control", "max-age=60")], format!("of {number}"))));
    let asking = many(&site, "/");
    settle().await;
    tokio::time::advance(Duration::from_secs(601)).await;
    settle().await;
    assert_eq!(site.count(), 8);
    gate.add_permits(8);
    for task in asking {
        task.await.unwrap().unwrap();
    }
}
