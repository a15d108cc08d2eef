//! `[fleet]`: the purge log that this server shares with others.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use eyewall_fleet_redis::RedisUrl;
use eyewall_tls::IdentityFiles;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Spanned;

use super::check_path::file;
use super::problem::Fault;
use super::second_level::{self, SecondLevel};
use super::value::{Period, Within};

/// The bounds of `max_blind`.
const MAX_BLIND: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(24);

/// `[fleet]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fleet {
    /// Redis servers that may have the purge log: one, or one with its replicas. Eyewall uses the first that can be written to.
    /// `rediss://` is with TLS, `redis+unix:///path` a Unix socket. `redis+sentinel://host/mymaster` is a Sentinel, and
    /// `redis+cluster://host:6379` a server of a cluster.
    ///
    /// Default: none; it is required
    ///
    /// Example: `["redis://10.0.0.7:6379"]`
    pub redis: Vec<Spanned<RedisUrl>>,
    /// The name of the fleet. Servers with the same name at the same Redis purge together.
    ///
    /// Example: `"shop"`
    pub name: Name,
    /// The name of this node, for `eyewall fleet`.
    ///
    /// Default: the name of the machine
    ///
    /// Example: `"web-1"`
    pub node: Option<Name>,
    /// A file with the password of Redis.
    ///
    /// Default: none
    ///
    /// Example: `"/etc/eyewall/redis-password"`
    pub password_file: Option<Spanned<PathBuf>>,
    /// A file with the password of Sentinels.
    ///
    /// Default: none
    ///
    /// Example: `"/etc/eyewall/sentinel-password"`
    pub sentinel_password_file: Option<Spanned<PathBuf>>,
    /// Certificates to trust for `rediss://`, in PEM.
    ///
    /// Default: those of the system
    ///
    /// Example: `"/etc/eyewall/redis.pem"`
    pub ca_file: Option<Spanned<PathBuf>>,
    /// Replicas that must have a purge before it counts as written.
    ///
    /// Example: `1`
    pub min_replicas: Within<0, 16>,
    /// Redis never loses a purge that it has acknowledged, also if a replica takes over or the server restarts. Otherwise Eyewall
    /// revalidates everything then.
    ///
    /// Example: `true`
    pub durable: bool,
    /// How long a node may be cut off from the log before it revalidates everything that it has stored.
    ///
    /// Example: `"30s"`
    pub max_blind: Spanned<Period>,
    /// Purges that the log keeps for nodes that are away. Nodes that miss more revalidate everything.
    ///
    /// Example: `1000000`
    pub lines: Within<100, 100_000_000>,
    /// The nodes that make responses for each other: their addresses, this node's among them, or `"redis"` for all nodes of the fleet.
    ///
    /// Default: none
    ///
    /// Example: `["http://10.0.0.1:8443", "http://10.0.0.2:8443"]`
    pub peers: Option<Spanned<PeerList>>,
    /// The address at which this node answers other nodes. Required with `peers`. Let only nodes reach it.
    ///
    /// Default: none
    ///
    /// Example: `"10.0.0.1:8443"`
    pub peer_listen: Option<Spanned<SocketAddr>>,
    /// The address by which other nodes know this one. All nodes write it in the same way.
    ///
    /// Default: `http://` with `peer_listen`; `https://` with `peer_cert_file`
    ///
    /// Example: `"http://10.0.0.1:8443"`
    pub peer_url: Option<PeerUrl>,
    /// The certificate of this node in PEM, for the host of its address, then those that vouch for it. With it, the node answers other nodes
    /// by TLS alone. Eyewall reads a renewed file again.
    ///
    /// Default: none: clear text
    ///
    /// Example: `"/etc/eyewall/node.pem"`
    pub peer_cert_file: Option<Spanned<PathBuf>>,
    /// The key of this certificate, in PEM.
    ///
    /// Default: the file of `peer_cert_file`
    ///
    /// Example: `"/etc/eyewall/node.key"`
    pub peer_key_file: Option<Spanned<PathBuf>>,
    /// Certificates of the authorities that vouch for nodes with `https://`, in PEM. Eyewall reads the file again at a reload.
    ///
    /// Default: those of the system
    ///
    /// Example: `"/etc/eyewall/fleet-ca.pem"`
    pub peer_ca_file: Option<Spanned<PathBuf>>,
    /// A file with the key by which nodes sign what they ask each other, of 32 characters or more. Required with `peers`.
    ///
    /// Default: none
    ///
    /// Example: `"/etc/eyewall/fleet.key"`
    pub key_file: Option<Spanned<PathBuf>>,
    /// How long a node keeps a response that another one has made. Responses that are asked for only once in a minute aren't kept at all.
    ///
    /// Example: `"5m"`
    pub peer_keep: Period,
    /// A store that the nodes share.
    pub second_level: Option<Spanned<SecondLevel>>,
}

