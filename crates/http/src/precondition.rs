//! Preconditions of requests, in the order of RFC 9110, section 13.2.2, and which of them a cache evaluates (RFC 9111, section
//! 4.3.2).
//!
//! ```text
//! If-Match              \  origin only: 412
//!  or If-Unmodified-Since/
//! If-None-Match            304; 412 for methods that change something
//!  or If-Modified-Since    304, only for methods that read
//! Range, under If-Range    206 or 416, only GET
//! ```

use std::time::SystemTime;

use http::header::{
    AGE, CACHE_CONTROL, CONTENT_LOCATION, DATE, ETAG, EXPIRES, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, LAST_MODIFIED, VARY, VIA,
};
use http::{HeaderMap, HeaderName, Method, StatusCode};

use crate::field::cache_status::CACHE_STATUS;
use crate::field::date;
use crate::field::entity_tag::{EntityTag, TagList};
use crate::field::groups::CACHE_GROUPS;
use crate::field::range::ByteRanges;
use crate::{strong_validator, update};

/// The evaluating server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The server of the resource itself, for instance of a file: it evaluates all preconditions.
    Origin,
    /// A cache with a stored response: it leaves `If-Match` and `If-Unmodified-Since` to the origin.
    Cache,
    /// The origin itself, with a response that it stored: it evaluates all preconditions. As in
    /// [`Role::Cache`], the date replaces a missing modification date.
    CacheOfOrigin,
}

/// The representation that would answer a request: the origin's own, or a stored response.
#[derive(Debug, Clone, Copy)]
pub struct Representation<'a> {
    /// The status of that answer.
    pub status: StatusCode,
    /// The header fields of that answer.
    pub fields: &'a HeaderMap,
    /// When the stored response was received; for the origin's own, now.
    pub received: SystemTime,
}

/// The result of the preconditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Process the request as if it had none, and ignore its `Range`.
    Proceed,
    /// 304, with the fields of [`fields_of_not_modified`].
    NotModified,
    /// 412: a precondition is false.
    Failed,
    /// Send these ranges; [`crate::ranges`] makes the answer.
    Partial(ByteRanges),
}

/// Evaluates a request's preconditions. `current` is `None` if there is no representation: then an origin fails a
/// change that relies on one, and a cache decides nothing.
///
/// Preconditions are ignored if the answer without them would not be a success, and for methods that select no
/// representation.
pub fn evaluate(role: Role, method: &Method, request: &HeaderMap, current: Option<&Representation<'_>>) -> Outcome {
    if matches!(*method, Method::CONNECT | Method::OPTIONS | Method::TRACE) {
        return Outcome::Proceed;
    }
    // A read of a missing resource gets 404 with and without preconditions.
    if current.map_or(is_reading(method), |current| !current.status.is_success()) {
        return Outcome::Proceed;
    }
    if role != Role::Cache && !is_as_believed(request, current) {
        return Outcome::Failed;
    }
    let Some(current) = current else { return Outcome::Proceed };
    if is_had_already(role, method, request, current) {
        return if is_reading(method) { Outcome::NotModified } else { Outcome::Failed };
    }
    if *method == Method::GET && current.status == StatusCode::OK && is_range_applicable(request, current) {
        return ByteRanges::of(request).map_or(Outcome::Proceed, Outcome::Partial);
    }
    Outcome::Proceed
}

/// The fields of a 304 (RFC 9110, section 15.4.5), from those of the full response: the required ones, and those
/// that guide caches or routing. `also` names more fields that guide caches, such as targeted cache control.
pub fn fields_of_not_modified(response: &HeaderMap, also: &[HeaderName]) -> HeaderMap {
    let kept = [
        AGE,
        CACHE_CONTROL,
        CACHE_GROUPS,
        CACHE_STATUS,
        CONTENT_LOCATION,
        DATE,
        ETAG,
        EXPIRES,
        LAST_MODIFIED,
        VARY,
        VIA,
    ];
    let mut fields = HeaderMap::new();
    for name in kept.iter().chain(also) {
        update::replace_lines(&mut fields, name, response);
    }
    fields
}

/// Whether `If-Match`, or without it `If-Unmodified-Since`, is true (sections 13.1.1 and 13.1.4).
fn is_as_believed(request: &HeaderMap, current: Option<&Representation<'_>>) -> bool {
    if let Some(tags) = TagList::of(request, &IF_MATCH) {
        return current.is_some_and(|current| tags.has_strongly(EntityTag::of(current.fields).as_ref()));
    }
    let Some(since) = only_date(request, &IF_UNMODIFIED_SINCE) else { return true };
    let modified = current.and_then(|current| date::of(current.fields, &LAST_MODIFIED));
    modified.is_none_or(|modified| modified <= since)
}

/// Whether the client has the current representation: by `If-None-Match`, or without it by `If-Modified-Since`
/// (sections 13.1.2 and 13.1.3).
fn is_had_already(role: Role, method: &Method, request: &HeaderMap, current: &Representation<'_>) -> bool {
    if let Some(tags) = TagList::of(request, &IF_NONE_MATCH) {
        return tags.has_weakly(EntityTag::of(current.fields).as_ref());
    }
    if !is_reading(method) {
        return false;
    }
    let Some(since) = only_date(request, &IF_MODIFIED_SINCE) else { return false };
    let modified = date::of(current.fields, &LAST_MODIFIED).or_else(|| match role {
        Role::Origin => None,
        // A stored response can't have been modified after it was made.
        Role::Cache | Role::CacheOfOrigin => Some(date::of(current.fields, &DATE).unwrap_or(current.received)),
    });
    modified.is_some_and(|modified| modified <= since)
}

/// Whether `If-Range` is absent or true (section 13.1.5): by strong comparison of tags, or by the same date.
fn is_range_applicable(request: &HeaderMap, current: &Representation<'_>) -> bool {
    let mut lines = request.get_all(IF_RANGE).iter();
    let Some(line) = lines.next() else { return true };
    if lines.next().is_some() {
        return false;
    }
    if let Some(theirs) = EntityTag::parse(line.as_bytes()) {
        return EntityTag::of(current.fields).is_some_and(|ours| ours.matches_strongly(&theirs));
    }
    let theirs = date::parse(line);
    theirs.is_some() && theirs == strong_validator::modified(current.fields, current.received)
}

/// Methods whose response the client may already have. QUERY is a GET with content (RFC 10008, section 2.6).
fn is_reading(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::QUERY)
}

/// The date of a field with one line. Several lines are no date.
fn only_date(fields: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    let mut lines = fields.get_all(name).iter();
    let line = lines.next()?;
    lines.next().is_none().then(|| date::parse(line)).flatten()
}
