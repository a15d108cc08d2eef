//! The answer to "what would become of this request, and why?", as an operator gets it.

use serde::{Deserialize, Serialize};

/// A request that nobody has sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Its address: `http://` or `https://` with a host.
    pub url: String,
    /// Its method.
    #[serde(default = "get")]
    pub method: String,
    /// Its fields, in order. `Host` may stand in for the host of the address.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
}

fn get() -> String {
    "GET".to_owned()
}

/// What would become of a request now, and which statement decides.
///
/// It covers what the server knows before it asks an origin. Limits of clients, other nodes of a fleet, requests that are under way and the
/// health of origins aren't part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The method of the request.
    pub method: String,
    /// The address of the request.
    pub url: String,
    /// What becomes of it.
    pub verdict: Verdict,
    /// `Cache-Status` of the response, as far as the cache knows before it asks (RFC 9211).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_status: Option<String>,
    /// The status, if the server answers by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The statement that decides, in words.
    pub because: String,
    /// The site of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteOf>,
    /// Fields of the request that the server or a rule drops or changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_fields: Vec<ChangedField>,
    /// The key of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyOf>,
    /// The site's rules, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleOf>,
    /// The stored response that the request selects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredOf>,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// A stored response is sent, and is fresh.
    Hit,
    /// A stored response is sent although it is stale.
    Stale,
    /// Parts of the stored body are sent, and an origin is asked for the others, or for all of it.
    Partial,
    /// An origin is asked whether the stored response is still right.
    Revalidate,
    /// An origin is asked, and the response may be stored.
    Miss,
    /// An origin is asked, and the cache has no part in it.
    Pass,
    /// A file of the site's folder is sent.
    File,
    /// The client is sent to another address.
    Redirect,
    /// The server answers with an error.
    Error,
}

/// The site of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SiteOf {
    /// Its hosts, as in the configuration.
    pub hosts: Vec<String>,
    /// Its number in the file, from 1 on.
    pub number: usize,
    /// Its preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
}

/// A field of the request that the server drops, or changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChangedField {
    /// The name.
    pub name: String,
    /// Its new value. `None`: it is dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// The key of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeyOf {
    /// All of it.
    pub text: String,
    /// The scheme, host, port, path and query in it.
    pub address: String,
    /// Its further parts: cookies and fields of the request, by the site's `[site.key]`.
    pub parts: String,
    /// Parameters of the query that it doesn't have, because the site strips them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stripped_parameters: Vec<String>,
}

/// A rule of the site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RuleOf {
    /// Its name.
    pub name: String,
    /// Whether it applies to the request and, if there is a stored response, to that.
    pub applies: bool,
    /// The condition that isn't met, as it is named in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmet: Option<String>,
    /// Whether it has conditions on the response, and none is stored: it may yet not apply.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits_response: bool,
}

/// A stored response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredOf {
    /// Its status.
    pub status: u16,
    /// The bytes of its body.
    pub bytes: u64,
    /// The fields of requests by which it was selected among others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vary: Vec<String>,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Its age, in seconds.
    pub age_seconds: u64,
    /// How many more seconds it is fresh. Below zero: how long it has been stale.
    pub fresh_for_seconds: i64,
    /// The arithmetic behind these, and the limits of its use.
    pub arithmetic: Vec<Step>,
}

/// A step of the arithmetic of freshness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Step {
    /// What it is, such as `age`.
    pub what: String,
    /// How it comes about, in words.
    pub words: String,
    /// The statement that it follows: the section of an RFC, or a setting.
    pub source: String,
}
