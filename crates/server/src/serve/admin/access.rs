//! The check of clients that send requests to the administration.
//!
//! Two kinds of clients send requests: programs of the operator, and pages in a browser. A browser can be made to send requests by any site
//! that its user visits, so it gets more checks:
//!
//! | attack | what stops it |
//! |---|---|
//! | a form or a script of another site | its `Origin`, or its `Sec-Fetch-Site`, is not this server's |
//! | a name of another site that leads to this address (DNS rebinding) | `Host` has to be an address, `localhost`, or one of `hosts`, if the request doesn't show the token |
//! | a page that was let in changes something | each change by a browser needs the token, in a field that no form can set |
//!
//! Browsers send `Origin` with each POST, and with each request to another origin.

use std::net::IpAddr;

use http::HeaderValue;
use http::header::{HOST, HeaderMap, ORIGIN, WWW_AUTHENTICATE};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderName, StatusCode};

use super::refusal::Refusal;
use crate::config::settings::Admin;
use crate::serve::shared::Shared;

/// `Sec-Fetch-Site`: which site made a browser send the request.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// The page, its style and its scripts, which are the same for all servers.
    Page,
    /// To see what the server does.
    Read,
    /// To change something, or to see who the clients are.
    Change,
}

/// Whether the request of a page may also see what the server does.
///
/// # Errors
/// The refusal of a request that may not be answered.
pub(super) fn check(shared: &Shared, request: &Parts, need: Need) -> Result<bool, Refusal> {
    let admin = shared.config.server.admin.as_ref().map(toml::Spanned::get_ref);
    let host = host(request)?;
    let shows_token = shared.admin_token.as_ref().map(|token| token.is_shown_by(&request.headers));
    // A page of another site doesn't know the token.
    if shows_token != Some(true)
        && let Some(host) = &host
        && !is_known(host.host(), admin)
    {
        let words = format!("{} is no name of this administration; `hosts` of [server.admin] names more", host.host());
        return Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, words));
    }
    let is_of_browser = request.headers.contains_key(ORIGIN) || request.headers.contains_key(FETCH_SITE);
    // A link of another site may lead to the page.
    if need != Need::Page && !is_of_this_site(&request.headers, host.as_ref()) {
        let words = "the request comes from a page of another site, which has no access";
        return Err(Refusal::new(StatusCode::FORBIDDEN, words));
    }
    let is_at_address = admin.is_some_and(|admin| admin.listen.is_some());
    let needs_token = match need {
        Need::Page | Need::Read => is_at_address && !admin.is_some_and(|admin| admin.read_without_token),
        Need::Change => is_at_address || is_of_browser,
    };
    match (needs_token, shows_token) {
        (false, _) | (true, Some(true)) => Ok(true),
        (true, _) if need == Need::Page => Ok(false),
        (true, Some(false)) => {
            let words = "send the token of the configuration's `token_file`, as Authorization: Bearer TOKEN";
            let field = Some((WWW_AUTHENTICATE, "Bearer"));
            Err(Refusal { field, ..Refusal::new(StatusCode::UNAUTHORIZED, words) })
        }
        (true, None) => {
            let words = "a page in a browser needs a token to change something; give `token_file` in [server.admin]";
            Err(Refusal::new(StatusCode::FORBIDDEN, words))
        }
    }
}

/// The host that the request names; `None` if it names none, which no browser does.
fn host(request: &Parts) -> Result<Option<Authority>, Refusal> {
    let mut fields = request.headers.get_all(HOST).iter();
    let named = match (request.uri.authority(), fields.next(), fields.next()) {
        (Some(authority), _, None) => return Ok(Some(authority.clone())),
        (None, None, None) => return Ok(None),
        (None, Some(value), None) => Authority::try_from(value.as_bytes()).ok(),
        _ => None,
    };
    named
        .filter(|named| !named.as_str().contains('@'))
        .map(Some)
        .ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, "the request has no sound Host"))
}

/// No other site can have such a host.
fn is_known(host: &str, admin: Option<&Admin>) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let is_local = host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost");
    let is_named = |admin: &Admin| admin.hosts.iter().any(|known| known.eq_ignore_ascii_case(host));
    address.parse::<IpAddr>().is_ok() || is_local || admin.is_some_and(is_named)
}

/// Whether nothing says that a page of another site sends the request.
fn is_of_this_site(fields: &HeaderMap, host: Option<&Authority>) -> bool {
    let is_here = |origin: &HeaderValue| {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        // The proxy before this server may have TLS.
        matches!(origin, Some(("http" | "https", authority)) if host.is_some_and(|host| host.as_str().eq_ignore_ascii_case(authority)))
    };
    let is_own = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
    fields.get_all(ORIGIN).iter().all(is_here) && fields.get_all(FETCH_SITE).iter().all(is_own)
}
