//! A slow page, which the cache makes once a minute: run `curl -i http://127.0.0.1:3000/news` twice.

use std::time::{Duration, SystemTime};

use axum::http::header::CACHE_CONTROL;
use axum::response::IntoResponse;
use axum::{Router, routing::get};
use eyewall::Options;
use eyewall_tower::CacheLayer;

async fn news() -> impl IntoResponse {
    tokio::time::sleep(Duration::from_millis(500)).await;
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    ([(CACHE_CONTROL, "max-age=60, stale-while-revalidate=10")], format!("made {} s after 1970\n", since.as_secs()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cache = Options::new().size(64 << 20).anonymous()?;
    let app = Router::new().route("/news", get(news)).layer(CacheLayer::new(cache));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}/news", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
