//! Settings for requests to the origins of a site: `[site.origin]`, and the tables in it.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::names::{HostHeader, HostName};
use super::value::{Period, Statuses, Within, written_as_text};

/// `[site.origin]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct OriginSettings {
    /// Time to connect.
    ///
    /// Example: `"1s"`
    pub connect_timeout: Period,
    /// Time until a response begins, all attempts together; also the time until each next piece of it.
    ///
    /// Example: `"2m"`
    pub timeout: Period,
    /// How often Eyewall repeats a request if no part of a response came. It repeats idempotent methods only, and only while it
    /// has the request's content.
    ///
    /// Example: `0`
    pub retries: Within<0, 10>,
    /// The `Host` that the origin gets: `"client"` is the client's, with aliases mapped; `"origin"` is the one of the
    /// origin's address; any other text is the name itself.
    ///
    /// Example: `"app.internal"`
    pub host_header: HostHeader,
    /// When Eyewall speaks HTTP/2 to an origin: `"auto"`, if an `https` origin chooses it; `"always"`, also without TLS; or
    /// `"never"`.
    ///
    /// Example: `"always"`
    pub http2: Http2,
    /// Health checks. Without them, only its responses show the health of an origin.
    pub health: Option<Health>,
    /// TLS to `https` origins.
    pub tls: Option<Spanned<Tls>>,
}

impl Default for OriginSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Period(Duration::from_secs(5)),
            timeout: Period(Duration::from_secs(30)),
            retries: Within(1),
            host_header: HostHeader::Client,
            http2: Http2::Auto,
            health: None,
            tls: None,
        }
    }
}

/// When Eyewall speaks HTTP/2 to an origin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Http2 {
    /// If an `https` origin chooses it by ALPN.
    #[default]
    Auto,
    /// Always; without TLS by prior knowledge (RFC 9113, section 3.3).
    Always,
    /// Never.
    Never,
}

/// `[site.origin.health]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Health {
    /// The path to request.
    ///
    /// Example: `"/health"`
    pub path: TargetPath,
    /// Time between two checks.
    ///
    /// Example: `"10s"`
    pub interval: Period,
    /// How long a response may take.
    ///
    /// Example: `"5s"`
    pub timeout: Period,
    /// Statuses of a healthy origin.
    ///
    /// Example: `[200]`
    pub status: Vec<Statuses>,
    /// Failures in a row that make an origin unhealthy.
    ///
    /// Example: `5`
    pub unhealthy_after: Within<1, 100>,
    /// Successes in a row that make it healthy again.
    ///
    /// Example: `1`
    pub healthy_after: Within<1, 100>,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            path: TargetPath("/".to_owned()),
            interval: Period(Duration::from_secs(5)),
            timeout: Period(Duration::from_secs(2)),
            status: ["2xx", "3xx"].into_iter().filter_map(|statuses| statuses.parse().ok()).collect(),
            unhealthy_after: Within(3),
            healthy_after: Within(2),
        }
    }
}

/// A path with its query, as in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPath(pub String);

impl std::str::FromStr for TargetPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with('/') && text.parse::<http::uri::PathAndQuery>().is_ok_and(|path| path.as_str() == text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("`{text}` is not a path; give one such as /health"))
        }
    }
}

impl std::fmt::Display for TargetPath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// `[site.origin.tls]`
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Certificates to trust, in PEM.
    ///
    /// Default: those of the system
    ///
    /// Example: `"/etc/eyewall/ca.pem"`
    pub ca_file: Option<Spanned<PathBuf>>,
    /// The name to request (SNI), and to expect in the certificate.
    ///
    /// Default: that of the address
    ///
    /// Example: `"app.internal"`
    pub server_name: Option<HostName>,
}

written_as_text! {
    TargetPath: "a path such as \"/health\"",
}
