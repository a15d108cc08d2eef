//! The settings of HTTPS to clients: `[server.tls]`, `[server.acme]`, and `tls` of a site.

use std::fmt;
use std::path::PathBuf;

use eyewall_tls::acme::{AcmeSettings, ChallengeKind, ExternalAccount, LETS_ENCRYPT};
use eyewall_tls::{IdentityFiles, MinimumVersion};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Spanned;

use super::names::HostPattern;
use super::site::Site;

/// `[server.tls]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerTls {
    /// The oldest version of TLS that a client may use, `"1.2"` or `"1.3"`.
    ///
    /// Example: `"1.3"`
    pub version_min: TlsVersion,
    /// The folder in which Eyewall keeps the keys of session tickets, and the account and certificates of `tls = "auto"`. Eyewall
    /// creates it.
    ///
    /// Example: `"/srv/eyewall"`
    pub state: PathBuf,
    /// The file with the keys of session tickets. Servers that share it resume each other's sessions.
    ///
    /// Default: `tickets` in `state`
    ///
    /// Example: `"/run/eyewall/tickets"`
    pub tickets: Option<PathBuf>,
}

impl Default for ServerTls {
    fn default() -> Self {
        Self { version_min: TlsVersion::Tls12, state: PathBuf::from("/var/lib/eyewall"), tickets: None }
    }
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    Tls13,
}

impl From<TlsVersion> for MinimumVersion {
    fn from(version: TlsVersion) -> Self {
        match version {
            TlsVersion::Tls12 => Self::Tls12,
            TlsVersion::Tls13 => Self::Tls13,
        }
    }
}

/// `[server.acme]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Acme {
    /// Mail addresses at which the authority may reach you.
    ///
    /// Example: `["you@example.org"]`
    pub contact: Vec<String>,
    /// The address of the authority's directory. Its certificates are yours under its terms, which you accept by naming it here.
    ///
    /// Example: `"https://acme-staging-v02.api.letsencrypt.org/directory"`
    pub directory: String,
    /// Certificates to trust for the directory's own server, in PEM.
    ///
    /// Default: those of the system
    ///
    /// Example: `"/etc/eyewall/authority.pem"`
    pub ca_file: Option<Spanned<PathBuf>>,
    /// The kind of certificate, if the authority has several.
    ///
    /// Default: that of the authority
    ///
    /// Example: `"shortlived"`
    pub profile: Option<String>,
    /// Ways to prove that a host is yours, in the order in which Eyewall tries them.
    ///
    /// Default: `["tls-alpn-01", "http-01"]`, or `["dns-01"]` with `dns_command`
    ///
    /// Example: `["http-01"]`
    pub challenges: Option<Vec<Challenge>>,
    /// The program that sets and clears TXT records, for `dns-01`.
    ///
    /// Default: none
    ///
    /// Example: `"/etc/eyewall/dns"`
    pub dns_command: Option<Spanned<PathBuf>>,
    /// The identifier of an account that you have with the authority already.
    ///
    /// Default: none
    ///
    /// Example: `"kid-1"`
    pub external_account_id: Option<String>,
    /// A file with the key of that account, in base64url.
    ///
    /// Default: none
    ///
    /// Example: `"/etc/eyewall/account-key"`
    pub external_account_key_file: Option<Spanned<PathBuf>>,
}

impl Default for Acme {
    fn default() -> Self {
        Self {
            contact: Vec::new(),
            directory: LETS_ENCRYPT.to_owned(),
            ca_file: None,
            profile: None,
            challenges: None,
            dns_command: None,
            external_account_id: None,
            external_account_key_file: None,
        }
    }
}

impl Acme {
    /// Whether it can get certificates for wildcards.
    pub(super) fn has_dns(&self) -> bool {
        self.challenges.as_ref().map_or(self.dns_command.is_some(), |all| all.contains(&Challenge::Dns01))
    }

    /// The same for the library, with the state in this folder.
    ///
    /// # Errors
    /// The system's, for the file of the account's key.
    pub(crate) fn settings(&self, folder: PathBuf) -> std::io::Result<AcmeSettings> {
        let mut settings = AcmeSettings::new(folder);
        settings.directory.clone_from(&self.directory);
        settings.contacts.clone_from(&self.contact);
        settings.profile.clone_from(&self.profile);
        settings.roots = self.ca_file.as_ref().map(|path| path.get_ref().clone());
        settings.dns_command = self.dns_command.as_ref().map(|path| path.get_ref().clone());
        if let (Some(id), Some(path)) = (&self.external_account_id, &self.external_account_key_file) {
            let key = std::fs::read_to_string(path.get_ref())?.trim().to_owned();
            settings.external_account = Some(ExternalAccount { id: id.clone(), key });
        }
        if let Some(challenges) = &self.challenges {
            settings.challenges = challenges.iter().copied().map(ChallengeKind::from).collect();
        } else if self.dns_command.is_some() {
            settings.challenges = vec![ChallengeKind::Dns01];
        }
        Ok(settings)
    }
}

