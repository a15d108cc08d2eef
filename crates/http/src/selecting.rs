//! Selects one of several stored responses for a request (RFC 9111, section 4.1).
//!
//! Two requests get the same response if the fields that it varies by have the same [`key`]. The key normalises them:
//!
//! - Lines are combined, and blanks around the commas of a list are removed. Fields that aren't lists stay unchanged.
//! - In `Accept-Encoding` and `Accept-Language`, letters become lower case, `x-gzip` becomes `gzip`, weights get one spelling, and
//!   members are sorted by descending weight, then by name. No member is dropped: a key has all of the client's preferences.
//!
//! A stored response also [`suits`] a request with another key if it is what that client prefers: the request names its
//! `Content-Encoding` or `Content-Language` with the highest weight.

use http::header::{
    ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, COOKIE, FROM, HOST, ORIGIN,
    REFERER, USER_AGENT,
};
use http::{HeaderMap, HeaderName};

use crate::field::cache_control::is_closed;
use crate::field::list;
use crate::field::quality::{self, Preference, QUALITY_MOST};
use crate::field::vary::Vary;

/// Fields in which a comma is no separator.
const NO_LISTS: [HeaderName; 7] = [AUTHORIZATION, COOKIE, FROM, HOST, ORIGIN, REFERER, USER_AGENT];

/// The fields that a response varies by in this cache: those in its `Vary`, and `Accept-Encoding` if it has a
/// content coding.
pub fn vary_of(response: &HeaderMap) -> Vary {
    let vary = Vary::of(response);
    if response.contains_key(CONTENT_ENCODING) { vary.and(ACCEPT_ENCODING) } else { vary }
}

/// The request fields that a response varies by, normalised: a line `name:value` for each present field, and a
/// line `name` for each absent one.
///
/// `names` are those of [`Vary::Fields`]. Requests with equal keys select the same response.
pub fn key(names: &[HeaderName], request: &HeaderMap) -> Vec<u8> {
    let mut key = Vec::new();
    for name in names {
        line(&mut key, name, request);
    }
    key
}

/// Whether a stored response, whose request had this key, fits a request.
///
/// It doesn't if the keys differ in another field than `Accept-Encoding` or `Accept-Language`, or if such a field
/// is only in one of the requests.
pub fn suits(names: &[HeaderName], stored_key: &[u8], stored: &HeaderMap, request: &HeaderMap) -> bool {
    let mut lines = stored_key.split_inclusive(|byte| *byte == b'\n');
    let is_suited = names.iter().all(|name| {
        let mut presented = Vec::new();
        line(&mut presented, name, request);
        let Some(kept) = lines.next() else { return false };
        let was_there = kept.starts_with(format!("{name}:").as_bytes());
        kept == presented || was_there && request.contains_key(name) && is_most_wanted(name, stored, request)
    });
    is_suited && lines.next().is_none()
}

fn line(key: &mut Vec<u8>, name: &HeaderName, request: &HeaderMap) {
    key.extend_from_slice(name.as_str().as_bytes());
    if request.contains_key(name) {
        key.push(b':');
        key.extend_from_slice(&value(name, request));
    }
    key.push(b'\n');
}

fn value(name: &HeaderName, request: &HeaderMap) -> Vec<u8> {
    if let Some(preferences) = preferences(name, request) {
        return spelled(&preferences).into_bytes();
    }
    let lines: Vec<&[u8]> = request.get_all(name).iter().map(|line| line.as_bytes().trim_ascii()).collect();
    if NO_LISTS.contains(name) || !lines.iter().all(|line| is_closed(line)) {
        return lines.join(&b", "[..]);
    }
    let members: Vec<&[u8]> = list::members(request, name).collect();
    members.join(&b","[..])
}

/// The preferences in a field, if it has some and isn't malformed.
fn preferences(name: &HeaderName, request: &HeaderMap) -> Option<Vec<Preference>> {
    if *name == ACCEPT_ENCODING || *name == ACCEPT_LANGUAGE { quality::preferences(request, name) } else { None }
}

fn spelled(preferences: &[Preference]) -> String {
    let members: Vec<String> = preferences
        .iter()
        .map(|Preference { name, quality }| match quality {
            &QUALITY_MOST => name.clone(),
            quality => format!("{name};q=0.{quality:03}"),
        })
        .collect();
    members.join(",")
}

/// Whether the request prefers nothing to the stored response in this field.
fn is_most_wanted(name: &HeaderName, stored: &HeaderMap, request: &HeaderMap) -> bool {
    let Some(preferences) = preferences(name, request) else { return false };
    if *name == ACCEPT_ENCODING { is_best_coding(&preferences, stored) } else { is_best_language(&preferences, stored) }
}

/// A coding must be named: clients that decode nothing send `*`, too. No coding is best only if the client
/// accepts none.
fn is_best_coding(preferences: &[Preference], stored: &HeaderMap) -> bool {
    let most = preferences.first().map_or(0, |preference| preference.quality);
    match sole_member(stored, &CONTENT_ENCODING).as_deref() {
        Some("") => {
            let takes_none =
                preferences.iter().all(|preference| preference.quality == 0 || preference.name == "identity");
            takes_none && quality::of_coding(preferences, "identity") > 0
        }
        Some(coding) => {
            let wanted = quality::named(preferences, &quality::coding_name(coding));
            most > 0 && wanted == Some(most)
        }
        None => false,
    }
}

fn is_best_language(preferences: &[Preference], stored: &HeaderMap) -> bool {
    let most = preferences.first().map_or(0, |preference| preference.quality);
    let Some(tag) = sole_member(stored, &CONTENT_LANGUAGE) else { return false };
    let is_named = preferences.iter().any(|preference| quality::is_in_range(&tag, &preference.name));
    is_named && most > 0 && quality::of_language(preferences, &tag) == most
}

/// The only member of a list, in lower case; an empty text if it has none. `None` if it has several, or one that
/// isn't text.
fn sole_member(fields: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut members = list::members(fields, name);
    let first = str::from_utf8(members.next().unwrap_or_default()).ok()?;
    members.next().is_none().then(|| first.to_ascii_lowercase())
}
