//! Requests for missing files: the service's own errors, or a fallback's response.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use eyewall_tower::files::ServeFile;
use http::{Method, Request, Response};
use tower_service::Service;

use crate::support::{Site, get, request, send};

/// Echoes its request. It must be polled ready first, and its clone isn't ready.
#[derive(Default)]
struct Careful {
    is_ready: bool,
}

impl Clone for Careful {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Service<Request<String>> for Careful {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<String>) -> Self::Future {
        assert!(std::mem::take(&mut self.is_ready));
        let range = request.headers().get("range").map_or("none", |range| range.to_str().unwrap());
        let text = format!("{} {} {range} {}", request.method(), request.uri(), request.body());
        ready(Ok(Response::builder().status(202).header("x-own", "1").body(text).unwrap()))
    }
}

#[tokio::test]
async fn without_a_fallback_errors_are_uncacheable_lines_of_text() {
    let site = Site::new(&["page.html", "folder/page.html", ".secret"]);
    let dir = site.serve();
    for (target, status, text) in [
        ("/none", 404, "404 Not Found: nothing exists at this address\n"),
        ("/folder", 404, "404 Not Found: nothing exists at this address\n"),
        ("/folder/", 404, "404 Not Found: nothing exists at this address\n"),
        ("/page.html/", 404, "404 Not Found: nothing exists at this address\n"),
        ("/.secret", 404, "404 Not Found: nothing exists at this address\n"),
        ("/..", 400, "400 Bad Request: the path is malformed\n"),
        ("/%zz", 400, "400 Bad Request: the path is malformed\n"),
    ] {
        let taken = get(&dir, target, &[]).await;
        assert_eq!((taken.status, taken.text()), (status, text), "{target}");
        assert_eq!(taken.field("cache-control"), "no-store");
        assert_eq!(taken.field("content-type"), "text/plain; charset=utf-8");
    }
}

#[tokio::test]
async fn methods_that_files_do_not_answer_are_refused() {
    let site = Site::new(&["page.html"]);
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS, Method::from_bytes(b"QUERY").unwrap()] {
        for dir in [site.serve(), site.serve().call_fallback_on_method_not_allowed(true)] {
            let taken = send(&dir, request(method.clone(), "/page.html", &[])).await;
            assert_eq!((taken.status, taken.field("allow")), (405, "GET, HEAD"), "{method}");
            assert_eq!(taken.text(), "405 Method Not Allowed: files support only GET and HEAD\n");
        }
        let taken = send(&site.serve().fallback(Careful::default()), request(method.clone(), "/none", &[])).await;
        assert_eq!(taken.status, 405, "the fallback isn't asked");
    }
}

#[tokio::test]
async fn a_fallback_gets_the_original_request() {
    let site = Site::new(&["page.html", ".secret"]);
    let dir = site.serve().fallback(Careful::default());
    assert_eq!(get(&dir, "/page.html", &[]).await.text(), "page.html");
    for target in ["/none?a=b", "/.secret", "/a%2fb", "/%zz", "/../page.html"] {
        for _ in 0..2 {
            let taken = get(&dir, target, &[("range", "bytes=0-1")]).await;
            assert_eq!((taken.status, taken.field("x-own")), (202, "1"));
            assert_eq!(taken.text(), format!("GET {target} bytes=0-1 "));
        }
    }
    let dir = dir.call_fallback_on_method_not_allowed(true);
    let posted = request(Method::POST, "/page.html", &[]).map(|_| "its body".to_owned());
    assert_eq!(send(&dir, posted).await.text(), "POST /page.html none its body");
}

#[tokio::test]
async fn a_not_found_service_always_answers_404() {
    let site = Site::new(&["page.html", "404.html"]);
    let taken = get(&site.serve().not_found_service(Careful::default()), "/none", &[("range", "bytes=0-1")]).await;
    assert_eq!((taken.status, taken.text()), (404, "GET /none none "), "conditions and ranges are for what is there");
    let dir = site.serve().not_found_service(ServeFile::new(site.at("404.html"), &site.files));
    let first = site.get_until(&dir, "/none", "etag").await;
    assert_eq!((first.status, first.text()), (404, "404.html"));
    let again = get(&dir, "/none", &[("if-none-match", first.field("etag")), ("range", "bytes=0-1")]).await;
    assert_eq!((again.status, again.text()), (404, "404.html"));
}

#[tokio::test]
async fn a_file_may_answer_for_all_missing_files() {
    let site = Site::new(&["app.js", "index.html"]);
    let dir = site.serve().fallback(ServeFile::new(site.at("index.html"), &site.files));
    for (target, text) in [("/app.js", "app.js"), ("/users/7", "index.html"), ("/", "index.html")] {
        let taken = get(&dir, target, &[]).await;
        assert_eq!((taken.status, taken.text()), (200, text));
    }
}
