//! A router of axum behind the layer, over a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use bytes::Bytes;
use eyewall::Purge;
use eyewall_tower::CacheLayer;
use http::Response;
use http::header::CACHE_CONTROL;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::support::volume;

async fn page(State(count): State<Arc<AtomicUsize>>, Path(name): Path<String>) -> impl IntoResponse {
    let number = count.fetch_add(1, Ordering::SeqCst) + 1;
    ([(CACHE_CONTROL, "max-age=60")], format!("{name} {number}"))
}

async fn stamp(request: Request, next: Next) -> axum::response::Response {
    next.run(request).await
}

struct Browser {
    base: String,
    client: Client<HttpConnector, Empty<Bytes>>,
}

impl Browser {
    async fn send(&self, method: &str, path: &str) -> (String, String) {
        let request = http::Request::builder().method(method).uri(format!("{}{path}", self.base));
        let response: Response<Incoming> = self.client.request(request.body(Empty::new()).unwrap()).await.unwrap();
        let told = response.headers()["cache-status"].to_str().unwrap().to_owned();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (told, String::from_utf8(body.to_vec()).unwrap())
    }
}

#[tokio::test]
async fn pages_are_made_once_and_purged_by_a_handler() {
    let layer = CacheLayer::new(volume()).default_ttl(Duration::from_secs(5));
    let purger = layer.purger();
    let router = Router::new()
        .route("/pages/{name}", get(page))
        .route("/purge", post(async move || purger.prefix("http://127.0.0.1", Purge::Hard).await.unwrap()))
        .layer(from_fn(stamp))
        .with_state(Arc::new(AtomicUsize::new(0)))
        .layer(layer);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        axum::serve(listener, router).with_graceful_shutdown(async { drop(stopped.await) }).await.unwrap();
    });
    let client = Browser { base, client: Client::builder(TokioExecutor::new()).build_http() };
    assert_eq!(client.send("GET", "/pages/a").await.1, "a 1");
    let (told, body) = client.send("GET", "/pages/a").await;
    assert!(told.starts_with("Eyewall; hit; ttl=") && body == "a 1", "{told} {body}");
    assert_eq!(client.send("HEAD", "/pages/a").await.1, "");
    assert_eq!(client.send("GET", "/pages/b").await.1, "b 2");
    client.send("POST", "/purge").await;
    assert_eq!(client.send("GET", "/pages/a").await.1, "a 3");
    drop(client);
    stop.send(()).unwrap();
    serving.await.unwrap();
}
