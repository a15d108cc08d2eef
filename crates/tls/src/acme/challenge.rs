//! Answers that prove to an authority that a name is ours (RFC 8555, section 8).
//!
//! ```text
//! FOLDER/http/TOKEN    the key authorization, as HTTP-01 wants it
//! FOLDER/tls/NAME      its SHA-256 in base64url, as TLS-ALPN-01 wants it
//! ```
//! The authority asks any process that listens, so the answers lie in files that all processes read. They are there for the seconds that an
//! order takes; a client that asks for another one costs an `open` that fails.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use rustls_pki_types::PrivatePkcs8KeyDer;

use crate::file;

/// A way to show an authority that a name is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChallengeKind {
    /// An answer by HTTP at port 80 (RFC 8555, section 8.3).
    Http01,
    /// A certificate in a handshake at port 443 (RFC 8737).
    TlsAlpn01,
    /// A TXT record (RFC 8555, section 8.4). The only one for wildcards.
    Dns01,
}

impl ChallengeKind {
    /// Its name in the registry of RFC 8555, section 9.7.8.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Dns01 => "dns-01",
        }
    }
}

/// The answers of all orders under way. The server gives the authority access to them: it calls [`Challenges::http_response`] at port 80, and
/// gives this to [`Certificates::new`](crate::Certificates::new) for port 443.
#[derive(Debug)]
pub struct Challenges {
    http: PathBuf,
    tls: PathBuf,
}

/// The path at which HTTP-01 asks, before the token (RFC 8555, section 8.3).
pub const HTTP_PATH: &str = "/.well-known/acme-challenge/";

/// Answers of an order that is older than this were left by a process that died.
const LEFT_OVER: Duration = Duration::from_hours(24);

impl Challenges {
    /// Answers below this folder, which exists.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let challenges = Self { http: folder.join("http"), tls: folder.join("tls") };
        std::fs::create_dir_all(&challenges.http)?;
        std::fs::create_dir_all(&challenges.tls)?;
        Ok(challenges)
    }

    /// The body of the answer to a GET of [`HTTP_PATH`] and this token, as `application/octet-stream`; `None` where no authority was told
    /// to ask for it. Reads a file.
    pub fn http_response(&self, token: &str) -> Option<String> {
        if !is_token(token) {
            return None;
        }
        let answer = file::read_secret(&self.http.join(token)).ok()?;
        String::from_utf8(answer.to_vec()).ok()
    }

    /// What a handshake of TLS-ALPN-01 for this name presents. Reads a file, and makes a key.
    pub(crate) fn tls_identity(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let name = name.to_ascii_lowercase();
        if !is_host(&name) {
            return None;
        }
        let text = file::read_secret(&self.tls.join(&name)).ok()?;
        let digest = BASE64_URL_SAFE_NO_PAD.decode(&*text).ok()?;
        challenge_identity(&name, &digest)
    }

    pub(super) fn put_http(&self, token: &str, authorization: &str) -> io::Result<()> {
        if !is_token(token) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the authority's token isn't base64url"));
        }
        file::replace(&self.http.join(token), authorization.as_bytes())
    }

    /// `digest` is the SHA-256 of the key authorization in base64url.
    pub(super) fn put_tls(&self, name: &str, digest: &str) -> io::Result<()> {
        let name = server_name(name);
        if !is_host(&name) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the authority's name is none"));
        }
        file::replace(&self.tls.join(name), digest.as_bytes())
    }

    pub(super) fn remove_http(&self, token: &str) {
        if is_token(token) {
            let _ = std::fs::remove_file(self.http.join(token));
        }
    }

    pub(super) fn remove_tls(&self, name: &str) {
        let name = server_name(name);
        if is_host(&name) {
            let _ = std::fs::remove_file(self.tls.join(name));
        }
    }

    /// Removes what processes left that died during an order.
    pub(super) fn remove_left_over(&self) {
        let now = SystemTime::now();
        for folder in [&self.http, &self.tls] {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let modified = entry.metadata().and_then(|metadata| metadata.modified());
                if modified.is_ok_and(|modified| now.duration_since(modified).is_ok_and(|age| age > LEFT_OVER)) {
                    let _ = std::fs::remove_file(entry.path());
                }
            }
        }
    }
}

