//! Spans: records of single requests, and of their requests to origins, for a collector (OpenTelemetry's OTLP over HTTP).
//!
//! ```text
//! trace `ids` ──> recording     the names of a request that is recorded, a part of its ids
//!                   ├──> server_span   from the head of the request until the last byte of its response has left
//!                   └──> origin_span   from a request to an origin until the end of its response; the origin gets its id
//!                          └──> span ──> a queue of `batching` ──> sender: a thread, which batches and retries ──> collector
//! message: the bytes of OTLP
//! ```
//! No worker waits for the collector, and a request that isn't recorded allocates nothing here. A collector that is down costs spans: a batch is
//! dropped after a minute, and the metrics count it.
//!
//! # Invariants
//! - No span has a secret: no query, no user name of an address, and no field of a request or a response.
//! - A text of a client in a span has at most a kibibyte, so that the queue bounds memory.
#![cfg_attr(not(feature = "otlp"), expect(dead_code, reason = "no configuration opens an exporter then"))]

#[cfg(feature = "otlp")]
mod collector;
mod exporters;
#[cfg(feature = "otlp")]
mod message;
mod origin_span;
mod recording;
#[cfg(feature = "otlp")]
mod sender;
mod server_span;
mod span;

pub(crate) use exporters::{Exporter, Exporters, LastSpans};
pub(crate) use origin_span::OriginSpan;
pub(crate) use recording::Recording;
pub(crate) use server_span::ServerSpan;
