//! Responses that differ by fields of their requests.

use crate::support::{Site, counting, respond, site};

fn by_language() -> Site {
    site(|parts, _| {
        let language = parts.headers.get("accept-language").map_or("none", |value| value.to_str().unwrap());
        respond(&[("vary", "Accept-Language"), ("cache-control", "max-age=60")], language.to_owned())
    })
}

#[tokio::test]
async fn each_variant_is_stored_and_chosen() {
    let site = by_language();
    for _ in 0..2 {
        for language in ["de", "fr"] {
            assert_eq!(site.get_with("/", &[("accept-language", language)]).await.text(), language);
        }
        assert_eq!(site.get("/").await.text(), "none");
    }
    assert_eq!(site.count(), 3);
    let other = site.get_with("/", &[("accept-language", "it")]).await;
    assert_eq!(other.told(), "Eyewall; fwd=vary-miss; fwd-status=200; stored; ttl=60");
}

#[tokio::test]
async fn spellings_of_the_same_are_one_variant() {
    let site = by_language();
    site.get_with("/", &[("accept-language", "de, en;q=0.5")]).await;
    assert!(site.get_with("/", &[("accept-language", "EN; q=0.50,de")]).await.is_hit());
}

#[tokio::test]
async fn compressed_responses_vary_by_accept_encoding() {
    let site = counting(&[("content-encoding", "gzip"), ("cache-control", "max-age=60")]);
    site.get_with("/", &[("accept-encoding", "gzip")]).await;
    assert!(site.get_with("/", &[("accept-encoding", "gzip")]).await.is_hit());
    assert_eq!(site.get("/").await.text(), "answer 2");
}

#[tokio::test]
async fn only_the_stale_variant_is_asked_for() {
    let site = by_language();
    site.get_with("/", &[("accept-language", "de")]).await;
    site.clock.advance(30);
    site.get_with("/", &[("accept-language", "fr")]).await;
    site.clock.advance(30);
    assert!(!site.get_with("/", &[("accept-language", "de")]).await.is_hit());
    assert!(site.get_with("/", &[("accept-language", "fr")]).await.is_hit());
}

/// The second answer varies by another field, so both fit the third request.
#[tokio::test]
async fn the_latest_of_several_matching_responses_is_sent() {
    let site = site(|parts, _| {
        let language = parts.headers.get("accept-language").unwrap().to_str().unwrap();
        let vary = if language == "de" { "Accept-Language" } else { "X-Kind" };
        respond(&[("vary", vary), ("cache-control", "max-age=60")], language.to_owned())
    });
    site.get_with("/", &[("accept-language", "de")]).await;
    site.clock.advance(1);
    site.get_with("/", &[("accept-language", "fr")]).await;
    let third = site.get_with("/", &[("accept-language", "de")]).await;
    assert!(third.is_hit());
    assert_eq!(third.text(), "fr");
}
