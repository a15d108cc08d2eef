//! The settings of request ids and traces: `[server.tracing]`.

use std::path::PathBuf;

use http::HeaderName;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::access_log::Share;
use super::check_path::file;
use super::names::{FieldName, Network};
use super::problem::Fault;

/// `[server.tracing]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tracing {
    /// The field with the id of a request. Eyewall takes the id from trusted proxies, makes one for all other requests, and sends it to the
    /// origin.
    ///
    /// Default: none
    ///
    /// Example: `"X-Request-ID"`
    pub request_id: Option<Spanned<FieldName>>,
    /// Send the id to the client, too.
    ///
    /// Example: `true`
    pub return_request_id: bool,
    /// Pass `traceparent` and `tracestate` on by the rules of W3C Trace Context. Without this, origins get both as the client sent them.
    ///
    /// Example: `true`
    pub trace_context: bool,
    /// Share of the requests without a trace context for which Eyewall starts a trace.
    ///
    /// Example: `0.01`
    pub sample: Share,
    /// Networks whose clients get `Server-Timing`: what the cache did, and the time of the origin and of the whole response.
    ///
    /// Example: `["127.0.0.1", "10.0.0.0/8"]`
    pub server_timing_from: Vec<Network>,
    /// A file with one word. Requests with this word in the field `Server-Timing-Token` get `Server-Timing` from anywhere.
    ///
    /// Default: none
    ///
    /// Example: `"/etc/eyewall/timing-token"`
    pub server_timing_token_file: Option<Spanned<PathBuf>>,
}

impl Default for Tracing {
    fn default() -> Self {
        Self {
            request_id: None,
            return_request_id: false,
            trace_context: false,
            sample: Share(0.0),
            server_timing_from: Vec::new(),
            server_timing_token_file: None,
        }
    }
}

impl Tracing {
    /// The fields of responses by which origins return the names of a request. No site stores them.
    pub(super) fn returned(&self) -> impl Iterator<Item = FieldName> {
        let request_id = self.request_id.iter().map(|name| name.get_ref().clone());
        let contexts =
            ["traceparent", "tracestate", "traceresponse"].map(|name| FieldName(HeaderName::from_static(name)));
        request_id.chain(contexts.into_iter().filter(|_| self.trace_context))
    }
}

/// Reports keys without an effect, and fields that have another meaning.
pub(super) fn check(found: &Spanned<Tracing>, faults: &mut Vec<Fault>) {
    let Tracing { request_id, return_request_id, trace_context, sample, .. } = found.get_ref();
    if let Some(token) = &found.get_ref().server_timing_token_file {
        file(token, "the token of Server-Timing", faults);
    }
    if *return_request_id && request_id.is_none() {
        let hint = "give `request_id`, such as \"X-Request-ID\"";
        faults.push(Fault::absence(found.span(), "`return_request_id` has no effect without `request_id`", hint));
    }
    if sample.0 > 0.0 && !trace_context {
        let hint = "set `trace_context = true`";
        faults.push(Fault::absence(found.span(), "`sample` has no effect without `trace_context`", hint));
    }
    if let Some(name) = request_id.as_ref().filter(|name| !name.get_ref().0.as_str().starts_with("x-")) {
        let is_id = name.get_ref().0.as_str().ends_with("-id");
        if !is_id {
            let message = format!("`{}` may have another meaning", name.get_ref());
            faults.push(Fault::new(name.span(), message, "give a name that begins with X- or ends with -ID"));
        }
    }
}
