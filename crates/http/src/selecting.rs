//! Which of several stored responses fits a request (RFC 9111, section 4.1).
//!
//! Two requests get the same response if the fields that it varies by have the same [`key`]. What is made alike there:
//!
//! - Lines are combined, and blanks around the commas of a list go. Fields that are no lists are taken as they are.
//! - In `Accept-Encoding` and `Accept-Language`, letters are lower case, `x-gzip` is `gzip`, weights have one spelling, and members
//!   stand by descending weight, then by name. No member is dropped: a key says what its client takes, and how much.
//!
//! Beside that, a stored response [`suits`] a request whose key differs if it is what that client wants most: its
//! `Content-Encoding` or `Content-Language` is named by the request, with the highest weight.

use http::header::{
    ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, COOKIE, FROM, HOST, ORIGIN,
    REFERER, USER_AGENT,
};
use http::{HeaderMap, HeaderName};

use crate::field::cache_control::is_closed;
use crate::field::list;
use crate::field::quality::{self, Preference, QUALITY_MOST};
use crate::field::vary::Vary;

/// Fields in which a comma separates nothing.
const NO_LISTS: [HeaderName; 7] = [AUTHORIZATION, COOKIE, FROM, HOST, ORIGIN, REFERER, USER_AGENT];

/// What a response varies by for this cache: what it says, and by `Accept-Encoding` if it is coded and doesn't say so.
pub fn vary_of(response: &HeaderMap) -> Vary {
    let vary = Vary::of(response);
    if response.contains_key(CONTENT_ENCODING) { vary.and(ACCEPT_ENCODING) } else { vary }
}

/// The fields of a request that a response varies by, in one spelling: a line `name:value` for each that is there, and a line
/// `name` for each that is not.
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
/// Where the keys differ in another field than `Accept-Encoding` or `Accept-Language` it doesn't, nor where such a field is only
/// in one of the requests.
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

/// The preferences of a field that has some, unless it is malformed.
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

/// Whether nothing is wanted more by this field than what is stored.
fn is_most_wanted(name: &HeaderName, stored: &HeaderMap, request: &HeaderMap) -> bool {
    let Some(preferences) = preferences(name, request) else { return false };
    if *name == ACCEPT_ENCODING { is_best_coding(&preferences, stored) } else { is_best_language(&preferences, stored) }
}

/// A coding counts only if it is named: `*` is said by clients that decode nothing. No coding is best only where none is taken.
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

/// The one member of a list, in lower case; an empty text if it has none. None if it has several, or one that is no text.
fn sole_member(fields: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut members = list::members(fields, name);
    let first = str::from_utf8(members.next().unwrap_or_default()).ok()?;
    members.next().is_none().then(|| first.to_ascii_lowercase())
}
