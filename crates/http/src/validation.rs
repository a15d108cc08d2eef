//! Revalidation: the request to the origin, and the meaning of its response (RFC 9111, section 4.3).

use std::time::SystemTime;

use http::header::{
    ETAG, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::field::date;
use crate::field::entity_tag::EntityTag;
use crate::message::Response;
use crate::reuse;

/// A stored response to revalidate.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Its stored fields.
    pub fields: &'a HeaderMap,
    /// When it was received.
    pub received: SystemTime,
}

/// The meaning of the response to a revalidation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The candidates with these indices are still valid: the response's fields update them, and they are
    /// fresh again.
    Updates(Vec<usize>),
    /// It is a 304 that matches no candidate: send the request again, without a condition.
    AskAgain,
    /// It is a full response: send it, and judge whether to store it in place of the candidates.
    Answers,
    /// The origin failed: send a stale response if [`reuse::OnFailure`] allows that, else send this one.
    Fails,
}

/// Turns a request into a revalidation of the candidates, and returns whether it is one (section 4.3.1).
///
/// The client's own conditions and ranges are removed. The entity tags of all candidates go into one list. A date
/// is sent only for a single candidate. Returns false if no candidate has a validator: then the request asks for
/// the whole.
pub fn make_conditional(request: &mut HeaderMap, candidates: &[Candidate<'_>]) -> bool {
    for name in [IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_MATCH, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE] {
        request.remove(name);
    }
    let mut tags: Vec<&[u8]> = Vec::new();
    for Candidate { fields, .. } in candidates {
        let written = fields.get(ETAG).filter(|_| EntityTag::of(fields).is_some());
        tags.extend(written.map(HeaderValue::as_bytes).filter(|tag| !tags.contains(tag)));
    }
    // Made of field values, so it is always valid.
    if let (false, Ok(list)) = (tags.is_empty(), HeaderValue::from_bytes(&tags.join(&b", "[..]))) {
        request.insert(IF_NONE_MATCH, list);
    }
    if let [candidate] = candidates
        && date::of(candidate.fields, &LAST_MODIFIED).is_some()
        && let Some(modified) = candidate.fields.get(LAST_MODIFIED)
    {
        request.insert(IF_MODIFIED_SINCE, modified.clone());
    }
    request.contains_key(IF_NONE_MATCH) || request.contains_key(IF_MODIFIED_SINCE)
}

/// The meaning of the response (sections 4.3.3 and 4.3.4).
pub fn interpret(answer: Response<'_>, candidates: &[Candidate<'_>]) -> Outcome {
    if reuse::is_failure(answer.status) {
        return Outcome::Fails;
    }
    if answer.status != StatusCode::NOT_MODIFIED {
        return Outcome::Answers;
    }
    let updated = updated(answer.fields, candidates);
    if updated.is_empty() { Outcome::AskAgain } else { Outcome::Updates(updated) }
}

/// The candidates that a 304 selects: all with its strong validator, or the latest with its weak one.
fn updated(answer: &HeaderMap, candidates: &[Candidate<'_>]) -> Vec<usize> {
    let matching = |matches: &dyn Fn(&HeaderMap) -> bool| -> Vec<usize> {
        (0..candidates.len()).filter(|index| matches(candidates[*index].fields)).collect()
    };
    if let Some(told) = EntityTag::of(answer) {
        if !told.is_weak() {
            return matching(&|fields| EntityTag::of(fields).is_some_and(|tag| tag.matches_strongly(&told)));
        }
        let is_alike = |fields: &HeaderMap| EntityTag::of(fields).is_some_and(|tag| tag.matches_weakly(&told));
        return latest(matching(&is_alike), candidates);
    }
    if let Some(modified) = date::of(answer, &LAST_MODIFIED) {
        return latest(matching(&|fields| date::of(fields, &LAST_MODIFIED) == Some(modified)), candidates);
    }
    // Without a validator, it can only mean the one candidate of the request.
    if candidates.len() == 1 { vec![0] } else { Vec::new() }
}

fn latest(indices: Vec<usize>, candidates: &[Candidate<'_>]) -> Vec<usize> {
    indices.into_iter().max_by_key(|index| candidates[*index].received).into_iter().collect()
}
