//! The span of a request to an origin.

use std::time::Instant;

use http::uri::Scheme;
use http::{Method, StatusCode, Uri, Version};

use super::recording::{Begun, Recording};
use super::span::{Kind, Span, path_of};
use crate::config::origin_url::{OriginUrl, Place};

/// A span that ends when this is dropped, which is at the end of the response.
pub(crate) struct OriginSpan(Box<Begun>);

impl OriginSpan {
    /// The span of a request for this target, inside of that of its client.
    pub(crate) fn begin(
        recording: &Recording,
        id: [u8; 8],
        (method, origin, target): (&Method, &OriginUrl, &Uri),
    ) -> Self {
        let mut span = Span::begin(Kind::Client, recording.ids.child(id), Instant::now());
        let method = span.method(method.as_str());
        let path = target.path_and_query().and_then(|target| path_of(target.as_str())).unwrap_or("/");
        let scheme = if origin.is_secure() { Scheme::HTTPS } else { Scheme::HTTP };
        span.text("url.full", format!("{scheme}://{}{path}", origin.host()));
        match origin.place() {
            Place::Tcp(_, authority) => {
                span.text("server.address", authority.host().to_owned());
                let usual = if origin.is_secure() { 443 } else { 80 };
                span.number("server.port", authority.port_u16().unwrap_or(usual));
            }
            Place::Unix(path) => {
                span.text("server.address", path.to_string_lossy().into_owned());
                span.text("network.transport", "unix");
            }
        }
        span.name = format!("{method} {}", origin.host());
        Self(Box::new(Begun::new(recording, span)))
    }

    /// Notes the head of the response.
    pub(crate) fn answered(&mut self, status: StatusCode, version: Version) {
        let Some(span) = self.0.span() else { return };
        span.status(status.as_u16());
        let version = match version {
            Version::HTTP_10 => "1.0",
            Version::HTTP_2 => "2",
            _ => "1.1",
        };
        span.text("network.protocol.version", version);
    }

    /// No response came, or not all of it.
    pub(crate) fn failed(&mut self, reason: &'static str) {
        if let Some(span) = self.0.span() {
            span.fail(reason);
        }
    }
}
