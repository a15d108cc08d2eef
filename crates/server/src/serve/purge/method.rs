//! The method `PURGE`, as other caches have it: a request for an address.
//!
//! Eyewall refuses it unless the operator allows it: by a token (`purge_token_file`), or by networks of clients (`purge_from`).
//!
//! | request | what it purges |
//! |---|---|
//! | `PURGE /path` | the address, with all variants |
//! | with `Xkey`, `Surrogate-Key` or another of the `TAG_FIELDS` | entries with one of these tags, of the site of the host |
//! | with `X-Purge-Method: regex`, or of a path that ends with `.*` | addresses with this beginning |
//! | with `X-Purge-Wait: applied` | the same, answered when all nodes of the fleet have applied it |
//! | with `Fastly-Soft-Purge: 1` or `X-Soft-Purge: 1` | the same, softly |
//!
//! Plugins for blogs send `X-Purge-Method`, and `/.*` for all of a host. They accept only 200 as success, so Eyewall answers 200
//! even if nothing was stored.

use std::net::IpAddr;
use std::sync::Arc;

use eyewall::Purge as Kind;
use http::header::WWW_AUTHENTICATE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use super::{PurgeRequest, Subject, purge};
use crate::config::names::Network;
use crate::key::RequestHost;
use crate::serve::body::Body;
use crate::serve::reply;
use crate::serve::shared::Shared;
use crate::serve::trusted_proxies::{Forwarded, RealClient};

/// Fields that name the tags to purge, separated by blanks or commas.
const TAG_FIELDS: [&str; 3] = ["xkey", "surrogate-key", "x-cache-tags"]; // tidy: word, since that is its name
/// Fields that ask for a soft purge.
const SOFT_FIELDS: [&str; 2] = ["fastly-soft-purge", "x-soft-purge"];
/// Fields by which proxies name their client.
const PROXY_FIELDS: [&str; 4] = ["forwarded", "via", "x-forwarded-for", "x-real-ip"];
const METHOD_FIELD: &str = "x-purge-method";
/// It asks to wait for the fleet.
const WAIT_FIELD: &str = "x-purge-wait";
/// The end of a pattern for a beginning.
const ENDS: [&str; 2] = [".*", "(.*)"];
/// Special characters of regular expressions. The dot is missing: in a path it hardly ever means "any character".
const SIGNS: [char; 13] = ['*', '+', '?', '(', ')', '[', ']', '{', '}', '|', '^', '$', '\\'];

/// Whether the method is `PURGE`.
pub(crate) fn is_purge(method: &Method) -> bool {
    method.as_str() == "PURGE"
}

/// Answers a `PURGE` that came over a connection from `client`.
pub(crate) async fn answer(shared: &Arc<Shared>, request: &Parts, client: IpAddr) -> Response<Body> {
    if let Some(refusal) = refusal(shared, request, client) {
        return refusal;
    }
    let purge_request = match purge_request(request) {
        Ok(purge_request) => purge_request,
        Err(words) => return reply::error(StatusCode::BAD_REQUEST, &words),
    };
    match purge(shared, purge_request).await {
        Ok(report) => reply::json(StatusCode::OK, &report),
        Err(error) => reply::error(error.status(), &error.to_string()),
    }
}

/// The reason for which this request may not purge; `None` if it may.
fn refusal(shared: &Shared, request: &Parts, client: IpAddr) -> Option<Response<Body>> {
    let networks = &shared.config.server.purge_from;
    let real_client = real_client(request, client);
    if let Some(token) = &shared.purge_token {
        if token.is_shown_by(&request.headers)
            || (real_client.is_known && Network::any_has(networks, real_client.address))
        {
            return None;
        }
        let words = "PURGE needs the token of `purge_token_file`, as Authorization: Bearer TOKEN, or an address in `purge_from`";
        let mut response = reply::error(StatusCode::UNAUTHORIZED, words);
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return Some(response);
    }
    let words = if networks.is_empty() {
        "PURGE is closed; set `purge_token_file` or `purge_from` in [server] to allow it (--purge-token-file, --purge-from), or \
         use `eyewall purge --server` with the administration's socket"
    } else if !real_client.is_known {
        "PURGE is not allowed: this request came through a proxy, and the client's address is not known; name the proxy in \
         `trusted_proxies`, and have it set X-Forwarded-For, so that `purge_from` can be checked, or set `purge_token_file`"
    } else if Network::any_has(networks, real_client.address) {
        return None;
    } else {
        "PURGE is not allowed from this address; add it to `purge_from` in [server], or set `purge_token_file`"
    };
    Some(reply::error(StatusCode::FORBIDDEN, words))
}

/// The client at the start of the chain of proxies; for a trusted proxy, the client that it names. If an untrusted proxy has left a trace, or a trusted one
/// names no client, the address of the connection doesn't identify the client.
fn real_client(request: &Parts, client: IpAddr) -> RealClient {
    match request.extensions.get::<Forwarded>() {
        Some(forwarded) if forwarded.chain.is_some() || !forwarded.real_client.is_known => forwarded.real_client,
        _ => RealClient {
            address: client,
            is_known: !PROXY_FIELDS.iter().any(|name| request.headers.contains_key(*name)),
        },
    }
}

/// The purge request of an HTTP request, or an error message.
fn purge_request(request: &Parts) -> Result<PurgeRequest, String> {
    let host = RequestHost::of(request).map_err(|error| error.to_string())?;
    let authority = host.port().map_or_else(|| host.name().to_owned(), |port| format!("{}:{port}", host.name()));
    let kind = if is_soft(&request.headers) { Kind::Soft } else { Kind::Hard };
    let subjects = match tags(&request.headers)? {
        Some(tags) => tags.into_iter().map(|tag| Subject::Tag { tag, host: Some(authority.clone()) }).collect(),
        None => vec![subject(request, &authority)?],
    };
    let waits = match request.headers.get(WAIT_FIELD).map(HeaderValue::as_bytes) {
        None | Some(b"written") => false,
        Some(b"applied") => true,
        Some(_) => return Err("`X-Purge-Wait` must be written or applied".to_owned()),
    };
    Ok(PurgeRequest { subjects, kind, counts: false, waits, previews: false })
}

