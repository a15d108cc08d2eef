//! Purges of responses that have changed at their source.

use std::sync::Arc;

use eyewall::Purge;
use eyewall_tower::{PurgeError, Tags};
use tokio::sync::Semaphore;

use crate::support::{Site, counting, respond, site, volume};

const FRESH: &[(&str, &str)] = &[("cache-control", "max-age=60, stale-if-error=60")];

#[tokio::test]
async fn an_address_is_purged_with_all_its_variants() {
    let site = counting(&[("cache-control", "max-age=60"), ("vary", "accept-language")]);
    let (de, fr) = ([("accept-language", "de")], [("accept-language", "fr")]);
    for fields in [&de, &fr] {
        site.get_with("/", fields).await;
    }
    site.get("/other").await;
    let purger = site.layer.purger();
    assert!(purger.address("http://example.org/", Purge::Hard).await.unwrap());
    assert!(!purger.address("http://example.org/", Purge::Hard).await.unwrap(), "it is gone already");
    assert!(!site.get_with("/", &de).await.is_hit() && !site.get_with("/", &fr).await.is_hit());
    assert!(site.get("/other").await.is_hit());
}

#[tokio::test]
async fn tags_are_named_by_fields_and_by_handlers() {
    let site = site(|parts, _| {
        let mut response = respond(FRESH, "page");
        if parts.uri.path() == "/field" {
            response.headers_mut().insert("surrogate-key", "product:7 shop".parse().unwrap());
        } else {
            response.extensions_mut().insert(Tags::new(["product:7"]));
        }
        response
    });
    let purger = site.layer.purger();
    for (tag, goes) in [("product:7", [true, true]), ("shop", [true, false]), ("product", [false, false])] {
        for path in ["/field", "/handler"] {
            site.get(path).await;
        }
        purger.tag(tag, Purge::Hard).await.unwrap();
        let gone = [!site.get("/field").await.is_hit(), !site.get("/handler").await.is_hit()];
        assert_eq!(gone, goes, "{tag}");
    }
}

#[tokio::test]
async fn a_prefix_and_everything_are_purged() {
    let site = counting(FRESH);
    let paths = ["/shop/a", "/shop/b", "/about"];
    let hits = async || {
        let mut hits = Vec::new();
        for path in paths {
            hits.push(site.get(path).await.is_hit());
        }
        hits
    };
    hits().await;
    let purger = site.layer.purger();
    purger.prefix("http://example.org/shop/", Purge::Hard).await.unwrap();
    assert_eq!(hits().await, [false, false, true]);
    purger.all(Purge::Hard).await.unwrap();
    assert_eq!(hits().await, [false, false, false]);
    assert_eq!(hits().await, [true, true, true]);
}

#[tokio::test]
async fn a_soft_purge_makes_stale_and_leaves_a_validator() {
    let site = site(|parts, _| {
        let mut response = respond(&[("cache-control", "max-age=60"), ("etag", "\"a\"")], "page");
        if parts.headers.contains_key("if-none-match") {
            *response.status_mut() = http::StatusCode::NOT_MODIFIED;
        }
        response
    });
    let purger = site.layer.purger();
    site.get("/").await;
    assert!(purger.address("http://example.org/", Purge::Soft).await.unwrap());
    assert_eq!(site.get("/").await.told(), "Eyewall; fwd=stale; fwd-status=304; ttl=60");
    assert!(site.get("/").await.is_hit());
    purger.all(Purge::Soft).await.unwrap();
    assert_eq!(site.get("/").await.told(), "Eyewall; fwd=stale; fwd-status=304; ttl=60");
}

#[tokio::test]
async fn a_response_asked_for_before_a_purge_is_not_stored_after_it() {
    for which in 0..3 {
        let gate = Arc::new(Semaphore::new(0));
        let permits = Arc::clone(&gate);
        let site = Site::over(
            volume(),
            |layer| layer,
            move |_, _| {
                let permits = Arc::clone(&permits);
                async move {
                    permits.acquire().await.unwrap().forget();
                    Ok(respond(&[("cache-control", "max-age=60"), ("xkey", "tag")], "page"))
                }
            },
        );
        let asking = tokio::spawn({
            let site = site.clone();
            async move { site.get("/").await }
        });
        while site.count() == 0 {
            tokio::task::yield_now().await;
        }
        let purger = site.layer.purger();
        match which {
            0 => assert!(!purger.address("http://example.org/", Purge::Hard).await.unwrap()),
            1 => purger.tag("tag", Purge::Hard).await.unwrap(),
            _ => purger.all(Purge::Hard).await.unwrap(),
        }
        gate.add_permits(2);
        assert_eq!(asking.await.unwrap().text(), "page");
        assert!(!site.get("/").await.is_hit(), "purge {which}");
    }
}

#[tokio::test]
async fn an_invalid_address_is_refused_with_a_hint() {
    let site = counting(FRESH);
    let error = site.layer.purger().address("no address", Purge::Hard).await.unwrap_err();
    assert!(matches!(error, PurgeError::Address(_)) && error.to_string().contains("https://example.org/path"));
    let error = site.layer.purger().tag("", Purge::Hard).await.unwrap_err();
    assert!(matches!(error, PurgeError::Volume(_)), "{error}");
}