impl Default for Fleet {
    fn default() -> Self {
        Self {
            redis: Vec::new(),
            name: Name("eyewall".to_owned()),
            node: None,
            password_file: None,
            sentinel_password_file: None,
            ca_file: None,
            min_replicas: Within(0),
            durable: false,
            max_blind: Spanned::new(0..0, Period(Duration::from_secs(10))),
            lines: Within(100_000),
            peers: None,
            peer_listen: None,
            peer_url: None,
            peer_cert_file: None,
            peer_key_file: None,
            peer_ca_file: None,
            key_file: None,
            peer_keep: Period(Duration::from_mins(1)),
            second_level: None,
        }
    }
}

impl Fleet {
    /// The files of this node's certificate; `None` without one.
    pub(crate) fn peer_identity(&self) -> Option<IdentityFiles> {
        let certificate = self.peer_cert_file.as_ref()?.get_ref().clone();
        let key = self.peer_key_file.as_ref().map_or_else(|| certificate.clone(), |key| key.get_ref().clone());
        Some(IdentityFiles { certificate, key, ocsp: None })
    }
}

/// The nodes that are asked for responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerList {
    /// Those with these addresses.
    Known(Vec<PeerUrl>),
    /// All nodes of the fleet, as the purge log knows them.
    Found,
}

/// The address of a node for other nodes: `http://` or `https://`, a host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerUrl(String);

impl PeerUrl {
    /// Whether the node has TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.0.starts_with("https:")
    }

    /// Its host and port.
    fn authority(&self) -> &str {
        self.0.split_once("//").map_or("", |(_, authority)| authority)
    }
}

impl FromStr for PeerUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri = text.parse::<http::Uri>().ok();
        let is_bare = |uri: &http::Uri| {
            let has_scheme = matches!(uri.scheme_str(), Some("http" | "https"));
            has_scheme && uri.port().is_some() && uri.path() == "/" && uri.query().is_none()
        };
        let parts = uri.filter(is_bare).and_then(|uri| {
            let authority = uri.authority()?.as_str().to_ascii_lowercase();
            (!authority.contains('@')).then(|| format!("{}://{authority}", uri.scheme_str().unwrap_or_default()))
        });
        let wrong = || format!("`{text}` is not the address of a node; give one such as http://10.0.0.1:8443");
        parts.map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for PeerUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for PeerUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for PeerUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for PeerList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PeerListVisitor)
    }
}

impl Serialize for PeerList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(urls) => urls.serialize(serializer),
            Self::Found => serializer.serialize_str("redis"),
        }
    }
}

struct PeerListVisitor;

impl<'de> Visitor<'de> for PeerListVisitor {
    type Value = PeerList;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("`\"redis\"`, or a list of addresses such as http://10.0.0.1:8443")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PeerList, E> {
        let is_found = text == "redis";
        let wrong = || E::custom(format!("`{text}` is not `redis`; give that, or a list of addresses"));
        is_found.then_some(PeerList::Found).ok_or_else(wrong)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<PeerList, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(PeerList::Known)
    }
}

/// A name of letters, digits, `-`, `_` and `.`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(pub String);

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
        if (1..=64).contains(&text.len()) && text.chars().all(is_name) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("`{text}` is not a name; give up to 64 letters, digits, `-`, `_` and `.`"))
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Reports the mistakes of the table.
pub(super) fn check(found: &Spanned<Fleet>, faults: &mut Vec<Fault>) {
    let fleet = found.get_ref();
    if fleet.redis.is_empty() {
        let hint = "give `redis`, the addresses of the servers, such as redis = [\"redis://10.0.0.7:6379\"]";
        faults.push(Fault::absence(found.span(), "[fleet] has no Redis server for its purge log", hint));
    }
    if !MAX_BLIND.contains(&fleet.max_blind.get_ref().0) {
        let message = format!("`max_blind` is {}", fleet.max_blind.get_ref());
        faults.push(Fault::new(fleet.max_blind.span(), message, "give 1s to 24h"));
    }
    check_peers(found, faults);
    if let Some(table) = &fleet.second_level {
        second_level::check(table, faults);
    }
    if let Some(path) = &fleet.password_file {
        file(path, "the password of Redis", faults);
    }
    if let Some(path) = &fleet.sentinel_password_file {
        file(path, "the password of Sentinels", faults);
        if !fleet.redis.iter().any(|url| url.get_ref().is_sentinel()) {
            let hint = "use redis+sentinel:// in `redis`, or remove the key";
            faults.push(Fault::absence(path.span(), "`sentinel_password_file` of [fleet] has no effect", hint));
        }
    }
    if let Some(path) = &fleet.ca_file {
        file(path, "the certificates for Redis", faults);
        if !fleet.redis.iter().any(|url| url.get_ref().is_tls()) {
            let hint = "use rediss:// in `redis`, or remove the key";
            faults.push(Fault::absence(path.span(), "`ca_file` of [fleet] has no effect without TLS", hint));
        }
    }
}

