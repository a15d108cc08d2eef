//! The settings of request ids and traces: `[server.tracing]`.

use std::path::PathBuf;

use http::HeaderName;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::access_log::Share;
use super::check_path::file;
use super::collector::CollectorUrl;
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
    /// Share of the requests without a trace context for which Eyewall starts a trace. With `otlp`, `otlp_sample` takes its place.
    ///
    /// Example: `0.01`
    pub sample: Share,
    /// A collector that gets the [spans](operations/monitoring.md#traces) of recorded requests, by OTLP over HTTP. Eyewall adds `/v1/traces` to the address. Turns
    /// `trace_context` on.
    ///
    /// Default: none
    ///
    /// Example: `"http://127.0.0.1:4318"`
    pub otlp: Option<Spanned<CollectorUrl>>,
    /// A file with fields of requests to the collector, one a line, such as `Authorization: Bearer SECRET`.
    ///
    /// Default: none
    ///
    /// Example: `"/etc/eyewall/otlp-headers"`
    pub otlp_headers_file: Option<Spanned<PathBuf>>,
    /// Share of the requests that are recorded. If a trusted proxy sends a trace context, that decides.
    ///
    /// Default: `0.01`
    ///
    /// Example: `1.0`
    pub otlp_sample: Option<Share>,
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
            otlp: None,
            otlp_headers_file: None,
            otlp_sample: None,
            server_timing_from: Vec::new(),
            server_timing_token_file: None,
        }
    }
}

impl Tracing {
    /// Whether requests have trace contexts.
    pub(crate) fn has_contexts(&self) -> bool {
        self.trace_context || self.otlp.is_some()
    }

    /// The fields of responses by which origins return the names of a request. No site stores them.
    pub(super) fn returned(&self) -> impl Iterator<Item = FieldName> {
        let request_id = self.request_id.iter().map(|name| name.get_ref().clone());
        let contexts =
            ["traceparent", "tracestate", "traceresponse"].map(|name| FieldName(HeaderName::from_static(name)));
        request_id.chain(contexts.into_iter().filter(|_| self.has_contexts()))
    }
}

/// Reports keys without an effect, and fields that have another meaning.
pub(super) fn check(found: &Spanned<Tracing>, faults: &mut Vec<Fault>) {
    let Tracing { request_id, return_request_id, sample, .. } = found.get_ref();
    if let Some(token) = &found.get_ref().server_timing_token_file {
        file(token, "the token of Server-Timing", faults);
    }
    if *return_request_id && request_id.is_none() {
        let hint = "give `request_id`, such as \"X-Request-ID\"";
        faults.push(Fault::absence(found.span(), "`return_request_id` has no effect without `request_id`", hint));
    }
    otlp(found, faults);
    if sample.0 > 0.0 && !found.get_ref().has_contexts() {
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

/// Checks the settings of spans.
fn otlp(found: &Spanned<Tracing>, faults: &mut Vec<Fault>) {
    let Tracing { sample, otlp, otlp_headers_file, otlp_sample, .. } = found.get_ref();
    if let Some(headers) = otlp_headers_file {
        file(headers, "the fields of requests to the collector", faults);
    }
    if otlp.is_none() {
        let keys = [("otlp_headers_file", otlp_headers_file.is_some()), ("otlp_sample", otlp_sample.is_some())];
        for (key, _) in keys.iter().filter(|(_, is_there)| *is_there) {
            let hint = "give `otlp`, the address of a collector";
            faults.push(Fault::absence(found.span(), format!("`{key}` has no effect without `otlp`"), hint));
        }
    } else if sample.0 > 0.0 {
        let hint = "remove `sample`; `otlp_sample` also says which requests begin a trace";
        faults.push(Fault::new(found.span(), "`sample` has no effect with `otlp`", hint));
    }
    if let Some(otlp) = otlp.as_ref().filter(|_| cfg!(not(feature = "otlp"))) {
        let hint = "remove `otlp`, or build Eyewall with the feature `otlp`";
        faults.push(Fault::new(
            otlp.span(),
            "this Eyewall can't send spans: it was built without the feature `otlp`",
            hint,
        ));
    }
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    /// The messages about a configuration with these lines in `[server.tracing]`.
    fn messages(lines: &str) -> Vec<String> {
        let text = format!("[server.tracing]\n{lines}\n[[site]]\norigins = [\"http://a\"]\n");
        let problems = parse(&text).err().unwrap_or_default();
        problems.into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn keys_of_spans_without_an_effect_are_mistakes() {
        for (lines, words) in [
            ("otlp_sample = 1", "`otlp_sample` has no effect without `otlp`"),
            ("otlp = \"http://a\"\nsample = 1", "`sample` has no effect with `otlp`"),
            ("otlp = \"http://a\"\notlp_headers_file = \"/no/such\"", "can't be read"),
            ("otlp = \"grpc://a\"", "the scheme grpc is not supported"),
        ] {
            let messages = messages(lines);
            assert!(messages.iter().any(|message| message.contains(words)), "{lines}: {messages:?}");
        }
    }

    #[test]
    fn a_collector_needs_the_feature() {
        let messages = messages("otlp = \"http://a\"\notlp_sample = 0.5");
        if cfg!(feature = "otlp") {
            assert_eq!(messages, Vec::<String>::new());
        } else {
            assert!(messages[0].contains("built without the feature `otlp`"), "{messages:?}");
        }
    }
}
