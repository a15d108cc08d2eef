//! How long a stored response is used, by its own fields and the client's.

use http::StatusCode;

use crate::support::{Site, counted, counting, respond};

#[tokio::test]
async fn a_response_is_fresh_for_its_lifetime_and_then_asked_for_again() {
    let site = counting(&[("cache-control", "max-age=60")]);
    site.get("/").await;
    site.clock.advance(59);
    assert_eq!(site.get("/").await.text(), "answer 1");
    site.clock.advance(1);
    let anew = site.get("/").await;
    assert_eq!((anew.text(), anew.told()), ("answer 2", "Eyewall; fwd=stale; fwd-status=200; stored; ttl=60"));
    assert_eq!(site.get("/").await.text(), "answer 2");
}

#[tokio::test]
async fn shared_caches_have_directives_of_their_own() {
    let site = counting(&[("cache-control", "max-age=5, s-maxage=60")]);
    assert!(site.get("/").await.told().ends_with("ttl=60"));
    let site = counting(&[("cache-control", "max-age=5"), ("cdn-cache-control", "max-age=90")]);
    assert!(site.get("/").await.told().ends_with("ttl=90"));
    let site = counting(&[("cache-control", "max-age=5"), ("cdn-cache-control", "no-store")]);
    assert!(site.get("/").await.told().ends_with("detail=no-store"));
}

#[tokio::test]
async fn the_age_of_a_received_response_counts() {
    let site = counting(&[("cache-control", "max-age=60"), ("age", "50")]);
    site.get("/").await;
    site.clock.advance(9);
    assert_eq!(site.get("/").await.field("age"), "59");
    site.clock.advance(1);
    assert_eq!(site.get("/").await.text(), "answer 2");
}

#[tokio::test]
async fn a_lifetime_is_guessed_only_if_that_is_set() {
    let fields = &[("last-modified", "Mon, 21 Sep 2020 00:00:00 GMT")];
    let site = counting(fields);
    site.get("/").await;
    assert_eq!(site.get("/").await.told(), "Eyewall; fwd=stale; fwd-status=200; stored; ttl=0");
    let site = Site::new(|layer| layer.heuristic(eyewall_http::policy::Heuristic::default()), counted(fields));
    site.get("/").await;
    assert_eq!(site.get("/").await.told(), "Eyewall; hit; ttl=86400");
}

#[tokio::test]
async fn a_client_may_demand_a_fresher_response() {
    let site = counting(&[("cache-control", "max-age=60")]);
    site.get("/").await;
    site.clock.advance(10);
    assert!(site.get_with("/", &[("cache-control", "max-age=10")]).await.is_hit());
    let reloaded = site.get_with("/", &[("cache-control", "max-age=9")]).await;
    assert_eq!(
        (reloaded.text(), reloaded.told()),
        ("answer 2", "Eyewall; fwd=request; fwd-status=200; stored; ttl=60")
    );
    assert_eq!(site.get_with("/", &[("cache-control", "no-cache")]).await.text(), "answer 3");
    assert_eq!(site.get_with("/", &[("pragma", "no-cache")]).await.text(), "answer 4");
    assert_eq!(site.get("/").await.text(), "answer 4");
}

#[tokio::test]
async fn a_client_may_want_only_a_stored_response() {
    let site = counting(&[("cache-control", "max-age=60")]);
    let only = [("cache-control", "only-if-cached")];
    let nothing = site.get_with("/", &only).await;
    assert_eq!((nothing.status, nothing.told()), (StatusCode::GATEWAY_TIMEOUT, "Eyewall; hit; detail=only-if-cached"));
    assert_eq!(site.count(), 0);
    site.get("/").await;
    assert_eq!(site.get_with("/", &only).await.text(), "answer 1");
    site.clock.advance(60);
    assert_eq!(site.get_with("/", &only).await.status, StatusCode::GATEWAY_TIMEOUT);
}

#[tokio::test]
async fn a_client_may_accept_a_stale_response() {
    let site = counting(&[("cache-control", "max-age=60"), ("etag", "\"a\"")]);
    site.get("/").await;
    site.clock.advance(70);
    let stale = site.get_with("/", &[("cache-control", "max-stale=10")]).await;
    assert_eq!((stale.text(), stale.told()), ("answer 1", "Eyewall; hit; ttl=-10"));
    assert_eq!(site.get_with("/", &[("cache-control", "max-stale=9")]).await.text(), "answer 2");
}

#[tokio::test]
async fn a_response_with_no_cache_is_validated_each_time() {
    let site = crate::support::site(|parts, _| {
        if parts.headers.contains_key("if-none-match") {
            let mut response = respond(&[("etag", "\"a\"")], "");
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        respond(&[("cache-control", "no-cache"), ("etag", "\"a\"")], "checked")
    });
    site.get("/").await;
    let second = site.get("/").await;
    assert_eq!((second.text(), second.status, site.count()), ("checked", StatusCode::OK, 2));
    assert!(second.told().starts_with("Eyewall; fwd=stale; fwd-status=304"), "{}", second.told());
}
