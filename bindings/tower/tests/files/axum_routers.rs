//! File services in axum, below prefixes that it removes from the path.

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use eyewall_tower::ServeFile;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use tower_service::Service as _;

use crate::support::Site;

struct Answer {
    status: StatusCode,
    location: Option<String>,
    body: String,
}

async fn ask(app: &Router, target: &str) -> Answer {
    let request = Request::get(target).body(Body::empty()).unwrap();
    let Ok::<_, Infallible>(response) = app.clone().call(request).await;
    let location = response.headers().get("location").map(|location| location.to_str().unwrap().to_owned());
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Answer { status, location, body: String::from_utf8(body.to_vec()).unwrap() }
}

#[tokio::test]
async fn a_folder_lies_below_a_prefix() {
    let site = Site::new(&["index.html", "page.html", "sub/index.html"]);
    let inner = Router::new().nest_service("/files", site.serve());
    let app = Router::new().nest_service("/static", site.serve()).nest("/outer", inner);
    for prefix in ["/static", "/outer/files"] {
        for (path, body) in
            [("", "index.html"), ("/", "index.html"), ("/page.html", "page.html"), ("/sub/", "sub/index.html")]
        {
            let answer = ask(&app, &format!("{prefix}{path}")).await;
            assert_eq!((answer.status, &*answer.body), (StatusCode::OK, body), "{prefix}{path}");
        }
        let answer = ask(&app, &format!("{prefix}/sub?a=b")).await;
        assert_eq!(answer.status, StatusCode::MOVED_PERMANENTLY);
        assert_eq!(answer.location.as_deref(), Some("./sub/?a=b"), "which holds below any prefix");
        assert_eq!(ask(&app, &format!("{prefix}/none")).await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn files_answer_where_no_route_does_and_handlers_where_no_file_does() {
    let site = Site::new(&["page.html", "index.html"]);
    let handler = get(|| async { (StatusCode::ACCEPTED, "a handler") });
    let app = Router::new().route("/api", handler.clone()).fallback_service(site.serve().fallback(handler));
    for (target, status, body) in [
        ("/api", StatusCode::ACCEPTED, "a handler"),
        ("/page.html", StatusCode::OK, "page.html"),
        ("/none", StatusCode::ACCEPTED, "a handler"),
    ] {
        let answer = ask(&app, target).await;
        assert_eq!((answer.status, &*answer.body), (status, body), "{target}");
    }
    let file = ServeFile::new(site.at("index.html"), &site.files);
    let app =
        Router::new().route_service("/start", file.clone()).fallback_service(site.serve().not_found_service(file));
    assert_eq!(ask(&app, "/start").await.body, "index.html");
    let answer = ask(&app, "/none").await;
    assert_eq!((answer.status, &*answer.body), (StatusCode::NOT_FOUND, "index.html"));
}

#[tokio::test]
async fn its_body_is_one_of_axum() {
    let site = Site::new(&["page.html"]);
    let response = tower_service::Service::call(&mut site.serve(), Request::get("/page.html").body(()).unwrap()).await;
    let Ok(response) = response;
    let body = axum::body::to_bytes(Body::new(response.into_body()), 100).await.unwrap();
    assert_eq!(&body[..], b"page.html");
}
