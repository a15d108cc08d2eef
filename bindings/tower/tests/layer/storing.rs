//! Which responses are stored.

use http::{Method, StatusCode};

use crate::support::{Site, counted, counting, request, respond, site};

#[tokio::test]
async fn a_response_with_a_lifetime_is_answered_from_the_volume() {
    let site = counting(&[("cache-control", "max-age=60"), ("x-own", "1")]);
    let first = site.get("/").await;
    assert_eq!((first.text(), first.field("x-own")), ("answer 1", "1"));
    assert_eq!(first.told(), "Eyewall; fwd=uri-miss; fwd-status=200; stored; ttl=60");
    assert_eq!(first.field("age"), "");
    site.clock.advance(7);
    let second = site.get("/").await;
    assert_eq!((second.text(), second.field("x-own"), second.field("age")), ("answer 1", "1", "7"));
    assert_eq!((second.told(), second.field("content-length")), ("Eyewall; hit; ttl=53", "8"));
    assert_eq!(second.field("date"), first.field("date"));
    assert_eq!(site.count(), 1);
}

#[tokio::test]
async fn each_address_has_a_response_of_its_own() {
    let site = counting(&[("cache-control", "max-age=60")]);
    for path in ["/a", "/b", "/a?q", "/A"] {
        site.get(path).await;
    }
    assert_eq!(site.count(), 4);
    assert_eq!(site.get("/a?q").await.text(), "answer 3");
}

#[tokio::test]
async fn an_unstorable_response_passes_and_says_why() {
    for (fields, why) in [
        (&[("cache-control", "no-store")][..], "no-store"),
        (&[("cache-control", "private, max-age=60")], "private"),
        (&[("cache-control", "max-age=60"), ("set-cookie", "a=b")], "set-cookie"),
        (&[("cache-control", "max-age=60"), ("vary", "*")], "vary"),
        (&[("cache-control", "max-age=0")], "stale"),
        (&[("cache-control", "no-cache")], "no-cache"),
        (&[], "no-lifetime"),
    ] {
        let site = counting(fields);
        assert_eq!(site.get("/").await.text(), "answer 1");
        let second = site.get("/").await;
        let told = format!("Eyewall; fwd=uri-miss; fwd-status=200; detail={why}");
        assert_eq!((second.text(), second.told()), ("answer 2", told.as_str()));
    }
}

#[tokio::test]
async fn a_response_for_a_named_user_is_stored_only_if_it_says_so() {
    let named = [("authorization", "Basic x")];
    let own = counting(&[("cache-control", "max-age=60")]);
    assert!(own.get_with("/", &named).await.told().ends_with("detail=authorization"));
    assert_eq!(own.get("/").await.text(), "answer 2");
    let public = counting(&[("cache-control", "public, max-age=60")]);
    public.get_with("/", &named).await;
    assert_eq!(public.get("/").await.text(), "answer 1");
}

#[tokio::test]
async fn a_clients_no_store_is_respected() {
    let site = counting(&[("cache-control", "max-age=60")]);
    site.get_with("/", &[("cache-control", "no-store")]).await;
    assert_eq!(site.get("/").await.text(), "answer 2");
}

#[tokio::test]
async fn errors_are_stored_if_they_say_so() {
    let site = site(|_, _| {
        let mut response = respond(&[("cache-control", "max-age=60")], "gone");
        *response.status_mut() = StatusCode::NOT_FOUND;
        response
    });
    site.get("/").await;
    let second = site.get("/").await;
    assert_eq!((second.status, second.text(), second.is_hit()), (StatusCode::NOT_FOUND, "gone", true));
}

#[tokio::test]
async fn a_head_is_answered_from_the_stored_response_to_a_get() {
    let site = counting(&[("cache-control", "max-age=60")]);
    let passed = site.ask(Method::HEAD, "/", &[]).await;
    assert_eq!(
        (passed.told(), site.asked()[0].method.clone()),
        ("Eyewall; fwd=uri-miss; fwd-status=200; detail=head", Method::HEAD)
    );
    site.get("/").await;
    let head = site.ask(Method::HEAD, "/", &[]).await;
    assert!(head.is_hit() && head.body.is_empty());
    assert_eq!((head.field("content-length"), site.count()), ("8", 2));
}

#[tokio::test]
async fn a_ttl_can_be_set_for_responses_without_a_lifetime() {
    let ttl = std::time::Duration::from_mins(1);
    let site = Site::new(|layer| layer.default_ttl(ttl), counted(&[]));
    site.get("/").await;
    assert_eq!(site.get("/").await.told(), "Eyewall; hit; ttl=60");
    let site = Site::new(|layer| layer.default_ttl(ttl), counted(&[("cache-control", "max-age=5")]));
    assert!(site.get("/").await.told().ends_with("ttl=5"), "the response's own word goes before it");
}

#[tokio::test]
async fn bypassed_requests_pass() {
    let has_session = |parts: &http::request::Parts| parts.headers.contains_key("cookie");
    let site = Site::new(|layer| layer.bypass(has_session), counted(&[("cache-control", "max-age=60")]));
    site.get("/").await;
    let own = site.get_with("/", &[("cookie", "session=1")]).await;
    assert_eq!((own.text(), own.told()), ("answer 2", "Eyewall; fwd=bypass; fwd-status=200"));
    assert_eq!(site.get("/").await.text(), "answer 1");
}

#[tokio::test]
async fn requests_with_content_and_upgrades_pass_unchanged() {
    let site = site(|_, content| respond(&[("cache-control", "max-age=60")], content));
    let content = request(Method::GET, "/", &[], "asked".into());
    let reply = site.send(content).await;
    assert_eq!((reply.text(), reply.told()), ("asked", "Eyewall; fwd=bypass; fwd-status=200; detail=content"));
    let upgrade = [("upgrade", "websocket"), ("connection", "upgrade"), ("if-none-match", "\"a\"")];
    assert_eq!(site.get_with("/", &upgrade).await.told(), "Eyewall; fwd=bypass; fwd-status=200");
    assert_eq!(site.asked()[1].headers["if-none-match"], "\"a\"");
}

#[tokio::test]
async fn cache_status_has_the_set_name_or_is_left_out() {
    let site = Site::new(|layer| layer.cache_status("edge"), counted(&[]));
    assert!(site.get("/").await.told().starts_with("edge; "));
    let site = Site::new(eyewall_tower::CacheLayer::without_cache_status, counted(&[]));
    assert_eq!(site.get("/").await.told(), "");
    assert_eq!(site.get_with("/", &[("cache-control", "only-if-cached")]).await.told(), "");
}

#[tokio::test]
async fn a_response_with_a_field_too_large_for_an_entry_is_passed_on() {
    let long = "x".repeat(70_000);
    let site = site(move |_, _| respond(&[("cache-control", "max-age=60"), ("x-long", &long)], "page"));
    for _ in 0..2 {
        let reply = site.get("/").await;
        assert_eq!(reply.told(), "Eyewall; fwd=uri-miss; fwd-status=200; detail=too-large");
        assert_eq!((reply.text(), reply.field("x-long").len()), ("page", 70_000));
    }
}
