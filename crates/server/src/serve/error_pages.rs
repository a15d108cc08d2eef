//! Error pages: a page of the site in place of an error in words.
//!
//! A page comes from the site's folder, or from its origin. The cache keeps a page of the origin like any other response, and one
//! worker asks for it again and again, so that it is there when the origin is not. It is sent however old it is.

use std::sync::{Arc, Weak};
use std::time::Duration;

use http::header::{
    ACCEPT, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH,
    CONTENT_LOCATION, CONTENT_TYPE, ETAG, LAST_MODIFIED, TRAILER,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;

use super::body::Body;
use super::files::Files;
use super::proxy::Proxy;
use crate::error_pages::ErrorPages;
use eyewall_page_cache::reply::Own;

/// How often the pages are asked for.
const EVERY: Duration = Duration::from_mins(1);
/// The first wait after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The fields that describe a body. Those of the error go, those of the page come.
const OF_BODY: [HeaderName; 14] = [
    CONTENT_TYPE,
    CONTENT_LENGTH,
    CONTENT_LANGUAGE,
    CONTENT_ENCODING,
    CONTENT_DISPOSITION,
    CONTENT_LOCATION,
    ETAG,
    LAST_MODIFIED,
    ACCEPT_RANGES,
    TRAILER,
    HeaderName::from_static("digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("content-md5"),
];

/// Whether a client that accepts these types can show a page.
pub(super) fn takes_pages(fields: &HeaderMap) -> bool {
    let is_for_all = |value: &HeaderValue| {
        let value = value.to_str().unwrap_or_default();
        ["text/html", "text/*", "*/*"].iter().any(|media| value.contains(media))
    };
    let mut accepted = fields.get_all(ACCEPT).iter().peekable();
    accepted.peek().is_none() || accepted.any(is_for_all)
}

/// The path of the page that takes the place of a response, if there is one.
pub(super) fn page_for<'a>(pages: &'a ErrorPages, response: &Response<Body>) -> Option<&'a str> {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return None;
    }
    let is_own = response.extensions().get::<Own>().is_some();
    pages.of_status(status).filter(|_| is_own || pages.replaces(status))
}

/// The page at a path: the file of the site, or the stored response of its origin.
pub(super) async fn find(path: &str, files: Option<&Files>, proxy: Option<&Arc<Proxy>>) -> Option<Response<Body>> {
    let target: Uri = path.parse().ok()?;
    if let Some(files) = files {
        let (parts, ()) = Request::get(target.clone()).body(()).ok()?.into_parts();
        if let Some(found) = files.find_answer(&parts, false).await.filter(|found| found.status() == StatusCode::OK) {
            return Some(found);
        }
    }
    proxy?.stored_error_page(target).await.filter(|found| found.status() == StatusCode::OK)
}

/// The error with the page as its body. Its status and its other fields stay.
pub(super) fn with_page(error: Response<Body>, page: Response<Body>) -> Response<Body> {
    let (mut head, _) = error.into_parts();
    let (of_page, body) = page.into_parts();
    for name in OF_BODY {
        head.headers.remove(&name);
    }
    for name in [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_LANGUAGE, CONTENT_ENCODING] {
        head.headers.extend(of_page.headers.get(&name).cloned().map(|value| (name, value)));
    }
    head.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Response::from_parts(head, body)
}

/// Asks the origin for the error pages of a site, until nothing else uses its proxy.
pub(super) async fn keep_fetching(proxy: Weak<Proxy>) {
    let mut wait = AFTER_FAILURE;
    loop {
        let Some(is_complete) = fetch(&proxy).await else { return };
        wait = if is_complete { EVERY } else { wait };
        tokio::time::sleep(wait).await;
        wait = if is_complete { AFTER_FAILURE } else { EVERY.min(wait * 2) };
    }
}

/// Asks for each page. Returns whether all came; `None` if the proxy is gone.
async fn fetch(proxy: &Weak<Proxy>) -> Option<bool> {
    let proxy = proxy.upgrade()?;
    let mut is_complete = true;
    for path in proxy.error_pages().paths() {
        let Ok(target) = path.parse::<Uri>() else { continue };
        let is_fetched = match proxy.fetch_error_page(target).await {
            // The cache stores a page whose body somebody reads.
            Some(page) if page.status() == StatusCode::OK => page.into_body().collect().await.is_ok(),
            _ => false,
        };
        if !is_fetched {
            tracing::debug!(path, "an error page could not be fetched");
        }
        is_complete &= is_fetched;
    }
    Some(is_complete)
}
