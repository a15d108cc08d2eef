//! The page cache of all front doors: stored HTTP responses in a volume. On a miss, `eyewall serve` asks an origin, and `eyewall-tower`
//! asks a service of the same process.
//!
//! For front doors:
//!
//! | module | what it knows |
//! |---|---|
//! | [`visit`] | a request and its outcome: hit, collapsed, fetched, stored, passed |
//! | [`upstream`] | the upstream, which makes the responses that are not stored, and the front door's rules for them |
//! | [`settings`] | the settings of a front door |
//! | [`reply`], [`cached_body`] | responses to clients |
//! | [`request_body`] | the bodies of requests to an upstream |
//! | [`pages`] | storing and renewing responses; the state that all front doors of a volume share |
//! | [`purge`], [`tags`] | purges, and the tags by which responses are purged together |
//! | [`query`], [`digest`] | the keys of an address's answers to QUERY; digests of content for keys |
//! | [`compression`] | compressed forms of stored responses |
//! | [`carried`] | stored responses on their way to other caches |
//!
//! How responses lie in the volume, and how they get there:
//!
//! | module | what it knows |
//! |---|---|
//! | [`store`] | keeping, finding, renewing and purging entries; size limits; the failure of a volume |
//! | [`head`] | a stored response without its body, as it lies in the entry's metadata |
//! | [`layout`] | where the fragments of a large body lie |
//! | [`selection`] | choosing among the stored responses of an address |
//! | [`recent_purges`] | purges of an address while a request for it is under way |
//! | [`body`] | a body that arrives, and its readers |
//! | `fill` | a body on its way into one entry |
//! | `fragments` | large bodies in fragments: stored, sent, and completed |
//! | `answer` | an answer that is on its way into the volume |
//! | `collapsing` | request collapsing: which request asks, and which ones wait |
//! | `generation` | numbers that distinguish states of an address |
//! | [`recent_keys`] | a bounded memory of keys |
//! | `blocking` | whether an event loop may write to the volume itself |
//!
//! # A front door
//!
//! A front door takes requests, makes a key of each, and gives it to a [`Visit`](visit::Visit) with an [`Upstream`](upstream::Upstream).
//! The visit gives back the response. `examples/caching_proxy.rs` is a complete caching proxy on hyper, in less than a hundred lines.
//!
//! ```
//! use std::convert::Infallible;
//! use std::sync::Arc;
//!
//! use eyewall_page_cache::upstream::{Question, Upstream};
//! use eyewall_page_cache::{pages::Pages, settings::Settings, store::Store, visit::Visit};
//! use http::{Request, Response};
//!
//! /// Makes a page for each address.
//! struct Site;
//!
//! impl Upstream for Site {
//!     type Body = http_body_util::Full<bytes::Bytes>;
//!     type Error = Infallible;
//!
//!     async fn ask(&self, question: Question<'_>) -> Result<Response<Self::Body>, Infallible> {
//!         let page = format!("the page {}", question.client.uri);
//!         Ok(Response::builder().header("cache-control", "max-age=60").body(page.into()).unwrap())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> eyewall::Result<()> {
//! let cache = eyewall::Options::new().size(4 << 20).heap()?;
//! let pages = Arc::new(Pages::new(Arc::new(Store::new(cache)), None));
//! let settings = Arc::new(Settings::default());
//! for expected in ["Eyewall; fwd=uri-miss; fwd-status=200; stored; ttl=60", "Eyewall; hit; ttl=60"] {
//!     let (parts, ()) = Request::get("/news").body(()).unwrap().into_parts();
//!     let visit = Visit::new((&pages, &settings), Site, parts, "http://example.org/news".to_owned());
//!     let response = Arc::new(visit).answer().await.unwrap();
//!     assert_eq!(response.headers()["cache-status"], expected);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! `eyewall-http` decides what may be stored and sent. This crate has no socket, no server and no configuration.

#![forbid(unsafe_code)]

mod answer;
mod blocking;
pub mod body;
pub mod cached_body;
pub mod carried;
mod collapsing;
pub mod compression;
pub mod digest;
mod fill;
mod fragments;
mod generation;
pub mod head;
pub mod layout;
pub mod pages;
pub mod purge;
pub mod query;
pub mod recent_keys;
pub mod recent_purges;
pub mod reply;
pub mod request_body;
pub mod selection;
pub mod settings;
pub mod store;
mod sweeper;
pub mod tags;
pub mod upstream;
pub mod visit;
