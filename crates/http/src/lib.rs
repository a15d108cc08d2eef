//! The rules of a shared HTTP cache, as functions of messages and times.
//!
//! No sockets, no store, no clock of its own: whoever calls says what time it is. So every rule can be tested by a table, and
//! a history of years takes no time. Only [years of two digits](field::date::parse) are read by the system's clock.
//!
//! # In one minute
//!
//! A response comes. [`storing::judge`] says whether it may be stored, and on which [`terms::Terms`]: a few bytes to keep beside
//! it. A request comes that [`selecting`] finds it for. [`reuse::decide`] says from these bytes, and from what the request asks
//! for, whether it may be sent.
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
//! # Which section is where
//!
//! | section | what | module |
//! |---|---|---|
//! | RFC 9111, 3; 3.1; 3.5 | what may be stored, without which fields, and what of named users | [`storing`] |
//! | RFC 9111, 4; 4.2.4; RFC 5861; RFC 8246 | when it may be sent, fresh or stale | [`reuse`], [`terms`] |
//! | RFC 9111, 4.1; RFC 9110, 12.5.5 | which of several fits a request | [`selecting`], [`field::vary`] |
//! | RFC 9111, 4.2.1; 4.2.2; 5.3 | for how long it is fresh, said or guessed | [`freshness`] |
//! | RFC 9111, 4.2.3; 5.1 | how old it is | [`age`] |
//! | RFC 9111, 4.3 | asking whether it is still right | [`validation`] |
//! | RFC 9111, 5.2; 5.4 | directives of requests and responses, `Pragma` | [`field::cache_control`] |
//! | RFC 9213 | directives for this cache alone | [`field::targeted`] |
//! | RFC 9110, 13 to 15 | what a request gets of a representation: all, ranges, a head, 304, 412 or 416 | [`answer`], [`precondition`], [`ranges`] |
//! | RFC 9110, 12.4.2; 12.5.3; 12.5.4; RFC 4647 | preferences with weights | [`field::quality`] |
//! | RFC 10008, 2.7 | what tells requests with content apart | [`query`] |
//! | RFC 9110, 5.6.7 | dates | [`field::date`] |
//! | | what an operator may set | [`policy`] |
//! | | what is stored of variants and fields, as bytes | [`vary_index`], [`stored_fields`] |
//!
//! Which test holds which statement of these RFCs is in [`statements`].
//!
//! # What holds
//!
//! - Where a field is malformed, the reading that forbids most is taken, unless its RFC names another.
//! - Nothing is sent stale against the word of the origin, whatever the operator has set.
//! - Nothing here panics or runs long, whatever the bytes of a field are.
//!
//! # What it leaves to others
//!
//! Keys of resources, and where things are stored; the bytes of bodies; how requests reach the origin. A request that selects
//! nothing stored is asked for at the origin, but for [`reuse::is_timeout_without_stored`].

#![forbid(unsafe_code)]

pub mod age;
pub mod answer;
pub mod field;
pub mod freshness;
pub mod invalidation;
pub mod message;
pub mod partial;
pub mod policy;
pub mod precondition;
pub mod query;
pub mod ranges;
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
