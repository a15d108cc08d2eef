//! The origin of all contenders.
//!
//! | path | response |
//! |---|---|
//! | /page/BYTES/NAME | an object of so many bytes, at once |
//! | /once/BYTES/NAME | the same, for names that are requested only once: they are counted together |
//! | /weak/BYTES/NAME | the same from an overloaded server: four at a time, 50 ms each, some wait, the others get 503 |
//! | /asked/page/BYTES/NAME | the number of requests for that path; likewise for `weak`; /asked/once for all of `once` |
//! | /asked | the number of all requests |

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::sync::Semaphore;

use crate::error::Result;
use crate::listen;
use crate::objects::{Asked, Objects};

/// The overloaded server: how many responses it makes at a time, and how long each takes.
const WORKERS: usize = 4;
const WORK: Duration = Duration::from_millis(50);
/// How many may wait for a worker.
const WAITING_MAX: usize = 16;

/// Serves until standard input ends.
pub(crate) fn run() -> Result<()> {
    let origin = Arc::new(Origin::new());
    listen::run("origin", move |request| {
        let origin = Arc::clone(&origin);
        async move { origin.answer(request.uri().path()).await }
    })
}

struct Origin {
    objects: Objects,
    /// By path, without the rest; paths of `once` are counted under that word.
    asked: Mutex<HashMap<String, u64>>,
    workers: Semaphore,
    /// The queue for a worker.
    places: Semaphore,
}

impl Origin {
    fn new() -> Self {
        Self {
            objects: Objects::of_origin(),
            asked: Mutex::default(),
            workers: Semaphore::new(WORKERS),
            places: Semaphore::new(WAITING_MAX),
        }
    }

    async fn answer(&self, path: &str) -> Response<Full<Bytes>> {
        if let Some(path) = path.strip_prefix("/asked") {
            let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            let count = if path.is_empty() { asked.values().sum() } else { asked.get(path).copied().unwrap_or(0) };
            return not_stored(StatusCode::OK, count.to_string());
        }
        let (bytes, counted) = match Asked::by(path) {
            Some(Asked { kind: "page" | "weak", bytes }) => (bytes, path),
            Some(Asked { kind: "once", bytes }) => (bytes, "/once"),
            _ => return not_stored(StatusCode::NOT_FOUND, String::new()),
        };
        self.count(counted);
        if path.starts_with("/weak/") && !self.works().await {
            return not_stored(StatusCode::SERVICE_UNAVAILABLE, String::new());
        }
        let object = self.objects.get(bytes);
        let mut response = Response::new(Full::new(object.body));
        *response.headers_mut() = object.fields;
        response
    }

    fn count(&self, path: &str) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        match asked.get_mut(path) {
            Some(count) => *count += 1,
            None => {
                asked.insert(path.to_owned(), 1);
            }
        }
    }

    /// Whether a worker took the request.
    async fn works(&self) -> bool {
        let Ok(place) = self.places.try_acquire() else { return false };
        let turn = self.workers.acquire().await;
        drop(place);
        tokio::time::sleep(WORK).await;
        turn.is_ok()
    }
}

fn not_stored(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    // The clock advances only when all tasks wait.
    #[tokio::test(start_paused = true)]
    async fn of_many_at_once_the_weak_origin_answers_those_that_it_works_for_and_those_that_find_a_place() {
        let origin = Arc::new(Origin::new());
        let asked: Vec<_> = (0..30)
            .map(|_| {
                let origin = Arc::clone(&origin);
                tokio::spawn(async move { origin.answer("/weak/1/x").await.status() })
            })
            .collect();
        let mut answered = 0;
        for one in asked {
            answered += usize::from(one.await.expect("no panic") == StatusCode::OK);
        }
        assert_eq!(answered, WORKERS + WAITING_MAX);
        assert_eq!(origin.places.available_permits(), WAITING_MAX);
        // All thirty have arrived, including the refused ones.
        assert_eq!(origin.asked.lock().expect("no panic")["/weak/1/x"], 30);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_refused_is_told_so_at_once() {
        let origin = Origin::new();
        let places = origin.places.try_acquire_many(WAITING_MAX as u32).expect("all of them");
        let refused = origin.answer("/weak/1/x").await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()[CACHE_CONTROL], "no-store");
        drop(places);
        assert_eq!(origin.answer("/weak/1/x").await.status(), StatusCode::OK);
    }
}