/// A way to prove to an authority that a host is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Challenge {
    /// An answer at port 80.
    #[serde(rename = "http-01")]
    Http01,
    /// A certificate in a handshake at port 443.
    #[serde(rename = "tls-alpn-01")]
    TlsAlpn01,
    /// A TXT record.
    #[serde(rename = "dns-01")]
    Dns01,
}

impl From<Challenge> for ChallengeKind {
    fn from(challenge: Challenge) -> Self {
        match challenge {
            Challenge::Http01 => Self::Http01,
            Challenge::TlsAlpn01 => Self::TlsAlpn01,
            Challenge::Dns01 => Self::Dns01,
        }
    }
}

/// `tls` of a site.
#[derive(Debug, Clone)]
pub enum SiteTls {
    /// A certificate for each host, from an authority by ACME.
    Auto,
    /// Certificates from files. A client gets the first whose kind of key it supports.
    Files(Vec<CertificateFiles>),
}

/// `[site.tls]`
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct CertificateFiles {
    /// The certificate in PEM, then those that vouch for it.
    ///
    /// Default: none; it is required
    ///
    /// Example: `"/etc/ssl/example.org.pem"`
    pub certificate: Option<Spanned<PathBuf>>,
    /// The private key in PEM.
    ///
    /// Default: the file of `certificate`
    ///
    /// Example: `"/etc/ssl/example.org.key"`
    pub key: Option<Spanned<PathBuf>>,
    /// An OCSP response in DER to staple.
    ///
    /// Default: none
    ///
    /// Example: `"/etc/ssl/example.org.ocsp"`
    pub ocsp: Option<Spanned<PathBuf>>,
}

impl CertificateFiles {
    /// The same for the library; `None` without a certificate.
    pub(crate) fn identity(&self) -> Option<IdentityFiles> {
        let certificate = self.certificate.as_ref()?.get_ref().clone();
        let key = self.key.as_ref().map_or_else(|| certificate.clone(), |key| key.get_ref().clone());
        Some(IdentityFiles { certificate, key, ocsp: self.ocsp.as_ref().map(|path| path.get_ref().clone()) })
    }
}

impl Site {
    /// The names that certificates of this site need: `example.org`, `*.example.org`, an address. None for `*`.
    pub(crate) fn certificate_names(&self) -> Vec<String> {
        let of_address = |name: &str| name.trim_matches(['[', ']']).to_owned();
        let hosts = self.hosts.iter().filter_map(|host| match host.get_ref() {
            HostPattern::Name(name) => Some(of_address(name)),
            HostPattern::Below(suffix) => Some(format!("*{suffix}")),
            HostPattern::Any => None,
        });
        hosts.chain(self.aliases.iter().map(|alias| of_address(&alias.get_ref().0))).collect()
    }

    /// Whether Eyewall gets its certificates by ACME.
    pub(crate) fn is_auto(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| matches!(tls.get_ref(), SiteTls::Auto))
    }
}

const WAYS: &str = "\"auto\" or a table with `certificate` and `key`";

struct Ways;

impl<'de> Visitor<'de> for Ways {
    type Value = SiteTls;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(WAYS)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SiteTls, E> {
        if text == "auto" {
            return Ok(SiteTls::Auto);
        }
        Err(E::custom(format!(
            "`{text}` is not a way to get a certificate; write \"auto\", or give the files: {{ certificate = ..., key = ... }}"
        )))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SiteTls, A::Error> {
        CertificateFiles::deserialize(MapAccessDeserializer::new(map)).map(|files| SiteTls::Files(vec![files]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<SiteTls, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(SiteTls::Files)
    }
}

impl<'de> Deserialize<'de> for SiteTls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Ways)
    }
}

impl Serialize for SiteTls {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Files(files) => match &files[..] {
                [only] => only.serialize(serializer),
                files => files.serialize(serializer),
            },
        }
    }
}
