//! Changes, and the stored responses that they make wrong.

use http::{Method, StatusCode};

use crate::support::{Site, respond, site};

fn changing(fields: &'static [(&'static str, &'static str)], status: StatusCode) -> Site {
    site(move |parts, _| {
        if parts.method == Method::GET {
            return respond(&[("cache-control", "max-age=60"), ("cache-groups", "\"shop\"")], "page");
        }
        let mut response = respond(fields, "done");
        *response.status_mut() = status;
        response
    })
}

#[tokio::test]
async fn a_change_removes_its_target_and_the_addresses_in_its_answer() {
    let site = changing(&[("location", "/list?page=1"), ("content-location", "http://other.org/item")], StatusCode::OK);
    for path in ["/item", "/list?page=1", "/other"] {
        site.get(path).await;
    }
    let changed = site.ask(Method::POST, "/item", &[]).await;
    assert_eq!((changed.text(), changed.told()), ("done", "Eyewall; fwd=method; fwd-status=200"));
    assert!(!site.get("/item").await.is_hit());
    assert!(!site.get("/list?page=1").await.is_hit());
    assert!(site.get("/other").await.is_hit());
}

#[tokio::test]
async fn a_failed_change_and_a_safe_method_remove_nothing() {
    let site = changing(&[], StatusCode::FORBIDDEN);
    site.get("/").await;
    site.ask(Method::DELETE, "/", &[]).await;
    assert!(site.get("/").await.is_hit());
    let site = changing(&[], StatusCode::OK);
    site.get("/").await;
    site.ask(Method::OPTIONS, "/", &[]).await;
    assert!(site.get("/").await.is_hit());
}

#[tokio::test]
async fn a_change_can_name_a_group() {
    let site = changing(&[("cache-group-invalidation", "\"shop\"")], StatusCode::OK);
    for path in ["/a", "/b"] {
        site.get(path).await;
    }
    site.ask(Method::POST, "/elsewhere", &[]).await;
    assert!(!site.get("/a").await.is_hit() && !site.get("/b").await.is_hit());
}

#[tokio::test]
async fn a_bypassed_change_still_removes() {
    let site = Site::new(
        |layer| layer.bypass(|parts| parts.method == Method::PUT),
        |parts, _| respond(&[("cache-control", "max-age=60")], parts.method.to_string()),
    );
    site.get("/").await;
    site.ask(Method::PUT, "/", &[]).await;
    assert!(!site.get("/").await.is_hit());
}
