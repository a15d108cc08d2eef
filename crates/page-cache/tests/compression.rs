//! Compressed forms belong to one body, are made in the background, and never outlive their identity.

#![cfg(test)]

use std::convert::Infallible;
use std::io::Read as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use eyewall::Purge;
use eyewall_http::coding::{Coding, Codings};
use eyewall_page_cache::compression::{Compression, form};
use eyewall_page_cache::pages::Pages;
use eyewall_page_cache::settings::{Clock, Place, Settings};
use eyewall_page_cache::store::{PurgeTarget, Store};
use eyewall_page_cache::upstream::{Question, Upstream};
use eyewall_page_cache::visit::Visit;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};

const ADDRESS: &str = "http://example.org/news";
const ACCEPTED: (&str, &str) = ("accept-encoding", "gzip, deflate, br, zstd");
/// Longer than a form takes to be made, even on a machine with other work.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The page and its fields, as the origin has them now, and the requests that it got.
#[derive(Clone, Default)]
struct Origin(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    fields: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
    asked: Vec<HeaderMap>,
}

impl Origin {
    fn set(&self, fields: &[(&'static str, &'static str)], body: impl Into<Vec<u8>>) {
        let mut state = self.0.lock().unwrap();
        state.fields = fields.to_vec();
        state.body = body.into();
    }

    fn asked(&self) -> usize {
        self.0.lock().unwrap().asked.len()
    }
}

impl Upstream for Origin {
    type Body = Full<Bytes>;
    type Error = Infallible;

    async fn ask(&self, question: Question<'_>) -> Result<Response<Self::Body>, Infallible> {
        let mut state = self.0.lock().unwrap();
        let has_it = state.fields.iter().any(|(name, value)| {
            let told = question.fields.get_all("if-none-match");
            *name == "etag" && told.iter().any(|tags| tags.to_str().unwrap().contains(value))
        });
        state.asked.push(question.fields);
        let mut response = Response::builder().status(if has_it { 304 } else { 200 });
        for (name, value) in &state.fields {
            response = response.header(*name, *value);
        }
        let body = if has_it { Vec::new() } else { state.body.clone() };
        Ok(response.body(Full::from(body)).unwrap())
    }
}

/// A front door over one page.
struct Front {
    origin: Origin,
    pages: Arc<Pages>,
    settings: Arc<Settings>,
    /// Seconds after the beginning.
    seconds: Arc<AtomicU64>,
}

const PAGE: [(&str, &str); 3] = [("content-type", "text/html"), ("cache-control", "max-age=60"), ("etag", "\"1\"")];

fn body(word: &str) -> String {
    word.repeat(2000)
}

impl Front {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(set: impl FnOnce(&mut Settings)) -> Self {
        let cache = eyewall::Options::new().size(8 << 20).heap().unwrap();
        let (began, seconds) = (SystemTime::now(), Arc::new(AtomicU64::new(0)));
        let passed = Arc::clone(&seconds);
        let clock = Clock::by(move || began + Duration::from_secs(passed.load(Ordering::Relaxed)));
        let mut settings = Settings { compression: Some(Compression::default()), clock, ..Settings::default() };
        set(&mut settings);
        let front = Self {
            origin: Origin::default(),
            pages: Arc::new(Pages::new(Arc::new(Store::new(cache)), None)),
            settings: Arc::new(settings),
            seconds,
        };
        front.origin.set(&PAGE, body("hello "));
        front
    }

    async fn ask(&self, method: &str, fields: &[(&str, &str)]) -> Got {
        let mut request = Request::builder().method(method).uri("/news");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let visit = Visit::new((&self.pages, &self.settings), self.origin.clone(), parts, ADDRESS.to_owned());
        let response = Arc::new(visit).answer().await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Got { status: head.status.as_u16(), fields: head.headers, body }
    }

    async fn get(&self) -> Got {
        self.ask("GET", &[ACCEPTED]).await
    }

