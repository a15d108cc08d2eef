//! What a key is made of, and what it leaves out.

use http::HeaderMap;
use http::request::Parts;

use super::explanation::{KeyOf, Piece};
use crate::config::names::Glob;
use crate::config::presets::TRACKERS;
use crate::config::site::Key;
use crate::key::{CacheKey, cookies};
use crate::sites::Site;

/// The key of a request of a site, whose fields are those that the site's key is made of.
pub(super) fn describe(key: &CacheKey, site: &Site, parts: &Parts) -> KeyOf {
    let text = key.text().to_owned();
    let (query, settings) = (parts.uri.query().unwrap_or_default(), &site.settings.key);
    let piece = |kind: &str, text: &str, is_kept: bool, by: Option<String>| Piece {
        kind: kind.to_owned(),
        text: text.to_owned(),
        is_kept,
        by,
    };
    let mut pieces = vec![
        piece("scheme", key.scheme().as_str(), true, None),
        piece("host", key.authority(), true, None),
        piece("path", key.path(), true, None),
    ];
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let is_stripped = site.key.strips(parameter);
        pieces.push(piece("parameter", parameter, !is_stripped, is_stripped.then(|| stripping(settings, parameter))));
    }
    for name in settings.cookies.iter().map(|name| name.0.as_str()) {
        let is_sent = cookies(&parts.headers).any(|(found, _)| found == name.as_bytes());
        pieces.push(piece("cookie", name, is_sent, Some("cookies".to_owned())));
    }
    for name in settings.headers.iter().map(|name| &name.get_ref().0) {
        pieces.push(piece("header", name.as_str(), has(&parts.headers, name), Some("headers".to_owned())));
    }
    KeyOf {
        address: key.address().to_owned(),
        parts: text[key.address().len()..].trim_start().to_owned(),
        stripped_parameters: query.split('&').filter(|piece| site.key.strips(piece)).map(str::to_owned).collect(),
        pieces,
        text,
    }
}

fn has(fields: &HeaderMap, name: &http::HeaderName) -> bool {
    fields.contains_key(name)
}

/// The setting that strips a parameter.
fn stripping(settings: &Key, parameter: &str) -> String {
    let strips = |pattern: &str| crate::key::strips([pattern], parameter);
    if let Some(pattern) = settings.strip_query.iter().map(Glob::as_str).find(|pattern| strips(pattern)) {
        return format!("strip_query = {pattern:?}");
    }
    let tracker = TRACKERS.iter().find(|pattern| strips(pattern)).unwrap_or(&"");
    format!("strip_trackers ({tracker})")
}
