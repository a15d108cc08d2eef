//! Parses the body of `POST /purge`.

use eyewall::Purge as Kind;
use serde::Deserialize;

use crate::serve::purge::{PurgeRequest, Subject};

const EXAMPLES: &str = r#"give an object such as {"url": "http://example.org/page"}, {"tag": ["post-7", "home"]}, {"tag": "post-7", "host": "example.org"}, {"prefix": "http://example.org/shop/"}, {"host": "example.org"} or {"everything": true}; with "soft": true, the entries become stale; with "count": true, they are counted; with "preview": true, they are counted and stay"#;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "they are the fields of the JSON")]
struct PurgeBody {
    url: Option<Names>,
    tag: Option<Names>,
    prefix: Option<Names>,
    host: Option<String>,
    everything: bool,
    soft: bool,
    count: bool,
    preview: bool,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, or a list of texts")]
enum Names {
    One(String),
    Many(Vec<String>),
}

impl Names {
    fn into_list(self) -> Vec<String> {
        match self {
            Self::One(name) => vec![name],
            Self::Many(names) => names,
        }
    }
}

/// Reads a purge request.
///
/// # Errors
/// A message for the author of the body.
pub(super) fn read(body: &[u8]) -> Result<PurgeRequest, String> {
    let purge: PurgeBody = serde_json::from_slice(body)
        .map_err(|error| format!("the body is not a purge request: {error}; {EXAMPLES}"))?;
    let kind = if purge.soft { Kind::Soft } else { Kind::Hard };
    let subjects: Vec<Subject> = match (purge.url, purge.tag, purge.prefix, purge.host, purge.everything) {
        (Some(urls), None, None, None, false) => urls.into_list().into_iter().map(Subject::Url).collect(),
        (None, Some(tags), None, host, false) => {
            tags.into_list().into_iter().map(|tag| Subject::Tag { tag, host: host.clone() }).collect()
        }
        (None, None, Some(prefixes), None, false) => prefixes.into_list().into_iter().map(Subject::Prefix).collect(),
        (None, None, None, Some(host), false) => vec![Subject::Host(host)],
        (None, None, None, None, true) => vec![Subject::Everything],
        (None, None, None, None, false) => return Err(format!("the body doesn't say what to purge; {EXAMPLES}")),
        _ => return Err(format!("the body has several kinds of subjects, but a request takes one; {EXAMPLES}")),
    };
    if subjects.is_empty() {
        return Err(format!("the list of subjects is empty; {EXAMPLES}"));
    }
    let (counts, previews) = (purge.count || purge.preview, purge.preview);
    Ok(PurgeRequest { subjects, kind, counts, waits: false, previews })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_request_has_one_kind_of_subject() {
        let subjects = |body: &str| read(body.as_bytes()).unwrap().subjects;
        assert_eq!(subjects(r#"{"url": ["a", "b"]}"#), [Subject::Url("a".to_owned()), Subject::Url("b".to_owned())]);
        let tag = Subject::Tag { tag: "a".to_owned(), host: Some("b".to_owned()) };
        assert_eq!(subjects(r#"{"tag": "a", "host": "b"}"#), [tag]);
        assert_eq!(subjects(r#"{"prefix": "a", "everything": false}"#), [Subject::Prefix("a".to_owned())]);
        assert_eq!(subjects(r#"{"host": "a"}"#), [Subject::Host("a".to_owned())]);
        assert_eq!(subjects(r#"{"everything": true}"#), [Subject::Everything]);
        assert_eq!(read(br#"{"host": "a", "soft": true}"#).unwrap().kind, Kind::Soft);
        assert_eq!(read(br#"{"host": "a"}"#).unwrap().kind, Kind::Hard);
        assert!(read(br#"{"host": "a", "count": true}"#).unwrap().counts);
    }

    #[test]
    fn mistakes_are_reported_with_examples() {
        for (body, words) in [
            ("", "EOF while parsing"),
            ("{}", "doesn't say what"),
            (r#"{"soft": true}"#, "doesn't say what"),
            (r#"{"urls": "a"}"#, "unknown field `urls`"),
            (r#"{"url": 1}"#, "expected a text, or a list of texts"),
            (r#"{"url": "a", "url": "b"}"#, "duplicate field `url`"),
            (r#"{"url": []}"#, "is empty"),
            (r#"{"url": "a", "tag": "b"}"#, "several kinds"),
            (r#"{"prefix": "a", "host": "b"}"#, "several kinds"),
            (r#"{"everything": true, "host": "b"}"#, "several kinds"),
            (r#"{"everything": "yes"}"#, "expected a boolean"),
            (r#"{"host": "a"} {}"#, "trailing characters"),
        ] {
            let told = read(body.as_bytes()).unwrap_err();
            assert!(told.contains(words) && told.contains(r#"{"everything": true}"#), "{body}: {told}");
        }
    }
}
