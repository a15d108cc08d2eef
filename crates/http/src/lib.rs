//! The rules of a shared HTTP cache, as functions of messages and times.
//!
//! The crate has no sockets, no store and no clock: the caller passes the time. So tables can test every rule, and a test of years
//! takes no time. Only [years of two digits](field::date::parse) depend on the system's clock.
//!
//! # In one minute
//!
//! When a response arrives, [`storing::judge`] says whether it may be stored, and returns [`terms::Terms`]: a few bytes to keep
//! beside it. When a request arrives, [`selecting`] finds the stored response. [`reuse::decide`] then says whether it may be sent,
//! from the terms and the request's directives.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//!
//! use eyewall_http::field::cache_control::RequestDirectives;
//! use eyewall_http::message::{Exchange, Request, Response};
//! use eyewall_http::policy::Policy;
//! use eyewall_http::reuse::{self, Reuse};
//! use eyewall_http::storing;
//! use http::header::{CACHE_CONTROL, ETAG};
//! use http::{HeaderMap, HeaderValue, Method, StatusCode};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = Policy::default();
//! let now = SystemTime::now();
//!
//! let asked = HeaderMap::new();
//! let mut fields = HeaderMap::new();
//! fields.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60, stale-while-revalidate=30"));
//! fields.insert(ETAG, HeaderValue::from_static("\"v1\""));
//!
//! let request = Request { method: &Method::GET, fields: &asked };
//! let response = Response { status: StatusCode::OK, fields: &fields };
//! let stored = storing::judge(request, response, Exchange { requested: now, received: now }, &policy)
//!     .map_err(|why| why.as_str())?;
//!
//! let plain = RequestDirectives::default();
//! let after = |seconds| reuse::decide(&stored.terms, &plain, now + Duration::from_secs(seconds), &policy);
//! assert_eq!(after(59), Reuse::Fresh);
//! assert_eq!(after(80), Reuse::StaleWhileRevalidate);
//! assert!(matches!(after(95), Reuse::Validate { .. }));
//! # Ok(())
//! # }
//! ```
//!
//! # Find the rule of a section
//!
//! | section | rule | module |
//! |---|---|---|
//! | RFC 9111, 3; 3.1; 3.5 | which responses may be stored, which fields are left out, and authenticated users | [`storing`] |
//! | RFC 9111, 4; 4.2.4; RFC 5861; RFC 8246 | when a stored response may be sent, fresh or stale | [`reuse`], [`terms`] |
//! | RFC 9111, 4.1; RFC 9110, 12.5.5 | which of several responses fits a request | [`selecting`], [`field::vary`] |
//! | RFC 9111, 4.2.1; 4.2.2; 5.3 | how long a response is fresh, by its fields or by a guess | [`freshness`] |
//! | RFC 9111, 4.2.3; 5.1 | how old a response is | [`age`] |
//! | RFC 9111, 4.3 | revalidation | [`validation`] |
//! | RFC 9111, 5.2; 5.4 | directives of requests and responses, `Pragma` | [`field::cache_control`] |
//! | RFC 9213 | directives for some caches only | [`field::targeted`] |
//! | RFC 9110, 13 to 15 | the answer to a request for a representation: the whole, ranges, a head, 304, 412 or 416 | [`answer`], [`precondition`], [`ranges`] |
//! | RFC 9110, 12.4.2; 12.5.3; 12.5.4; RFC 4647 | weighted preferences | [`field::quality`] |
//! | RFC 9110, 8.4.1; 12.5.3; RFC 7932; RFC 8878 | content codings that a cache or a server makes itself | [`coding`] |
//! | RFC 10008, 2.7 | keys of requests with content | [`query`] |
//! | RFC 9110, 5.6.7 | dates | [`field::date`] |
//! | | settings of the operator | [`policy`] |
//! | | stored form of variants and fields | [`vary_index`], [`stored_fields`] |
//!
//! [`statements`] lists the test for each statement of these RFCs.
//!
//! # Guarantees
//!
//! - A malformed field gets its most restrictive reading, unless its RFC names another.
//! - Nothing is sent stale if the origin forbids that, whatever the operator has set.
//! - No input makes these functions panic or run long.
//!
//! # Left to the caller
//!
//! The caller makes keys of resources, stores responses and bodies, and sends requests to the origin. It forwards a request that
//! selects no stored response, except if [`reuse::is_timeout_without_stored`].

#![forbid(unsafe_code)]

pub mod age;
pub mod answer;
pub mod coding;
pub mod field;
pub mod freshness;
pub mod invalidation;
pub mod message;
pub mod partial;
pub mod policy;
pub mod precondition;
pub mod query;
pub mod ranges;
pub mod reader;
pub mod reuse;
pub mod selecting;
pub mod vary_index;
#[doc = include_str!("statements.md")]
pub mod statements {}
pub mod stored_fields;
pub mod storing;
pub mod strong_validator;
pub mod terms;
pub mod update;
pub mod validation;