fn check_peers(found: &Spanned<Fleet>, faults: &mut Vec<Fault>) {
    let fleet = found.get_ref();
    if let Some(path) = &fleet.key_file {
        file(path, "the key of the fleet", faults);
    }
    let Some(peers) = &fleet.peers else {
        let files = [&fleet.key_file, &fleet.peer_cert_file, &fleet.peer_key_file, &fleet.peer_ca_file];
        let files = files.into_iter().map(|file| file.as_ref().map(Spanned::span));
        for span in files.chain([fleet.peer_listen.as_ref().map(Spanned::span)]) {
            let message = "this key of [fleet] has no effect without `peers`";
            faults.extend(span.map(|span| Fault::absence(span, message, "give `peers`, or remove the key")));
        }
        return;
    };
    match &fleet.peer_listen {
        None => {
            let hint = "give `peer_listen`, an address that only nodes can reach, such as \"10.0.0.1:8443\"";
            faults.push(Fault::absence(peers.span(), "`peers` needs an address for other nodes", hint));
        }
        Some(address) if address.get_ref().ip().is_unspecified() && fleet.peer_url.is_none() => {
            let hint = "give `peer_url`, such as \"http://10.0.0.1:8443\"";
            faults.push(Fault::absence(address.span(), "other nodes can't tell this one by its `peer_listen`", hint));
        }
        Some(_) => {}
    }
    if fleet.key_file.is_none() {
        let hint = "give `key_file`; `openssl rand -hex 32` makes a key, which all nodes share";
        faults.push(Fault::absence(peers.span(), "`peers` needs a key", hint));
    }
    check_peer_tls(fleet, peers, faults);
}

