//! Arbitrary header fields through the representation side of the HTTP rules: tags, ranges, preconditions, parts, updates,
//! invalidation, groups, the fields of a connection. Nothing panics, no answer leaves the representation, and what is written
//! can be read.
#![no_main]

use std::time::{Duration, SystemTime};

use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::field::connection::{drop_hop_by_hop, step};
use eyewall_http::field::entity_tag::{EntityTag, TagList};
use eyewall_http::field::groups;
use eyewall_http::field::range::{ByteRanges, ContentRange, accepts_bytes, request};
use eyewall_http::invalidation::{Origin, invalidated};
use eyewall_http::partial::PartialContent;
use eyewall_http::precondition::{Representation, Role, evaluate, fields_of_not_modified};
use eyewall_http::ranges::{Boundary, Multipart, Served, fields_of_part, select};
use eyewall_http::strong_validator;
use eyewall_http::update::{effect_of_head, updated};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 24] = [
    "range",
    "if-range",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "content-range",
    "accept-ranges",
    "etag",
    "last-modified",
    "date",
    "content-length",
    "location",
    "content-location",
    "cache-groups",
    "cache-group-invalidation",
    "cache-status",
    "connection",
    "max-forwards",
    "via",
    "host",
    "content-type",
    "age",
    "transfer-encoding",
];

/// Lines of a byte that picks the name, and the value.
fn fields(data: &[u8]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n') {
        let Some((name, value)) = line.split_first() else { continue };
        let name = HeaderName::from_static(NAMES[usize::from(*name) % NAMES.len()]);
        if let Ok(value) = HeaderValue::from_bytes(value) {
            fields.append(name, value);
        }
    }
    fields
}

fuzz_target!(|data: &[u8]| {
    let Some((head, data)) = data.split_first_chunk::<12>() else { return };
    // Requests and responses are parted by a byte that no field has.
    let (one, other) = data.iter().position(|byte| *byte == 0).map_or((data, data), |at| data.split_at(at));
    let (request, response) = (fields(one), fields(other));
    let short = u64::from(u16::from_le_bytes([head[0], head[1]]));
    let length = if head[2] & 1 == 0 { short } else { u64::from_le_bytes([head[3]; 8]).wrapping_add(short) };
    let received = SystemTime::UNIX_EPOCH + Duration::from_secs(length >> 32);

    ranges(&request, &response, length);
    preconditions(&request, &response, received);
    parts(&request, &response, short, received);
    invalidation(&request, &response);

    let stored = updated(&request, &response);
    assert_eq!(stored.get("content-length"), request.get("content-length"));
    effect_of_head(&request, Some(length), StatusCode::OK, &response);
    CacheStatus::hit().key(data).detail("x").append_to(&mut HeaderMap::new(), "Eyewall");
    let mut message = request.clone();
    drop_hop_by_hop(&mut message);
    assert!(!message.contains_key("connection") && message.contains_key("host") == request.contains_key("host"));
    step(&Method::TRACE, &mut message);
});

fn ranges(request_fields: &HeaderMap, response: &HeaderMap, length: u64) {
    accepts_bytes(response);
    if let Some(range) = ContentRange::of(response) {
        let value = range.value().expect("what was read can be written");
        assert_eq!(ContentRange::parse(value.as_bytes()), Some(range));
    }
    let Some(asked) = ByteRanges::of(request_fields) else { return };
    let parts = match select(&asked, length) {
        Served::Part(range) => vec![range],
        Served::Parts(parts) => parts,
        Served::Whole | Served::Unsatisfiable => return,
    };
    for part in &parts {
        assert!(part.start < part.end && part.end <= length);
        assert!(fields_of_part(response, part, Some(length)).is_some());
    }
    let again = HeaderMap::from_iter([(http::header::RANGE, request(&parts).expect("not empty"))]);
    assert_eq!(ByteRanges::of(&again).map(|asked| asked.specs().len()), Some(parts.len()));
    let boundary = Boundary::new("b").expect("a letter");
    if let Some(body) = Multipart::new(response, parts, Some(length), boundary) {
        assert_eq!(body.segments().map(|segment| segment.length()).sum::<u64>(), body.content_length());
    }
}

fn preconditions(request: &HeaderMap, response: &HeaderMap, received: SystemTime) {
    let tag = EntityTag::of(response);
    for name in [http::header::IF_MATCH, http::header::IF_NONE_MATCH] {
        if let Some(list) = TagList::of(request, &name) {
            assert!(!list.has_strongly(tag.as_ref()) || list.has_weakly(tag.as_ref()));
        }
    }
    let current = Representation { status: StatusCode::OK, fields: response, received };
    for role in [Role::Origin, Role::Cache] {
        for method in [Method::GET, Method::HEAD, Method::PUT] {
            evaluate(role, &method, request, Some(&current));
            evaluate(role, &method, request, None);
        }
    }
    fields_of_not_modified(response, &[]);
    strong_validator::if_range(response, received);
}

fn parts(request: &HeaderMap, response: &HeaderMap, bytes: u64, received: SystemTime) {
    let partial = [
        PartialContent::of(StatusCode::PARTIAL_CONTENT, response, bytes, true, received),
        PartialContent::of(StatusCode::OK, response, bytes, false, received),
        PartialContent::of(StatusCode::PARTIAL_CONTENT, request, bytes, true, received),
    ];
    for one in partial.iter().flatten() {
        for other in partial.iter().flatten() {
            let Some(both) = one.combined(other) else { continue };
            assert!(one.range_set().ranges().iter().all(|range| both.range_set().has(range)));
            if let Some(asked) = ByteRanges::of(request)
                && let Some(Served::Part(range)) = both.select(&asked)
            {
                assert!(both.range_set().has(&range) && both.range_set().missing(&range).ranges().is_empty());
            }
        }
    }
}

fn invalidation(request: &HeaderMap, response: &HeaderMap) {
    let target = Uri::from_static("http://example.org/a/b?c");
    for uri in invalidated(&Method::POST, &target, StatusCode::OK, response) {
        assert_eq!(Origin::of(&uri), Origin::of(&target));
    }
    groups::of(request);
    groups::invalidated(&Method::POST, response);
}