fn is_soft(fields: &HeaderMap) -> bool {
    let means_it = |value: &[u8]| !value.is_empty() && value != b"0" && !value.eq_ignore_ascii_case(b"false");
    SOFT_FIELDS.iter().filter_map(|name| fields.get(*name)).any(|value| means_it(value.as_bytes()))
}

/// The tags of the request; `None` if it has no such field.
fn tags(fields: &HeaderMap) -> Result<Option<Vec<String>>, String> {
    let mut tags = None;
    for value in TAG_FIELDS.iter().flat_map(|name| fields.get_all(*name)) {
        let text = String::from_utf8_lossy(value.as_bytes());
        let names = text.split(|sign: char| sign.is_ascii_whitespace() || sign == ',').filter(|tag| !tag.is_empty());
        tags.get_or_insert_with(Vec::new).extend(names.map(str::to_owned));
    }
    match tags {
        Some(tags) if tags.is_empty() => Err("the field for tags is empty".to_owned()),
        tags => Ok(tags),
    }
}

fn subject(request: &Parts, authority: &str) -> Result<Subject, String> {
    let target = request.uri.path_and_query().map_or("", |target| target.as_str());
    let address = |target: &str| format!("http://{authority}{target}");
    let is_pattern = match request.headers.get(METHOD_FIELD).map(|value| value.as_bytes().to_ascii_lowercase()) {
        None => ENDS.iter().any(|end| target.ends_with(end)) && request.uri.query().is_none(),
        Some(method) if method == b"regex" => true,
        Some(method) if method == b"default" || method == b"exact" => false,
        Some(_) => return Err("`X-Purge-Method` must be regex, default or exact".to_owned()),
    };
    if !is_pattern {
        return Ok(Subject::Url(address(target)));
    }
    // A pattern without `.*` also counts as a beginning: a plugin that sends one for a page means everything below it, too.
    let beginning = ENDS.iter().rev().find_map(|end| target.strip_suffix(end)).unwrap_or(target);
    if beginning.contains(SIGNS) {
        return Err("this pattern is not supported; send plain text that ends with `.*`".to_owned());
    }
    Ok(Subject::Prefix(address(beginning)))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn parsed(target: &str, fields: &[(&str, &str)]) -> Result<PurgeRequest, String> {
        let request = Request::builder().method("PURGE").uri(target).header("host", "example.org:81");
        let request = fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        purge_request(&request.body(()).unwrap().into_parts().0)
    }

    fn subjects(target: &str, fields: &[(&str, &str)]) -> Vec<Subject> {
        parsed(target, fields).unwrap().subjects
    }

    #[test]
    fn patterns_of_plugins_are_prefixes() {
        let prefix = |text: &str| vec![Subject::Prefix(text.to_owned())];
        let url = |text: &str| vec![Subject::Url(text.to_owned())];
        let regex = [("X-Purge-Method", "regex")];
        assert_eq!(subjects("/.*", &regex), prefix("http://example.org:81/"));
        assert_eq!(subjects("/.*", &[]), prefix("http://example.org:81/"));
        assert_eq!(subjects("/blog/(.*)", &regex), prefix("http://example.org:81/blog/"));
        assert_eq!(subjects("/blog/a.html", &regex), prefix("http://example.org:81/blog/a.html"));
        assert_eq!(subjects("/.*", &[("X-Purge-Method", "exact")]), url("http://example.org:81/.*"));
        assert_eq!(subjects("/a?b=.*", &[]), url("http://example.org:81/a?b=.*"));
        assert_eq!(subjects("/a", &[("X-Purge-Method", "Default")]), url("http://example.org:81/a"));
        assert_eq!(subjects("http://other.example/a", &[]), url("http://other.example/a"));
        for target in ["/a(b|c)", "/a?.*", "/a+.*", "/.*/.*", "/a$"] {
            assert!(parsed(target, &regex).is_err(), "{target}");
        }
        assert!(parsed("/a", &[("X-Purge-Method", "glob")]).is_err());
    }

    #[test]
    fn tags_override_the_address() {
        let tag = |tag: &str| Subject::Tag { tag: tag.to_owned(), host: Some("example.org:81".to_owned()) };
        let found = subjects("/a", &[("Surrogate-Key", "one two"), ("xkey", "three,four, five")]);
        assert_eq!(found, ["three", "four", "five", "one", "two"].map(tag));
        assert!(parsed("/a", &[("xkey", " ")]).is_err());
    }

    #[test]
    fn a_field_makes_it_wait() {
        let waits = |value| parsed("/a", &[("X-Purge-Wait", value)]).map(|parsed| parsed.waits);
        assert_eq!((waits("applied"), waits("written")), (Ok(true), Ok(false)));
        assert!(waits("yes").is_err() && !parsed("/a", &[]).unwrap().waits);
    }

    #[test]
    fn a_field_makes_it_soft() {
        let kind = |fields: &[(&str, &str)]| parsed("/a", fields).unwrap().kind;
        assert_eq!(kind(&[]), Kind::Hard);
        assert_eq!(kind(&[("Fastly-Soft-Purge", "1")]), Kind::Soft);
        assert_eq!(kind(&[("X-Soft-Purge", "true")]), Kind::Soft);
        assert_eq!(kind(&[("X-Soft-Purge", "0")]), Kind::Hard);
    }
}
