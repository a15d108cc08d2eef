//! The span of a request of a client.

use std::net::IpAddr;
use std::time::Instant;

use http::StatusCode;
use http::uri::Authority;

use super::recording::{Begun, Recording};
use super::span::{Kind, Span, path_of};
use crate::serve::log::LoggedRequest;
use crate::serve::outcome::{Outcome, Verdict};
use crate::serve::unix_client::shown;

/// A span that ends when this is dropped, however the request ended.
pub(crate) struct ServerSpan(Box<Begun>);

impl ServerSpan {
    /// The span of a request whose head was whole at that instant. `client` is the real client.
    pub(crate) fn begin(recording: &Recording, request: &LoggedRequest<'_>, client: IpAddr, begun: Instant) -> Self {
        let mut span = Span::begin(Kind::Server, recording.ids.clone(), begun);
        let method = span.method(request.method());
        span.text("url.scheme", request.scheme().as_str());
        if let Some(path) = path_of(request.target()) {
            span.text("url.path", path.to_owned());
        }
        // Without a user name, which an authority may have.
        let authority = request.host().and_then(|host| Authority::try_from(host).ok());
        if let Some(authority) = authority {
            span.text("server.address", authority.host().to_owned());
            if let Some(port) = authority.port_u16() {
                span.number("server.port", port);
            }
        }
        span.text("client.address", shown(client).to_string());
        if let Some(version) = request.version().and_then(|version| version.strip_prefix("HTTP/")) {
            // The conventions write `1.0` and `2`.
            let major = version.strip_suffix(".0").filter(|major| *major != "1");
            span.text("network.protocol.version", major.unwrap_or(version));
        }
        span.name.push_str(method);
        Self(Box::new(Begun::new(recording, span)))
    }

    /// Notes the head of the response, and the site.
    pub(crate) fn answered(&mut self, status: StatusCode, outcome: &Outcome<'_>, site: Option<&str>) {
        let Some(span) = self.0.span() else { return };
        span.status(status.as_u16());
        if let Some(site) = site.filter(|site| !site.is_empty()) {
            span.name.push(' ');
            span.name.push_str(site);
            span.text("eyewall.site", site.to_owned());
        }
        if outcome.verdict != Verdict::None {
            span.text("eyewall.cache.verdict", outcome.verdict.label());
        }
        if let Some(reason) = outcome.reason {
            span.text("eyewall.cache.detail", reason.to_owned());
        }
    }
}