/// Reports the mistakes of TLS between nodes.
fn check_peer_tls(fleet: &Fleet, peers: &Spanned<PeerList>, faults: &mut Vec<Fault>) {
    for (path, what) in [
        (&fleet.peer_cert_file, "the certificate for peers"),
        (&fleet.peer_key_file, "the key of the certificate for peers"),
        (&fleet.peer_ca_file, "the certificates of the peers' authorities"),
    ] {
        if let Some(path) = path {
            file(path, what, faults);
        }
    }
    let known = if let PeerList::Known(urls) = peers.get_ref() { urls.as_slice() } else { &[] };
    let is_found = *peers.get_ref() == PeerList::Found;
    if let Some(path) = fleet.peer_ca_file.as_ref().filter(|_| !is_found && !known.iter().any(PeerUrl::is_secure)) {
        let hint = "use https:// in `peers`, or remove the key";
        faults.push(Fault::absence(path.span(), "`peer_ca_file` of [fleet] has no effect without TLS", hint));
    }
    let (listen, url) = (&fleet.peer_listen, fleet.peer_url.as_ref());
    let Some(certificate) = &fleet.peer_cert_file else {
        if let Some(path) = &fleet.peer_key_file {
            let hint = "give `peer_cert_file`, or remove the key";
            faults.push(Fault::absence(
                path.span(),
                "`peer_key_file` of [fleet] has no effect without its certificate",
                hint,
            ));
        }
        if let Some(listen) = listen.as_ref().filter(|_| url.is_some_and(PeerUrl::is_secure)) {
            let hint = "give `peer_cert_file`, or http:// in `peer_url`";
            faults.push(Fault::absence(
                listen.span(),
                "`peer_url` is https://, and this node has no certificate",
                hint,
            ));
        }
        return;
    };
    if url.is_some_and(|url| !url.is_secure()) {
        let hint = "write https:// in `peer_url`, or remove `peer_cert_file`";
        faults.push(Fault::absence(certificate.span(), "`peer_url` is http://, and this node has TLS", hint));
    }
    let own = url.map(|url| url.authority().to_owned()).or_else(|| Some(listen.as_ref()?.get_ref().to_string()));
    if known.iter().any(|url| !url.is_secure() && own.as_deref() == Some(url.authority())) {
        let hint = "write https:// there, at all nodes";
        faults.push(Fault::absence(peers.span(), "`peers` names this node by http://, and it has TLS", hint));
    }
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    fn mistakes(fleet: &str) -> Vec<String> {
        let text = format!("[[site]]\norigins = [\"http://a\"]\n[fleet]\n{fleet}");
        parse(&text).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn mistakes_of_tls_between_nodes_have_hints() {
        let (cert, key, ca) = (
            r#"peer_cert_file = "/etc/hostname""#,
            r#"peer_key_file = "/etc/hostname""#,
            r#"peer_ca_file = "/etc/hostname""#,
        );
        let own = |scheme| format!("peer_url = \"{scheme}://a:1\"");
        let none = String::new();
        for (peers, fleet, url, words) in [
            ("[]", key, none.clone(), "without its certificate"),
            ("[]", ca, none.clone(), "no effect without TLS"),
            ("[\"http://b:1\"]", ca, none.clone(), "no effect without TLS"),
            ("\"redis\"", cert, own("http"), "this node has TLS"),
            ("\"redis\"", "", own("https"), "has no certificate"),
            ("[\"http://A:1\", \"https://b:1\"]", cert, own("https"), "names this node by http"),
            ("[\"http://10.0.0.1:1\"]", cert, none.clone(), "names this node by http"),
            ("\"redis\"", r#"peer_cert_file = "/nowhere/x""#, none.clone(), "the certificate for peers"),
            ("\"redis\"", ca, none.clone(), ""),
            ("[\"http://b:1\", \"https://a:1\"]", cert, own("https"), ""),
        ] {
            let base = "redis = [\"redis://a\"]\npeer_listen = \"10.0.0.1:1\"\nkey_file = \"/etc/hostname\"";
            let found = mistakes(&format!("{base}\npeers = {peers}\n{fleet}\n{url}"));
            let is_right =
                found.iter().all(|mistake| mistake.contains(words)) && found.len() == usize::from(!words.is_empty());
            assert!(is_right, "{peers} {fleet} {url}: {found:?}");
        }
        for file in [cert, key, ca] {
            let found = mistakes(&format!("redis = [\"redis://a\"]\n{file}"));
            assert!(found.len() == 1 && found[0].contains("no effect without `peers`"), "{found:?}");
        }
    }

    #[test]
    fn mistakes_have_hints() {
        for (fleet, words) in [
            ("", "no Redis server"),
            ("redis = []", "no Redis server"),
            ("redis = [\"http://a\"]", "not the address of a Redis server"),
            ("redis = [\"redis://user:secret@a\"]", "put it into a file"),
            ("redis = [\"redis://a\"]\nname = \"a b\"", "not a name"),
            ("redis = [\"redis://a\"]\nmax_blind = \"100ms\"", "1s to 24h"),
            ("redis = [\"redis://a\"]\npassword_file = \"/nowhere/x\"", "password of Redis"),
            ("redis = [\"redis://a\"]\nsentinel_password_file = \"/etc/hostname\"", "has no effect"),
            ("redis = [\"redis+sentinel://a\"]", "redis+sentinel://10.0.0.7/mymaster"),
            ("redis = [\"redis+cluster://a/3\"]", "only database 0"),
            ("redis = [\"redis://a\"]\npeers = \"redis\"\nkey_file = \"/etc/hostname\"", "needs an address"),
            ("redis = [\"redis://a\"]\npeers = \"redis\"\npeer_listen = \"10.0.0.1:1\"", "needs a key"),
            ("redis = [\"redis://a\"]\npeer_listen = \"10.0.0.1:1\"", "no effect without `peers`"),
            (
                "redis = [\"redis://a\"]\npeers = []\npeer_listen = \"0.0.0.0:1\"\nkey_file = \"/etc/hostname\"",
                "by its `peer_listen`",
            ),
            ("redis = [\"redis://a\"]\npeers = [\"ftp://a:1\"]", "not the address of a node"),
            ("redis = [\"redis://a\"]\npeers = \"all\"", "a list of addresses"),
            ("redis = [\"redis://a\"]\nca_file = \"/etc/hostname\"", "no effect without TLS"),
        ] {
            let found = mistakes(fleet);
            assert!(found.len() == 1 && found[0].contains(words), "{fleet}: {found:?}");
        }
        assert_eq!(
            mistakes("redis = [\"redis://user@a:1/2\", \"rediss://b\", \"redis+unix:///run/redis.sock\"]"),
            [""; 0]
        );
    }
}
