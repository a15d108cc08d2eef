//! The parts of messages that the rules read.

use std::time::SystemTime;

use http::{HeaderMap, Method, StatusCode};

/// A request in the form in which this cache forwarded it, or would.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Its header fields.
    pub fields: &'a HeaderMap,
}

/// A response, as this cache received it.
#[derive(Debug, Clone, Copy)]
pub struct Response<'a> {
    /// Its status.
    pub status: StatusCode,
    /// Its header fields.
    pub fields: &'a HeaderMap,
}

/// When a request was sent to the origin, and when the head of the response came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// `request_time` of RFC 9111, section 4.2.3.
    pub requested: SystemTime,
    /// `response_time` of RFC 9111, section 4.2.3.
    pub received: SystemTime,
}
