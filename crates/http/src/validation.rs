//! Asking the origin whether what is stored is still right, and what its answer means (RFC 9111, section 4.3).

use std::time::SystemTime;

use http::header::{
    ETAG, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::field::date;
use crate::field::entity_tag::EntityTag;
use crate::message::Response;
use crate::reuse;

/// A stored response that a validation is about.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Its stored fields.
    pub fields: &'a HeaderMap,
    /// When it came in.
    pub received: SystemTime,
}

/// What an answer to a validation means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The candidates with these indices are still right: the fields of the answer update them, and they are fresh again.
    Updates(Vec<usize>),
    /// It says that nothing changed and fits no candidate: ask again without a condition.
    AskAgain,
    /// It is a whole answer: send it, and judge whether it is stored in the place of the candidates.
    Answers,
    /// The origin failed: send a stale response if [`reuse::OnFailure`] allows it, else send this.
    Fails,
}

/// Makes a request a question about the candidates, and says whether it is one (section 4.3.1).
///
/// The conditions and ranges that a client set go. Entity tags of all candidates go into one list; a date is sent only about a
/// single candidate. False if no candidate has a validator: then the request asks for the whole.
pub fn make_conditional(request: &mut HeaderMap, candidates: &[Candidate<'_>]) -> bool {
    for name in [IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_MATCH, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE] {
        request.remove(name);
    }
    let mut tags: Vec<&[u8]> = Vec::new();
    for Candidate { fields, .. } in candidates {
        let written = fields.get(ETAG).filter(|_| EntityTag::of(fields).is_some());
        tags.extend(written.map(HeaderValue::as_bytes).filter(|tag| !tags.contains(tag)));
    }
    // Made of values of fields: always a valid value.
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

/// What the answer to such a request means (sections 4.3.3 and 4.3.4).
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

/// The candidates that a 304 identifies: all by a strong validator, the latest by a weak one.
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
    // Without a validator it can only be about the one that the question was about.
    if candidates.len() == 1 { vec![0] } else { Vec::new() }
}

fn latest(indices: Vec<usize>, candidates: &[Candidate<'_>]) -> Vec<usize> {
    indices.into_iter().max_by_key(|index| candidates[*index].received).into_iter().collect()
}
