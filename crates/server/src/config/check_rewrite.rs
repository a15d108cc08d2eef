//! Checks of the rules that redirect, or that change fields on their way.

use http::HeaderName;
use http::header::{
    ACCEPT_ENCODING, AGE, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, COOKIE, DATE,
    ETAG, EXPECT, FORWARDED, HOST, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE,
    LAST_MODIFIED, PRAGMA, RANGE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VARY,
};
use toml::Spanned;

use super::names::{FieldName, Glob};
use super::problem::Fault;
use super::rule::Rule;
use super::site::Site;

/// Fields of the connection, of requests and responses.
const OF_CONNECTION: [HeaderName; 5] = [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];
const OTHERS_OF_CONNECTION: [&str; 3] = ["keep-alive", "proxy-connection", "http2-settings"];

/// Fields of responses that no rule changes, and why.
const OF_RESPONSES: [(HeaderName, &str); 6] = [
    (CONTENT_LENGTH, "it must be the length of the body"),
    (CONTENT_ENCODING, "it must be the coding of the body; see `compress`"),
    (CONTENT_RANGE, "it must be the range of the body"),
    (DATE, "caches compute the age of a response from it"),
    (AGE, "caches compute the age of a response from it"),
    (VARY, "without it, other caches would mix up variants; `strip_response` changes it before Eyewall stores it"),
];

/// The same for requests.
const OF_REQUESTS: [(HeaderName, &str); 13] = [
    (HOST, "give `host` of [site.origin]"),
    (CONTENT_LENGTH, "it must be the length of the body"),
    (EXPECT, "it concerns one connection"),
    (RANGE, "an entry serves all ranges of its response"),
    (IF_RANGE, "Eyewall evaluates conditions for each request"),
    (IF_MATCH, "Eyewall evaluates conditions for each request"),
    (IF_NONE_MATCH, "Eyewall evaluates conditions for each request"),
    (IF_MODIFIED_SINCE, "Eyewall evaluates conditions for each request"),
    (IF_UNMODIFIED_SINCE, "Eyewall evaluates conditions for each request"),
    (CACHE_CONTROL, "`ignore_reload` ignores a client's directives"),
    (PRAGMA, "`ignore_reload` ignores a client's directives"),
    (ACCEPT_ENCODING, "it selects the variant that the client gets"),
    (FORWARDED, "Eyewall writes it, from `trusted_proxies`"),
];
/// Further fields that Eyewall writes.
const WRITTEN: [&str; 3] = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];

/// Fields of responses that a rule may only remove.
const VALIDATORS: [HeaderName; 2] = [ETAG, LAST_MODIFIED];

pub(super) fn rewriting(found: &Spanned<Rule>, site: &Site, faults: &mut Vec<Fault>) {
    let rule = found.get_ref();
    if let (Some(status), None) = (&rule.redirect_status, &rule.redirect) {
        let message = "`redirect_status` has no effect without `redirect`";
        faults.push(Fault::absence(status.span(), message, "give `redirect`, or remove it"));
    }
    if let Some(redirect) = rule.redirect.as_ref().filter(|redirect| redirect.get_ref().has_rest())
        && rule.prefix.is_none()
    {
        let message = "`{rest}` is the path behind the rule's prefix, and this rule has none";
        faults.push(Fault::absence(redirect.span(), message, "give `prefix`, or write {path}"));
    }
    let of_connection = |name: &HeaderName| {
        let is_one = OF_CONNECTION.contains(name) || OTHERS_OF_CONNECTION.contains(&name.as_str());
        is_one.then_some("it concerns one connection")
    };
    for (name, value) in rule.set_headers.iter().chain(&rule.add_headers) {
        if let Some(why) = of_connection(&name.0).or_else(|| of_response(&name.0)) {
            faults.push(refused(name, value.span(), why));
        }
        if VALIDATORS.contains(&name.0) {
            let hint = "remove it, or name it in `remove_headers`: with one value for all, clients would keep outdated pages and join \
                        parts of different ones";
            faults.push(Fault::new(value.span(), format!("a rule can't set `{name}`"), hint));
        }
    }
    for name in &rule.remove_headers {
        if let Some(why) = of_connection(&name.get_ref().0).or_else(|| of_response(&name.get_ref().0)) {
            faults.push(refused(name.get_ref(), name.span(), why));
        }
    }
    let set = rule.set_request_headers.iter().map(|(name, value)| (name, value.span()));
    let removed = rule.remove_request_headers.iter().map(|name| (name.get_ref(), name.span()));
    for (name, span) in set.chain(removed) {
        if let Some(why) = of_connection(&name.0).or_else(|| of_request(&name.0, site)) {
            faults.push(refused(name, span, why));
        }
    }
    choice_of_one_client(rule, site, faults);
}

/// Warns of a rule by which a client that is not told apart by the key chooses what the origin is asked. The response is then stored
/// for all clients, unless the origin names the changed fields in `Vary`.
fn choice_of_one_client(rule: &Rule, site: &Site, faults: &mut Vec<Fault>) {
    let changes = !rule.set_request_headers.is_empty() || !rule.remove_request_headers.is_empty();
    let is_stored = !rule.bypass.as_ref().is_some_and(|bypass| *bypass.get_ref()) && !rule.no_store.unwrap_or_default();
    if !changes || !is_stored || site.origins.is_empty() {
        return;
    }
    let in_key = |name: &FieldName| site.key.headers.iter().any(|field| field.get_ref().0 == name.0);
    let field = rule.header.iter().find_map(|all| {
        let name = all.get_ref().keys().find(|name| !in_key(name))?;
        Some((format!("the field `{name}`"), all.span()))
    });
    let is_cookie_in_key = |glob: &Glob| {
        let name = glob.as_str().split('=').next().unwrap_or_default();
        site.key.cookies.iter().any(|cookie| cookie.0 == name)
    };
    let cookie = rule.cookie.iter().chain(&rule.unless_cookie).find_map(|all| {
        let glob = all.get_ref().iter().find(|glob| !is_cookie_in_key(glob))?;
        Some((format!("the cookie `{glob}`"), all.span()))
    });
    for (what, span) in field.into_iter().chain(cookie) {
        let message = format!(
            "this rule changes requests by {what}, which is not part of the key: the response for one client may be stored for all"
        );
        let hint = "add it to [site.key], or let the origin name the changed fields in `Vary`; with `no_store = true` nothing is stored";
        faults.push(Fault::warning(span, message, hint));
    }
}

fn refused(name: &FieldName, span: std::ops::Range<usize>, why: &str) -> Fault {
    Fault::new(span, format!("a rule can't change `{name}`"), format!("remove it: {why}"))
}

fn of_response(name: &HeaderName) -> Option<&'static str> {
    OF_RESPONSES.iter().find(|(refused, _)| refused == name).map(|(_, why)| *why)
}

/// Keys are made before rules are asked, so a rule can't change what is part of them.
fn of_request(name: &HeaderName, site: &Site) -> Option<&'static str> {
    let is_in_key = site.key.headers.iter().any(|field| field.get_ref().0 == *name)
        || *name == COOKIE && !site.key.cookies.is_empty();
    if is_in_key {
        return Some("it is part of the key, which is made before rules apply");
    }
    if WRITTEN.contains(&name.as_str()) {
        return Some("Eyewall writes it, from `trusted_proxies`");
    }
    OF_REQUESTS.iter().find(|(refused, _)| refused == name).map(|(_, why)| *why)
}
