//! Tests of the example of a caching proxy, with an origin that counts the requests that reach it.

#![cfg(test)]

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use eyewall::Options;
use http::header::{CONTENT_RANGE, ETAG, IF_NONE_MATCH, RANGE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

#[path = "../examples/caching_proxy.rs"]
#[expect(dead_code, reason = "its `main` is for the program")]
mod caching_proxy;

/// Longer than an entry of the page cache, so it is stored in fragments.
const LARGE_BYTES: usize = 3 << 20;

/// Letters, different in each fragment.
fn large() -> Vec<u8> {
    (0..LARGE_BYTES).map(|position| b'a' + (position / 1000 % 26) as u8).collect()
}

/// A page that counts how often it was made, and a large file.
fn answer(count: &AtomicUsize, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let number = count.fetch_add(1, Ordering::SeqCst) + 1;
    let response = Response::builder().header("cache-control", "max-age=60").header(ETAG, "\"a\"");
    let body = if request.uri().path() == "/large" { large() } else { format!("page {number}").into_bytes() };
    response.body(Full::from(body)).unwrap()
}

async fn origin(listener: TcpListener, count: Arc<AtomicUsize>) {
    while let Ok((connection, _)) = listener.accept().await {
        let count = Arc::clone(&count);
        let service = service_fn(move |request| ready(Ok::<_, Infallible>(answer(&count, &request))));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(connection), service));
    }
}

/// The address of a proxy, and the counter of the requests to its origin.
async fn proxy() -> (SocketAddr, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let (behind, before) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let (origin_address, address) = (behind.local_addr().unwrap(), before.local_addr().unwrap());
    tokio::spawn(origin(behind, Arc::clone(&count)));
    let cache = Options::new().size(64 << 20).heap().unwrap();
    tokio::spawn(caching_proxy::serve(before, format!("http://{origin_address}").parse().unwrap(), cache));
    (address, count)
}

async fn ask(address: SocketAddr, method: Method, path: &str, field: Option<(&str, &str)>) -> Response<Bytes> {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let mut request = Request::builder().method(method).uri(format!("http://{address}{path}"));
    if let Some((name, value)) = field {
        request = request.header(name, value);
    }
    let (head, body) = client.request(request.body(Full::default()).unwrap()).await.unwrap().into_parts();
    Response::from_parts(head, body.collect().await.unwrap().to_bytes())
}

fn told(response: &Response<Bytes>) -> &str {
    response.headers()["cache-status"].to_str().unwrap()
}

#[tokio::test]
async fn a_fresh_response_comes_from_the_volume_until_a_change() {
    let (address, count) = proxy().await;
    let first = ask(address, Method::GET, "/", None).await;
    assert_eq!(
        (&first.body()[..], told(&first)),
        (&b"page 1"[..], "Eyewall; fwd=uri-miss; fwd-status=200; stored; ttl=60")
    );
    let second = ask(address, Method::GET, "/", None).await;
    assert!(second.body() == "page 1" && told(&second).starts_with("Eyewall; hit"));
    let had = ask(address, Method::GET, "/", Some((IF_NONE_MATCH.as_str(), "\"a\""))).await;
    assert_eq!((had.status(), count.load(Ordering::SeqCst)), (StatusCode::NOT_MODIFIED, 1));
    assert_eq!(ask(address, Method::POST, "/", None).await.body(), "page 2");
    assert_eq!(ask(address, Method::GET, "/", None).await.body(), "page 3");
}

#[tokio::test]
async fn a_large_file_comes_in_fragments_and_ranges_of_it_cost_the_origin_nothing() {
    let (address, count) = proxy().await;
    let whole = ask(address, Method::GET, "/large", None).await;
    assert_eq!(whole.body(), &large());
    let part = ask(address, Method::GET, "/large", Some((RANGE.as_str(), "bytes=2000000-2000999"))).await;
    assert_eq!((part.status(), &part.body()[..]), (StatusCode::PARTIAL_CONTENT, &large()[2_000_000..2_001_000]));
    assert_eq!(part.headers()[CONTENT_RANGE], format!("bytes 2000000-2000999/{LARGE_BYTES}").as_str());
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_unreachable_origin_gives_a_502() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let cache = Options::new().heap().unwrap();
    tokio::spawn(caching_proxy::serve(listener, format!("http://{nobody}").parse().unwrap(), cache));
    let response = ask(address, Method::GET, "/", None).await;
    assert_eq!(
        (response.status(), told(&response)),
        (StatusCode::BAD_GATEWAY, "Eyewall; fwd=uri-miss; detail=upstream-unreachable")
    );
}
