//! The answer to "what would become of this request, and why?", as an operator gets it.

use std::net::IpAddr;

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
    /// The address from which it comes. Without one, it comes from no trusted proxy, and limits of clients don't count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
}

fn get() -> String {
    "GET".to_owned()
}

/// What would become of a request now, and which statement decides.
///
/// It covers what the server knows before it asks an origin. Other nodes of a fleet, requests that are under way and the health of origins
/// aren't part of it, nor are limits of clients, unless the question names the client.
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
    /// Its client, if the question names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientOf>,
    /// The redirect that answers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<RedirectOf>,
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
    /// All stored variants of the key, the latest first, if its responses vary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<VariantOf>,
    /// The past of the key, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub past: Option<Past>,
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

/// The client of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientOf {
    /// The address that counts as the client's: for limits, for `purge_from`, and for the origin.
    pub address: IpAddr,
    /// Whether trusted proxies name it without a gap. If they don't, the address is that of the last known proxy.
    pub is_known: bool,
    /// The scheme that counts.
    pub scheme: String,
    /// The trusted proxies that were believed, the nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub believed_proxies: Vec<IpAddr>,
}

/// A redirect by the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RedirectOf {
    /// The address to which the client is sent.
    pub location: String,
    /// The rule of the site. `None`: no rule decides it, but `redirect_to_https` or the slash at the end of a folder's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
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
    /// What it is made of, in order.
    #[serde(default)]
    pub pieces: Vec<Piece>,
}

/// A piece of a key, or of the request that the key leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Piece {
    /// `scheme`, `host`, `path`, `parameter`, `cookie` or `header`.
    pub kind: String,
    /// The scheme, the host or the path; the name of a cookie or a field, whose value may be a secret; or a parameter as the client sent it.
    pub text: String,
    /// Whether the key has it. A cookie or a field that the request lacks isn't in the key.
    pub is_kept: bool,
    /// The setting that decides, if one does, such as `strip_query = "utm_*"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
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

/// A stored variant of a key. The values of the fields that select it are those of other clients, so they are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VariantOf {
    /// The fields of requests by which it is selected.
    pub vary: Vec<String>,
    /// Whether this request selects it.
    pub is_selected: bool,
    /// Its status.
    pub status: u16,
    /// The bytes of its body.
    pub bytes: u64,
    /// Its age, in seconds.
    pub age_seconds: u64,
    /// How many more seconds it is fresh. Below zero: how long it has been stale.
    pub fresh_for_seconds: i64,
}

/// The past of a key, as far as it is known. None of it decides what happens now, except `is_unstorable`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Past {
    /// Whether the last response for this key could not be stored, as this server remembers.
    pub is_unstorable: bool,
    /// How often the stored entry of the key was asked for, up to 7; the volume forgets some of that with time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses: Option<u8>,
    /// How often the key was asked for and then stored, up to 7, as the volume remembers also of keys that it doesn't have; missing if it doesn't know
    /// the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remembered_requests: Option<u64>,
    /// The last purge that covers it, of those that this server remembers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge: Option<PurgeOf>,
    /// The last requests for it in the sample of the server, the latest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestOf>,
}

/// A purge of before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PurgeOf {
    /// When it was carried out, as in RFC 3339.
    pub time: String,
    /// `hard` or `soft`.
    pub kind: String,
    /// What it was for, such as `tag page`.
    pub of: String,
}

/// A request of before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RequestOf {
    /// How long ago it was, in seconds.
    pub seconds_ago: u64,
    /// What the cache did, as in the metrics.
    pub verdict: String,
    /// Why it wasn't a hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Microseconds until its response began.
    pub first_byte_us: u64,
}
