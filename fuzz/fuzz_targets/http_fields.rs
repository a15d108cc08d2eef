//! Arbitrary lines as the header fields of a request and of a response: every parser and every decision of the cache takes them
//! without a panic, and what they say of each other holds.
//!
//! The input is lines of `name:value`. Those before an empty line are the request's, those behind it the response's. The first
//! bytes are the status and the times.
#![no_main]

use std::time::{Duration, SystemTime};

use eyewall_http::field::cache_control::{RequestDirectives, ResponseDirectives};
use eyewall_http::field::targeted::{self, CDN_CACHE_CONTROL};
use eyewall_http::field::{quality, vary::Vary};
use eyewall_http::message::{Exchange, Request, Response};
use eyewall_http::policy::Policy;
use eyewall_http::reuse::{self, Reuse};
use eyewall_http::terms::{Marks, TERMS_BYTES, Terms};
use eyewall_http::validation::{self, Candidate};
use eyewall_http::{age, selecting, storing};
use http::header::{ACCEPT_ENCODING, ACCEPT_LANGUAGE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&[status_low, status_high, delay, later_low, later_high], text)) = input.split_first_chunk() else {
        return;
    };
    let (asked, answered) = messages(text);
    let status = 200 + (u16::from(status_low) | u16::from(status_high) << 8) % 400;
    let Ok(status) = StatusCode::from_u16(status) else { return };
    let received = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
    let exchange = Exchange { requested: received - Duration::from_millis(delay.into()), received };
    let later = received + Duration::from_secs(u64::from(later_low) | u64::from(later_high) << 8);

    parse(&asked, &answered, exchange);
    let request = Request { method: &Method::GET, fields: &asked };
    let response = Response { status, fields: &answered };
    decide(request, response, exchange, later);
    validate(response, &answered, asked.clone(), received);
    if let Some(terms) = text.first_chunk::<TERMS_BYTES>().and_then(|bytes| Terms::from_bytes(*bytes)) {
        reuse::decide(&terms, &RequestDirectives::of(&asked), later, &Policy::default());
    }
});

fn messages(text: &[u8]) -> (HeaderMap, HeaderMap) {
    let mut lines = text.split(|byte| *byte == b'\n');
    let request = lines.by_ref().take_while(|line| !line.is_empty()).filter_map(field).collect();
    (request, lines.filter_map(field).collect())
}

fn field(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((HeaderName::from_bytes(&line[..colon]).ok()?, HeaderValue::from_bytes(&line[colon + 1..]).ok()?))
}

fn parse(asked: &HeaderMap, answered: &HeaderMap, exchange: Exchange) {
    ResponseDirectives::of(answered);
    targeted::directives(answered, &CDN_CACHE_CONTROL);
    age::initial(answered, exchange);
    for name in [ACCEPT_ENCODING, ACCEPT_LANGUAGE] {
        for preference in quality::preferences(asked, &name).unwrap_or_default() {
            assert!(preference.quality <= quality::QUALITY_MOST);
        }
    }
}

fn decide(request: Request<'_>, response: Response<'_>, exchange: Exchange, later: SystemTime) {
    let policy = Policy::default();
    let Ok(stored) = storing::judge(request, response, exchange, &policy) else { return };
    assert_eq!(Terms::from_bytes(stored.terms.to_bytes()), Some(stored.terms));
    if let Vary::Fields(names) = &stored.vary {
        // The same question again gets the same answer.
        let key = selecting::key(names, request.fields);
        assert!(selecting::suits(names, &key, response.fields, request.fields));
    }
    let decided = reuse::decide(&stored.terms, &RequestDirectives::of(request.fields), later, &policy);
    if stored.terms.marks.contains(Marks::NO_CACHE) {
        assert!(!matches!(decided, Reuse::Fresh | Reuse::StaleAllowed | Reuse::StaleWhileRevalidate));
    }
    if decided == Reuse::Fresh {
        assert!(stored.terms.stale_for(later).is_zero());
    }
}

fn validate(response: Response<'_>, stored: &HeaderMap, mut request: HeaderMap, received: SystemTime) {
    let candidates = [Candidate { fields: stored, received }; 2];
    for count in 0..=2 {
        validation::make_conditional(&mut request, &candidates[..count]);
        validation::interpret(response, &candidates[..count]);
        let unchanged = Response { status: StatusCode::NOT_MODIFIED, ..response };
        validation::interpret(unchanged, &candidates[..count]);
    }
}
