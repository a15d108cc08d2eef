//! The files of the page, and the table for browsers without script.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY};
use http::header::{X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::advised;
use super::sample::Sample;
use super::{Dashboard, Full};
use crate::serve::body::Body;
use crate::serve::metrics::NO_SITE;
use crate::serve::outcome::Verdict;
use crate::serve::reply;
use crate::units::size;

/// Nothing from other hosts, no script or style in the page itself, and the page in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The place in the page for what a server without script shows.
const TABLE: &str = "<!-- table -->";
const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The path, the type and the bytes of each file.
const FILES: [(&str, &str, &str); 9] = [
    ("/dashboard", HTML, include_str!("page/index.html")),
    ("/dashboard/style.css", "text/css; charset=utf-8", include_str!("page/style.css")),
    ("/dashboard/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("/dashboard/page.js", SCRIPT, include_str!("page/page.js")),
    ("/dashboard/words.js", SCRIPT, include_str!("page/words.js")),
    ("/dashboard/charts.js", SCRIPT, include_str!("page/charts.js")),
    ("/dashboard/panels.js", SCRIPT, include_str!("page/panels.js")),
    ("/dashboard/advice.js", SCRIPT, include_str!("page/advice.js")),
    ("/dashboard/lookup.js", SCRIPT, include_str!("page/lookup.js")),
];

/// The files of the page.
pub(crate) struct Page;

impl Page {
    /// Whether a path is that of a file.
    pub(crate) fn has(path: &str) -> bool {
        FILES.iter().any(|(known, ..)| *known == path)
    }

    /// To the page, from the address without a path. A proxy may have put both below a path of its own.
    pub(crate) fn redirect() -> Response<Body> {
        let fields = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static("dashboard"))]);
        reply::response(StatusCode::SEE_OTHER, fields, Body::empty())
    }
}

impl Dashboard {
    /// The file at this path. `sees_all` says whether the client may see what the server does.
    pub(crate) async fn page(&self, path: &str, sees_all: bool) -> Response<Body> {
        let Some((_, content_type, text)) = FILES.into_iter().find(|(known, ..)| *known == path) else {
            return reply::error(StatusCode::NOT_FOUND, "the dashboard is at /dashboard");
        };
        if content_type != HTML {
            return file(content_type, text);
        }
        let table = if sees_all {
            let advice = advised::tables(self.adviser.last(self.reloader.shared()).as_deref());
            let figures = self.look().await.map(|sample| table(&sample));
            figures.unwrap_or_else(|| "<p>The server's log says what failed.</p>".to_owned()) + &advice
        } else {
            "<p>Without script, this page can't show the server's token. Set <code>read_without_token = true</code> \
             in <code>[server.admin]</code> to see the figures here.</p>"
                .to_owned()
        };
        file(content_type, text.replace(TABLE, &table))
    }

    /// The stream of events for one more viewer.
    ///
    /// # Errors
    /// [`Full`].
    pub(crate) fn events(&self) -> Result<Response<Body>, Full> {
        Ok(reply::stream(reply::EVENTS, self.join()?))
    }
}

/// A file of the page. Browsers ask for all of them at once, on connections that others would miss if they stayed open.
fn file(content_type: &'static str, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = response(content_type, Body::whole(text));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn response(content_type: &'static str, body: Body) -> Response<Body> {
    let fields = [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    let fields = fields.map(|(name, value)| (name, HeaderValue::from_static(value)));
    reply::response(StatusCode::OK, HeaderMap::from_iter(fields), body)
}

/// The most important figures. Never fails on a string.
fn table(sample: &Sample) -> String {
    let mut text = String::from(
        "<table><caption>Spared</caption><thead><tr><th>time<th>requests<th>spared<th>of bytes</thead><tbody>",
    );
    // 100 % only if it is so.
    let share = |share: Option<f64>| {
        share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", (share * 1000.0).floor() / 10.0))
    };
    let windows = &sample.windows;
    for (name, window) in
        [("last minute", &windows.minute), ("last hour", &windows.hour), ("since the start", &windows.start)]
    {
        let [requests, bytes] = window.spared_shares().map(share);
        let _ = write!(text, "<tr><th>{name}<td>{}<td>{requests}<td>{bytes}", window.requests);
    }
    text.push_str(
        "</tbody></table><table><caption>Sites, since the start</caption><thead><tr><th>site<th>requests<th>spared",
    );
    for verdict in Verdict::ALL {
        let _ = write!(text, "<th>{}", verdict.label());
    }
    text.push_str("<th>bytes<th>errors</thead><tbody>");
    for site in &sample.sites {
        let is_site = &*site.name != NO_SITE;
        let spared = (site.requests > 0 && is_site).then(|| site.spared_requests as f64 / site.requests as f64);
        let name = if is_site { escaped(&site.name) } else { "of no site".to_owned() };
        let _ = write!(text, "<tr><th>{name}<td>{}<td>{}", site.requests, share(spared));
        for count in site.verdicts {
            let _ = write!(text, "<td>{count}");
        }
        let _ = write!(text, "<td>{}<td>{}", size(site.bytes), site.errors);
    }
    text.push_str("</tbody></table>");
    if let Some(volume) = &sample.volume {
        let _ = write!(
            text,
            "<p>The volume has {} entries of {}, and room for {}. The entry that was evicted last was {:.0} s old.</p>",
            volume.entries,
            size(volume.live_bytes),
            size(volume.data_bytes),
            volume.eviction_age_seconds
        );
    }
    text
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}