    /// Asks until there is a response in this coding.
    async fn get_in(&self, coding: &str) -> Got {
        let (began, accepted) = (Instant::now(), [("accept-encoding", coding)]);
        loop {
            let got = self.ask("GET", &accepted).await;
            if got.field("content-encoding") == coding {
                return got;
            }
            assert!(began.elapsed() < WAIT_MAX, "there is no form in {coding}: {:?}", got.fields);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Waits until it is known that a form isn't worth its place.
    async fn wait_for_not_smaller(&self, coding: Coding) {
        let began = Instant::now();
        while self.pages.store.find(&form::key(ADDRESS.as_bytes(), coding)).is_none() {
            assert!(began.elapsed() < WAIT_MAX, "nothing is known of the form");
            self.get().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[derive(Debug)]
struct Got {
    status: u16,
    fields: HeaderMap,
    body: Bytes,
}

impl Got {
    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        match self.field("content-encoding") {
            "br" => {
                let mut bytes = Vec::new();
                brotli::BrotliDecompress(&mut &*self.body, &mut bytes).unwrap();
                text = String::from_utf8(bytes).unwrap();
            }
            "zstd" => text = String::from_utf8(zstd::stream::decode_all(&*self.body).unwrap()).unwrap(),
            "gzip" => drop(flate2::read::GzDecoder::new(&*self.body).read_to_string(&mut text).unwrap()),
            _ => text = String::from_utf8(self.body.to_vec()).unwrap(),
        }
        text
    }
}

#[tokio::test]
async fn each_client_gets_the_form_that_it_prefers() {
    let front = Front::new();
    for coding in ["br", "zstd", "gzip"] {
        let got = front.get_in(coding).await;
        assert_eq!(got.text(), body("hello "));
        assert_eq!(got.field("content-length"), got.body.len().to_string());
        assert!(got.body.len() < 2000, "{coding}");
        assert_eq!(got.field("etag"), format!("\"1--{coding}\""));
        assert!(got.field("cache-status").contains("; hit;"));
    }
    for (accepted, coding) in [
        ("gzip, br, zstd", "br"),
        ("gzip;q=0.5, zstd;q=0.8", "zstd"),
        ("gzip, identity;q=0", "gzip"),
        ("br;q=0, zstd;q=0, *", ""),
        ("gzip;q=0.5, identity", ""),
        ("identity", ""),
        ("", ""),
    ] {
        let got = front.ask("GET", &[("accept-encoding", accepted)]).await;
        assert_eq!(got.field("content-encoding"), coding, "{accepted}");
        assert_eq!((got.field("vary"), got.text()), ("Accept-Encoding", body("hello ")));
    }
    assert_eq!(front.origin.asked(), 1);
}

#[tokio::test]
async fn a_page_varies_before_there_is_any_form_and_only_if_it_may_be_compressed() {
    let front = Front::new();
    for _ in 0..2 {
        assert_eq!(front.ask("GET", &[]).await.field("vary"), "Accept-Encoding");
    }
    assert_eq!(front.ask("HEAD", &[]).await.field("vary"), "Accept-Encoding");
    let head = Front::new().ask("HEAD", &[]).await;
    assert_eq!(head.field("vary"), "Accept-Encoding", "{head:?}");
    for (name, value) in
        [("content-type", "image/png"), ("cache-control", "max-age=60, no-transform"), ("content-encoding", "gzip")]
    {
        let front = Front::new();
        let mut fields = PAGE.to_vec();
        fields.retain(|(own, _)| *own != name);
        fields.push((name, value));
        front.origin.set(&fields, body("hello "));
        for _ in 0..3 {
            assert_eq!(front.get().await.field("vary"), "", "{name}");
        }
        assert!(front.pages.store.find(&form::key(ADDRESS.as_bytes(), Coding::Brotli)).is_none());
    }
}

#[tokio::test]
async fn the_first_request_makes_no_form() {
    let front = Front::new();
    front.get().await;
    // A form that is asked for by a later request is made after all forms that were asked for before.
    let other = Front::new();
    other.get_in("br").await;
    assert!(front.pages.store.find(&form::key(ADDRESS.as_bytes(), Coding::Brotli)).is_none());
}

#[tokio::test]
async fn no_form_of_an_older_body_is_sent() {
    let front = Front::new();
    front.get_in("br").await;
    let new = [PAGE[0], PAGE[1], ("etag", "\"2\"")];
    front.origin.set(&new, body("changed "));
    front.seconds.fetch_add(61, Ordering::Relaxed);
    let got = front.get().await;
    assert_eq!((got.field("content-encoding"), got.text()), ("", body("changed ")));
    let got = front.get_in("br").await;
    assert_eq!((got.field("etag"), got.text()), ("\"2--br\"", body("changed ")));
}

#[tokio::test]
async fn a_renewed_page_keeps_its_forms_and_they_have_its_new_fields() {
    let front = Front::new();
    front.get_in("br").await;
    front.origin.set(&[PAGE[0], PAGE[1], PAGE[2], ("x-new", "yes"), ("vary", "x-other")], "unused");
    front.seconds.fetch_add(61, Ordering::Relaxed);
    let got = front.get().await;
    assert_eq!((got.field("content-encoding"), got.field("x-new")), ("br", "yes"));
    assert!(got.fields.get_all("vary").iter().any(|line| line == "Accept-Encoding"));
    assert_eq!((front.origin.asked(), got.text()), (2, body("hello ")));
    // A page that may no longer be transformed has no forms.
    let rest = ("cache-control", "max-age=60, no-transform");
    front.origin.set(&[PAGE[0], rest, PAGE[2]], "unused");
    front.seconds.fetch_add(61, Ordering::Relaxed);
    assert_eq!(front.get().await.field("content-encoding"), "");
    assert_eq!(front.get().await.text(), body("hello "));
}

#[tokio::test]
async fn a_purge_reaches_the_forms_at_once() {
    type PurgeBy = fn(&Pages, Purge);
    let ways: [PurgeBy; 3] = [
        |pages, kind| assert!(pages.purge_address(ADDRESS, None, kind).unwrap()),
        |pages, kind| pages.store.purge(PurgeTarget::Tag("t"), kind).unwrap(),
        |pages, kind| pages.store.purge(PurgeTarget::Prefix(b"http://example.org/"), kind).unwrap(),
    ];
    for purge in ways {
        for kind in [Purge::Hard, Purge::Soft] {
            let front = Front::new();
            let page = [PAGE[0], PAGE[1], PAGE[2], ("surrogate-key", "t")];
            front.origin.set(&page, body("hello "));
            front.get_in("br").await;
            // The origin gives another body under the same tag, which a soft purge can't find out.
            front.origin.set(&page, body("changed "));
            purge(&front.pages, kind);
            let (got, again) = (front.get().await, front.get_in("br").await);
            let expected = if kind == Purge::Hard { "changed " } else { "hello " };
            assert_eq!(front.origin.asked(), 2, "{kind:?}");
            assert_eq!((got.text(), again.text()), (body(expected), body(expected)), "{kind:?}");
        }
    }
}

#[tokio::test]
async fn a_stale_page_is_sent_in_its_form_where_it_may_be_sent() {
    let front = Front::new();
    let page = [PAGE[0], ("cache-control", "max-age=60, stale-while-revalidate=600"), PAGE[2]];
    front.origin.set(&page, body("hello "));
    front.get_in("zstd").await;
    front.seconds.fetch_add(61, Ordering::Relaxed);
    let got = front.ask("GET", &[("accept-encoding", "zstd")]).await;
    assert_eq!((got.field("content-encoding"), got.field("age")), ("zstd", "61"));
}

#[tokio::test]
async fn conditions_know_the_tags_of_forms() {
    let front = Front::new();
    front.get_in("br").await;
    for (method, told, accepted, expected) in [
        ("GET", "\"1--br\"", "br", "\"1--br\""),
        ("HEAD", "\"1--br\"", "br", "\"1--br\""),
        ("GET", "\"1--gzip\"", "br, gzip", "\"1--gzip\""),
        ("GET", "\"0\", \"1\"", "br", "\"1\""),
        ("GET", "\"1--br\", \"1--gzip\"", "gzip", "\"1--gzip\""),
    ] {
        let got = front.ask(method, &[("if-none-match", told), ("accept-encoding", accepted)]).await;
        assert_eq!((got.status, got.field("etag"), got.field("vary")), (304, expected, "Accept-Encoding"), "{told}");
    }
    let got = front.ask("GET", &[("if-none-match", "\"2--br\""), ACCEPTED]).await;
    assert_eq!((got.status, got.field("content-encoding")), (200, "br"));
    // A cache that has the form for others asks for a client that can't decode it.
    let got = front.ask("GET", &[("if-none-match", "\"1--br\""), ("accept-encoding", "identity")]).await;
    assert_eq!((got.status, got.field("etag"), got.text()), (200, "\"1\"", body("hello ")));
    // Nothing is stored, and the client has a form from before.
    front.pages.purge_address(ADDRESS, None, Purge::Hard).unwrap();
    let got = front.ask("GET", &[("if-none-match", "\"1--br\""), ACCEPTED]).await;
    assert_eq!((got.status, got.field("etag"), got.text().as_str()), (304, "\"1--br\"", ""));
}

#[tokio::test]
async fn ranges_and_heads_and_no_transform() {
    let front = Front::new();
    let form = front.get_in("br").await;
    let got = front.ask("GET", &[("range", "bytes=0-5"), ACCEPTED]).await;
    assert_eq!((got.status, got.field("content-encoding"), got.text().as_str()), (206, "", "hello "));
    // A range of a form is no range of the identity.
    let got = front.ask("GET", &[("range", "bytes=0-5"), ("if-range", "\"1--br\""), ACCEPTED]).await;
    assert_eq!((got.status, got.text()), (200, body("hello ")));
    let got = front.ask("HEAD", &[ACCEPTED]).await;
    assert_eq!((got.field("content-encoding"), got.field("etag")), ("br", "\"1--br\""));
    assert_eq!((got.field("content-length"), got.body.len()), (form.field("content-length"), 0));
    let got = front.ask("GET", &[("cache-control", "no-transform"), ACCEPTED]).await;
    assert_eq!((got.field("content-encoding"), got.field("etag")), ("", "\"1\""));
}

#[tokio::test]
async fn a_date_continues_no_form() {
    let modified = "Sun, 06 Nov 1994 08:49:37 GMT";
    let page = [PAGE[0], PAGE[1], ("last-modified", modified)];
    let front = Front::new();
    front.origin.set(&page, body("hello "));
    let continued = [("range", "bytes=6-"), ("if-range", modified), ACCEPTED];
    // A miss, and a hit.
    for round in 0..2 {
        let got = front.ask("GET", &continued).await;
        assert_eq!((got.status, got.text()), (200, body("hello ")), "round {round}");
    }
    let asked = front.origin.0.lock().unwrap().asked.clone();
    assert!(asked.len() == 1 && !asked[0].contains_key("range") && !asked[0].contains_key("if-range"), "{asked:?}");
    front.get_in("br").await;
    let got = front.ask("GET", &continued).await;
    assert_eq!((got.status, got.text()), (200, body("hello ")));
    // Without compression, the date stands for one representation.
    let without = Front::with(|settings| settings.compression = None);
    without.origin.set(&page, body("hello "));
    without.get().await;
    let got = without.ask("GET", &continued).await;
    assert_eq!((got.status, got.text()), (206, body("hello ")[6..].to_owned()));
}

#[tokio::test]
async fn a_form_that_is_not_smaller_is_tried_once() {
    let front = Front::new();
    let multiplied =
        |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let noise: Vec<u8> = (1..200).flat_map(|number| multiplied(number).to_le_bytes()).collect();
    front.origin.set(&PAGE, noise.clone());
    front.wait_for_not_smaller(Coding::Brotli).await;
    let found = front.pages.store.find(&form::key(ADDRESS.as_bytes(), Coding::Brotli)).unwrap();
    assert_eq!(found.bytes(), b"");
    let got = front.get().await;
    assert_eq!((got.field("content-encoding"), &got.body[..]), ("", &noise[..]));
    let zstandard = front.pages.store.find(&form::key(ADDRESS.as_bytes(), Coding::Zstandard));
    assert!(zstandard.is_none(), "no other coding is tried");
}

#[tokio::test]
async fn only_the_codings_of_the_settings_are_used_and_in_an_origin_too() {
    let front = Front::with(|settings| {
        settings.place = Place::Origin;
        let codings = Codings::from_iter([Coding::Gzip]);
        settings.compression = Some(Compression { codings, ..Compression::default() });
    });
    front.get_in("gzip").await;
    assert_eq!(front.get().await.field("content-encoding"), "gzip");
    let without = Front::with(|settings| settings.compression = None);
    for _ in 0..3 {
        let got = without.get().await;
        assert_eq!((got.field("content-encoding"), got.field("vary"), got.field("etag")), ("", "", "\"1\""));
    }
}
