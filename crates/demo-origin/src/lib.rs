//! The origin of `make run`: a small site whose pages take 50 ms to make and show when they were made. So a visitor sees the effect
//! of a cache in front of it.
//!
//! It is a crate of its own so that `make run` compiles nothing that only tests need.

#![forbid(unsafe_code)]

mod page;

use std::convert::Infallible;
use std::io;
use std::net;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use page::{Made, PAGES, Page};
use tokio::net::TcpListener;

/// How long a page takes, like one that queries a database.
const WORK: Duration = Duration::from_millis(50);
/// Shared caches may use a page for 30 s. Browsers revalidate each time, so that every click shows the cache's
/// work.
const PAGE_LIFE: HeaderValue = HeaderValue::from_static("s-maxage=30, max-age=0");
const FILE_LIFE: HeaderValue = HeaderValue::from_static("max-age=30");
const NO_LIFE: HeaderValue = HeaderValue::from_static("no-store");

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("made.js");
const CYCLONE: &str = include_str!("cyclone.svg");
const SECTION: &str = include_str!("section.svg");

/// The number of pages that the origin made; responses from the cache don't count.
static PAGES_MADE: AtomicU64 = AtomicU64::new(0);

/// Serves HTTP/1.1 at `listener`, for as long as it can accept connections.
///
/// # Errors
/// The system's error if it gives no runtime or no more connections.
pub fn serve(listener: net::TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(async move {
                // A client that disconnects is normal.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
            });
        }
    })
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    let response = match path {
        _ if request.method() != Method::GET && request.method() != Method::HEAD => {
            text(StatusCode::METHOD_NOT_ALLOWED, "this site supports only GET and HEAD\n")
        }
        "/style.css" => file("text/css; charset=utf-8", STYLE).await,
        "/made.js" => file("text/javascript; charset=utf-8", SCRIPT).await,
        "/cyclone.svg" => file("image/svg+xml", CYCLONE).await,
        "/section.svg" => file("image/svg+xml", SECTION).await,
        _ => match PAGES.iter().find(|page| page.path == path) {
            Some(page) => made(page).await,
            None => text(StatusCode::NOT_FOUND, "the demo has no such page\n"),
        },
    };
    Ok(response)
}

/// Makes a page that shows when it was made.
async fn made(page: &Page) -> Response<Full<Bytes>> {
    tokio::time::sleep(WORK).await;
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let made = Made { number: PAGES_MADE.fetch_add(1, Ordering::Relaxed) + 1, at };
    let life = if page.is_stored { PAGE_LIFE } else { NO_LIFE };
    let mut response = content("text/html; charset=utf-8", page.html(&made), life);
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}-{}\"", at.as_millis(), made.number)) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

async fn file(kind: &'static str, bytes: &'static str) -> Response<Full<Bytes>> {
    tokio::time::sleep(WORK).await;
    content(kind, bytes, FILE_LIFE)
}

fn text(status: StatusCode, words: &'static str) -> Response<Full<Bytes>> {
    let mut response = content("text/plain; charset=utf-8", words, NO_LIFE);
    *response.status_mut() = status;
    response
}

fn content(kind: &'static str, bytes: impl Into<Bytes>, life: HeaderValue) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(bytes.into()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, life);
    response
}
