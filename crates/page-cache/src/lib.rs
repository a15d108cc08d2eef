//! The page cache of all front doors: stored HTTP responses in a volume. On a miss, `eyewall serve` asks an origin, and `eyewall-tower`
//! asks a service of the same process.
//!
//! For front doors:
//!
//! | module | what it knows |
//! |---|---|
//! | [`visit`] | a request, and what becomes of it: hit, collapsed, fetched, stored, passed |
//! | [`upstream`] | whoever makes the answers that are not stored, and what a front door has to say of them |
//! | [`settings`] | how a front door wants its cache to work |
//! | [`reply`], [`cached_body`] | what goes to clients |
//! | [`request_body`] | what goes to an upstream |
//! | [`pages`] | storing and renewing responses; what all share |
//! | [`purge`], [`tags`] | purging them, and by what they are purged together |
//! | [`query`] | where the answers to QUERY of an address begin |
//!
//! How responses lie in the volume, and how they get there:
//!
//! | module | what it knows |
//! |---|---|
//! | [`store`] | keeping, finding, renewing and purging entries; what fits; the end of the volume |
//! | [`head`] | a stored response without its body, as it lies in the entry's metadata |
//! | [`layout`] | where the fragments of a large body lie |
//! | [`selection`] | choosing among the stored responses of an address |
//! | [`recent_purges`] | what was purged by its address while it was asked for |
//! | [`body`] | a body as it comes, and its readers |
//! | `fill` | a body on its way into one entry |
//! | `fragments` | large bodies in fragments: in, out, and what is missing of them |
//! | `answer` | an answer that is on its way into the volume |
//! | `collapsing` | who asks for what many want at once, and who waits for that |
//! | `generation` | numbers that tell one state of an address from another |
//! | `recent_keys` | what was so a moment ago, of keys |
//! | `blocking` | whether an event loop may write to the volume by itself |
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
//! for told in ["Eyewall; fwd=uri-miss; fwd-status=200; stored; ttl=60", "Eyewall; hit; ttl=60"] {
//!     let (parts, ()) = Request::get("/news").body(()).unwrap().into_parts();
//!     let visit = Visit::new((&pages, &settings), Site, parts, "http://example.org/news".to_owned());
//!     let response = Arc::new(visit).answer().await.unwrap();
//!     assert_eq!(response.headers()["cache-status"], told);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What may be stored and sent is decided in `eyewall-http`. There is no socket here, no server, and no configuration.

#![forbid(unsafe_code)]

mod answer;
mod blocking;
pub mod body;
pub mod cached_body;
mod collapsing;
mod fill;
mod fragments;
mod generation;
pub mod head;
pub mod layout;
pub mod pages;
pub mod purge;
pub mod query;
mod recent_keys;
pub mod recent_purges;
pub mod reply;
pub mod request_body;
pub mod selection;
pub mod settings;
pub mod store;
pub mod tags;
pub mod upstream;
pub mod visit;