/// A token is base64url (RFC 8555, section 8.3), and so no path.
fn is_token(token: &str) -> bool {
    (1..=128).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Whether these are labels of letters, digits and hyphens in lower case with dots between them, and so no path.
pub(super) fn is_host(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// The server name by which an authority asks for a name or an address (RFC 8738, section 6).
fn server_name(name: &str) -> String {
    match name.parse() {
        Ok(IpAddr::V4(address)) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        Ok(IpAddr::V6(address)) => {
            let digits = format!("{:032x}", address.to_bits());
            digits.chars().rev().flat_map(|digit| [digit, '.']).collect::<String>() + "ip6.arpa"
        }
        Err(_) => name.to_owned(),
    }
}

/// The address that a server name of [`server_name`] stands for.
fn address(server_name: &str) -> Option<IpAddr> {
    if let Some(bytes) = server_name.strip_suffix(".in-addr.arpa") {
        let reversed: Vec<&str> = bytes.rsplit('.').collect();
        return reversed.join(".").parse().ok();
    }
    let digits: String = server_name.strip_suffix(".ip6.arpa")?.rsplit('.').collect();
    u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32).map(|bits| IpAddr::V6(bits.into()))
}

/// A certificate that signs itself, with the digest in a critical extension (RFC 8737, section 3).
fn challenge_identity(name: &str, digest: &[u8]) -> Option<Arc<CertifiedKey>> {
    let digest: &[u8; 32] = digest.try_into().ok()?;
    let subject = address(name).map_or_else(|| name.to_owned(), |address| address.to_string());
    let mut params = CertificateParams::new([subject]).ok()?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate().ok()?;
    let certificate = params.self_signed(&key).ok()?;
    let key = any_supported_type(&PrivatePkcs8KeyDer::from(key.serialize_der()).into()).ok()?;
    Some(Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answers_of_orders_are_given() {
        let folder = tempfile::tempdir().unwrap();
        let challenges = Challenges::open(folder.path()).unwrap();
        challenges.put_http("abc-_9", "abc-_9.thumb").unwrap();
        assert_eq!(challenges.http_response("abc-_9").as_deref(), Some("abc-_9.thumb"));
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        for token in ["", "abc", ".", "..", "../secret", "a/b", "a\0", "%2e%2e", &"a".repeat(129)] {
            assert_eq!(challenges.http_response(token), None, "{token:?}");
        }
        assert!(challenges.put_http("../x", "y").is_err());
        challenges.remove_http("abc-_9");
        assert_eq!(challenges.http_response("abc-_9"), None);
    }

    #[test]
    fn a_handshake_for_a_name_presents_its_digest() {
        let folder = tempfile::tempdir().unwrap();
        let challenges = Challenges::open(folder.path()).unwrap();
        challenges.put_tls("example.org", &BASE64_URL_SAFE_NO_PAD.encode([7; 32])).unwrap();
        let certificate = challenges.tls_identity("Example.ORG").unwrap().cert[0].clone();
        // An OCTET STRING of 32 bytes, inside the extension's.
        let digest = [&[4, 34, 4, 32][..], &[7; 32]].concat();
        assert!(certificate.windows(digest.len()).any(|bytes| bytes == digest));
        for name in ["example.net", "..", "../http", "a/b", ""] {
            assert!(challenges.tls_identity(name).is_none(), "{name:?}");
        }
        assert!(challenges.put_tls("../x", "y").is_err());
        challenges.put_tls("example.net", "not a digest").unwrap();
        assert!(challenges.tls_identity("example.net").is_none());
        challenges.remove_tls("example.org");
        assert!(challenges.tls_identity("example.org").is_none());
    }

    #[test]
    fn an_address_is_asked_for_by_its_reverse_name() {
        for (text, name) in [
            ("192.0.2.7", "7.2.0.192.in-addr.arpa".to_owned()),
            ("2001:db8::1", format!("1.0.0.0.{}8.b.d.0.1.0.0.2.ip6.arpa", "0.".repeat(20))),
        ] {
            assert_eq!(server_name(text), name);
            assert_eq!(address(&name).unwrap().to_string(), text);
            assert!(is_host(&name));
        }
        assert_eq!(server_name("example.org"), "example.org");
        assert_eq!(address("example.org"), None);
        assert_eq!(address("1.ip6.arpa"), None);
    }
}
