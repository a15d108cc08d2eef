//! Responses that the layer compresses.

use std::io::Read as _;
use std::time::{Duration, Instant};

use axum::body::Body;
use eyewall::Purge;
use eyewall_tower::{Coding, Codings, Compression};
use http::Method;

use crate::support::{Reply, Site, respond};

/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_mins(1);

const FIELDS: [(&str, &str); 3] = [("content-type", "text/html"), ("cache-control", "max-age=60"), ("etag", "\"1\"")];

fn text() -> String {
    "a page of the service\n".repeat(500)
}

fn site(compression: Compression) -> Site {
    Site::new(|layer| layer.compress(compression), |_, _| respond(&FIELDS, Body::from(text())))
}

async fn until_coded(site: &Site, accepted: &str, coding: &str) -> Reply {
    let start = Instant::now();
    loop {
        let reply = site.get_with("/", &[("accept-encoding", accepted)]).await;
        if reply.field("content-encoding") == coding {
            return reply;
        }
        assert!(start.elapsed() < PATIENCE, "no response in {coding}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_client_gets_the_form_that_it_prefers_and_a_purge_covers_it() {
    let site = site(Compression { codings: Codings::from_iter([Coding::Gzip]), ..Compression::default() });
    let first = site.get_with("/", &[("accept-encoding", "br, gzip")]).await;
    assert_eq!((first.field("content-encoding"), first.field("vary")), ("", "Accept-Encoding"));
    let form = until_coded(&site, "br, gzip", "gzip").await;
    let mut decoded = String::new();
    flate2::read::GzDecoder::new(&form.body[..]).read_to_string(&mut decoded).unwrap();
    assert_eq!((decoded, form.field("etag")), (text(), "\"1--gzip\""));
    let head = site.ask(Method::HEAD, "/", &[("accept-encoding", "gzip")]).await;
    assert_eq!((head.field("content-encoding"), head.field("content-length")), ("gzip", form.field("content-length")));
    let had = site.get_with("/", &[("accept-encoding", "gzip"), ("if-none-match", "\"1--gzip\"")]).await;
    assert_eq!((had.status.as_u16(), had.field("etag")), (304, "\"1--gzip\""));
    let part = site.get_with("/", &[("accept-encoding", "gzip"), ("range", "bytes=0-5")]).await;
    assert_eq!((part.status.as_u16(), part.text()), (206, "a page"));
    assert_eq!(site.count(), 1);
    site.layer.purger().address("http://example.org/", Purge::Hard).await.unwrap();
    assert_eq!(site.get_with("/", &[("accept-encoding", "gzip")]).await.field("content-encoding"), "");
}

#[tokio::test]
async fn a_service_gets_the_tag_that_it_knows() {
    let site = site(Compression::default());
    until_coded(&site, "zstd", "zstd").await;
    site.ask(Method::PUT, "/", &[("if-match", "\"1--zstd\"")]).await;
    let asked = site.asked();
    let told: Vec<&str> =
        asked.last().unwrap().headers.get_all("if-match").iter().map(|tag| tag.to_str().unwrap()).collect();
    assert_eq!(told, ["\"1--zstd\", \"1\""]);
}
