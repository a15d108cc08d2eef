//! The parts of a key.

use eyewall::Purge;
use eyewall_tower::KeyParts;
use http::Method;

use crate::support::{Site, counted, counting, respond, volume};

const FRESH: &[(&str, &str)] = &[("cache-control", "max-age=60")];

#[tokio::test]
async fn hosts_have_responses_of_their_own_unless_the_key_omits_them() {
    let ask = async |site: &Site, host: &str| {
        let request = http::Request::get(format!("http://{host}/")).body(axum::body::Body::empty()).unwrap();
        site.send(request).await.is_hit()
    };
    let site = counting(FRESH);
    assert!(!ask(&site, "a.org").await && !ask(&site, "b.org").await && ask(&site, "A.org:80").await);
    let site = Site::new(|layer| layer.key(KeyParts::new().without_host()), counted(FRESH));
    assert!(!ask(&site, "a.org").await && ask(&site, "b.org").await);
}

#[tokio::test]
async fn parts_of_the_query_can_be_left_out() {
    let site = Site::new(|layer| layer.key(KeyParts::new().query_only(["page"])), counted(FRESH));
    site.get("/?utm=1&page=2").await;
    assert!(site.get("/?page=2&utm=7").await.is_hit());
    assert!(!site.get("/?page=3").await.is_hit());
    assert_eq!(site.asked()[0].uri.query(), Some("utm=1&page=2"), "the service sees it as it came");
}

#[tokio::test]
async fn an_escaped_name_in_the_query_is_the_same_name() {
    let set = |layer: eyewall_tower::CacheLayer| layer.key(KeyParts::new().query_only(["page", "per page"]));
    let site = Site::new(set, |parts, _| respond(FRESH, parts.uri.query().unwrap_or("none").to_owned()));
    for query in ["%70age=evil", "p%61ge=evil", "per+page=9", "per%20page=8"] {
        assert_eq!(site.get(&format!("/?{query}")).await.text(), query);
    }
    assert_eq!(site.get("/").await.text(), "none", "services decode the names that they look at");
}

#[tokio::test]
async fn a_request_with_an_invalid_port_bypasses_the_cache() {
    let site = counting(FRESH);
    for host in ["example.org:99999", "example.org:evil", "example.org:+80", "example.org:80.evil.org", "[::1]evil"] {
        let request = http::Request::get("/").header("host", host).body(axum::body::Body::empty()).unwrap();
        assert!(site.send(request).await.told().contains("fwd=bypass"), "{host}");
    }
    assert!(!site.get("/").await.is_hit());
    for host in ["example.org:80", "example.org:"] {
        let request = http::Request::get("/").header("host", host).body(axum::body::Body::empty()).unwrap();
        assert!(site.send(request).await.is_hit(), "{host}");
    }
}

#[tokio::test]
async fn a_part_by_a_closure_separates_responses_and_one_change_removes_them_all() {
    let theme = |parts: &http::request::Parts| {
        parts.headers.get("cookie").map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
    };
    let site = Site::new(|layer| layer.key(KeyParts::new().and(theme)), counted(FRESH));
    let (dark, light) = ([("cookie", "theme=dark")], [("cookie", "theme=light")]);
    assert_eq!(site.get_with("/", &dark).await.text(), "answer 1");
    assert_eq!(site.get_with("/", &light).await.text(), "answer 2");
    assert_eq!(site.get_with("/", &dark).await.text(), "answer 1");
    site.ask(Method::POST, "/", &[]).await;
    assert!(!site.get_with("/", &dark).await.is_hit() && !site.get_with("/", &light).await.is_hit());
    site.layer.purger().address("http://example.org/", Purge::Hard).await.unwrap();
    assert!(!site.get_with("/", &dark).await.is_hit());
}

#[tokio::test]
async fn namespaces_keep_layers_apart_in_one_volume() {
    let volume = volume();
    let of = |name: &'static str| {
        Site::over(volume.clone(), |layer| layer.namespace(name), move |_, _| async move { Ok(respond(FRESH, name)) })
    };
    let (one, other) = (of("one"), of("other"));
    for _ in 0..2 {
        assert_eq!((one.get("/").await.text(), other.get("/").await.text()), ("one", "other"));
    }
    one.layer.purger().all(Purge::Hard).await.unwrap();
    assert!(!one.get("/").await.is_hit() && other.get("/").await.is_hit());
}

#[tokio::test]
async fn a_key_that_is_too_long_is_asked_for_each_time() {
    let site = counting(FRESH);
    let path = format!("/{}", "x".repeat(65_530));
    assert_eq!(site.get(&path).await.text(), "answer 1");
    assert_eq!(site.get(&path).await.text(), "answer 2");
}

#[tokio::test]
async fn a_request_with_an_ambiguous_host_bypasses_the_cache() {
    let site = counting(FRESH);
    for _ in 0..2 {
        let reply = site.get_with("/", &[("host", "other.org")]).await;
        assert_eq!(reply.told(), "Eyewall; fwd=bypass; fwd-status=200");
    }
}
