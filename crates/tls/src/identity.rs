//! A certificate chain with its private key, from PEM files.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::clock::of_unix_seconds;
use crate::file;

/// Where an identity is read from. `certificate` and `key` may name one file that holds both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdentityFiles {
    /// The chain in PEM: the server's certificate first, then those that vouch for it. The root may be left out.
    pub certificate: PathBuf,
    /// The private key in PEM: PKCS#8, PKCS#1 or SEC1, not encrypted.
    pub key: PathBuf,
    /// An OCSP response in DER to staple (RFC 6066, section 8).
    pub ocsp: Option<PathBuf>,
}

/// Why files give no identity.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The system doesn't let us read a file, or it isn't there.
    #[error("can't read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file isn't PEM, or was cut off.
    #[error("{} is not valid PEM: {reason}; write the file again", path.display())]
    NotPem {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// The file holds no certificate.
    #[error("{} holds no certificate; it needs the chain in PEM, the server's certificate first", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The file holds no private key.
    #[error("{} holds no private key; it needs one in PEM that is not encrypted", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The key is of a kind that TLS servers don't use, or is damaged.
    #[error("the private key in {} can't be used: {reason}; use ECDSA P-256 or RSA of 2048 bits or more", path.display())]
    KeyUnusable {
        /// The file.
        path: PathBuf,
        /// What the cryptographic library says.
        reason: rustls::Error,
    },
    /// The first certificate isn't X.509.
    #[error("the first certificate in {} can't be parsed: {reason}", path.display())]
    CertificateInvalid {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// The key belongs to another certificate.
    #[error(
        "the private key in {} does not belong to the first certificate in {}; give both files of one certificate",
        key.display(),
        certificate.display()
    )]
    KeyMismatch {
        /// The file of the chain.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
}

impl IdentityError {
    /// Whether a file isn't there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// A certificate that ends within this time should have been renewed. Those that live for less than six weeks have a third of their life.
const SOON: Duration = Duration::from_hours(14 * 24);

/// A certificate chain whose private key we have.
#[derive(Debug)]
pub struct Identity {
    certified: Arc<CertifiedKey>,
    names: Vec<String>,
    not_before: SystemTime,
    not_after: SystemTime,
    is_key_open: bool,
}

impl Identity {
    /// Reads an identity. An expired certificate is no error: see [`Identity::warnings`].
    ///
    /// # Errors
    /// Each names the file and says what to do.
    pub fn load(files: &IdentityFiles) -> Result<Self, IdentityError> {
        let read = |path: &Path| {
            file::read_secret(path).map_err(|source| IdentityError::Unreadable { path: path.to_owned(), source })
        };
        let certificate = read(&files.certificate)?;
        // One file is read once: it may be replaced meanwhile.
        let other = if files.key == files.certificate { None } else { Some(read(&files.key)?) };
        let chain = chain(&files.certificate, &certificate)?;
        let key = key(&files.key, other.as_ref().unwrap_or(&certificate))?;
        let ocsp = files.ocsp.as_deref().map(read).transpose()?.map(|response| response.to_vec());
        Self::new(files, chain, &key, ocsp)
    }

    /// The same of PEM that isn't in the files yet.
    pub(crate) fn from_pem(files: &IdentityFiles, certificate: &[u8], key_pem: &[u8]) -> Result<Self, IdentityError> {
        Self::new(files, chain(&files.certificate, certificate)?, &key(&files.key, key_pem)?, None)
    }

    fn new(
        files: &IdentityFiles,
        chain: Vec<CertificateDer<'static>>,
        key: &PrivateKeyDer<'static>,
        ocsp: Option<Vec<u8>>,
    ) -> Result<Self, IdentityError> {
        let invalid = |reason: String| IdentityError::CertificateInvalid { path: files.certificate.clone(), reason };
        let Some(first) = chain.first() else {
            return Err(IdentityError::NoCertificate { path: files.certificate.clone() });
        };
        let (_, parsed) = X509Certificate::from_der(first).map_err(|error| invalid(error.to_string()))?;
        let names = names(&parsed);
        let moment = |time: i64| of_unix_seconds(u64::try_from(time).unwrap_or(0));
        let validity = parsed.validity();
        let (not_before, not_after) = (moment(validity.not_before.timestamp()), moment(validity.not_after.timestamp()));
        let key =
            any_supported_type(key).map_err(|reason| IdentityError::KeyUnusable { path: files.key.clone(), reason })?;
        let mut certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) => {}
            Err(rustls::Error::InconsistentKeys(_)) => {
                let (certificate, key) = (files.certificate.clone(), files.key.clone());
                return Err(IdentityError::KeyMismatch { certificate, key });
            }
            Err(error) => return Err(invalid(error.to_string())),
        }
        certified.ocsp = ocsp;
        let is_key_open = file::is_open_to_others(&files.key, 0o007);
        Ok(Self { certified: Arc::new(certified), names, not_before, not_after, is_key_open })
    }

    /// What rustls presents.
    pub fn certified(&self) -> &Arc<CertifiedKey> {
        &self.certified
    }

    /// The names that the certificate is for: DNS names in lower case, wildcards among them, and IP addresses as text. Those of the
    /// subject alternative names alone: clients look nowhere else (RFC 9525, section 2).
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Since when the certificate is valid.
    pub fn not_before(&self) -> SystemTime {
        self.not_before
    }

    /// Until when the certificate is valid.
    pub fn not_after(&self) -> SystemTime {
        self.not_after
    }

    /// For how long the certificate is valid yet; zero once it is expired.
    pub fn left(&self, now: SystemTime) -> Duration {
        self.not_after.duration_since(now).unwrap_or_default()
    }

    /// The whole days that the certificate is valid yet.
    pub fn days_left(&self, now: SystemTime) -> u64 {
        self.left(now).as_secs() / (24 * 60 * 60)
    }

    /// Whether the certificate is valid, and ends so soon that its renewal seems to be forgotten.
    pub fn ends_soon(&self, now: SystemTime) -> bool {
        let life = self.not_after.duration_since(self.not_before).unwrap_or_default();
        let left = self.left(now);
        !left.is_zero() && left < SOON.min(life / 3)
    }

    /// Problems of an identity that can still be used, a sentence for each.
    pub fn warnings(&self, now: SystemTime) -> Vec<&'static str> {
        let mut warnings = Vec::new();
        if self.left(now).is_zero() {
            warnings.push("the certificate is expired, and clients refuse it; renew it");
        }
        if now < self.not_before {
            warnings.push("the certificate is not valid yet, and clients refuse it; check the clock of this machine");
        }
        if self.names.is_empty() {
            warnings.push("the certificate has no subject alternative name, and clients refuse it; get one with names");
        }
        if self.is_key_open {
            warnings.push("every user of this machine may read the private key; chmod 600 its file");
        }
        warnings
    }
}

fn chain(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let not_pem = |error: rustls_pki_types::pem::Error| IdentityError::NotPem {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(not_pem)
}

fn key(path: &Path, pem: &[u8]) -> Result<PrivateKeyDer<'static>, IdentityError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
        rustls_pki_types::pem::Error::NoItemsFound => IdentityError::NoKey { path: path.to_owned() },
        error => IdentityError::NotPem { path: path.to_owned(), reason: error.to_string() },
    })
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else { return Vec::new() };
    extension.value.general_names.iter().filter_map(name).collect()
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => {
            let address = <[u8; 4]>::try_from(*bytes).map(|bytes| IpAddr::from(Ipv4Addr::from(bytes)));
            let address = address.or_else(|_| <[u8; 16]>::try_from(*bytes).map(|bytes| Ipv6Addr::from(bytes).into()));
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invented::{Folder, invented};

    #[test]
    fn names_and_times_are_those_of_the_certificate() {
        let folder = Folder::new();
        let files = folder.write("a", &invented(&["Example.org", "*.example.org", "192.0.2.7", "2001:db8::1"]));
        let identity = Identity::load(&files).unwrap();
        assert_eq!(identity.names(), ["example.org", "*.example.org", "192.0.2.7", "2001:db8::1"]);
        let (from, until) = (identity.not_before(), identity.not_after());
        assert_eq!(identity.days_left(until - Duration::from_hours(36)), 1);
        assert!(identity.warnings(from).is_empty());
        let ends_soon = |days: u64| identity.ends_soon(until - Duration::from_hours(24 * days));
        assert_eq!([0, 1, 13, 15].map(ends_soon), [false, true, true, false]);
        assert!(identity.warnings(until)[0].contains("is expired"));
        assert!(identity.warnings(from - Duration::from_secs(1))[0].contains("not valid yet"));
        assert_eq!(identity.certified().ocsp, None);
    }

    #[test]
    fn one_file_may_hold_chain_and_key_and_another_the_response_to_staple() {
        let folder = Folder::new();
        let (certificate, key) = invented(&["example.org"]);
        let path = folder.file("both.pem", &format!("{certificate}{key}"));
        let ocsp = folder.file("ocsp.der", "not looked into");
        let files = IdentityFiles { certificate: path.clone(), key: path, ocsp: Some(ocsp) };
        let identity = Identity::load(&files).unwrap();
        assert_eq!(identity.certified().ocsp.as_deref(), Some(&b"not looked into"[..]));
    }

    #[test]
    fn an_error_names_the_file_and_says_what_to_do() {
        let folder = Folder::new();
        let (one, other) = (invented(&["one.example"]), invented(&["other.example"]));
        let cut = &one.0[..one.0.len() / 2];
        let cases: [(&str, &str, &str, &str); 6] = [
            ("", &one.1, "certificate", "holds no certificate"),
            (&one.1, &one.1, "certificate", "holds no certificate"),
            (cut, &one.1, "certificate", "is not valid PEM"),
            (&one.0, &one.0, "key", "holds no private key"),
            (&one.0, &other.1, "key", "does not belong to the first certificate"),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                &one.1,
                "certificate",
                "can't be parsed",
            ),
        ];
        for (certificate, key, place, reason) in cases {
            let files = folder.write("case", &(certificate.to_owned(), key.to_owned()));
            let error = Identity::load(&files).unwrap_err().to_string();
            let path = if place == "key" { &files.key } else { &files.certificate };
            assert!(error.contains(reason) && error.contains(&path.display().to_string()), "{error}");
        }
        let mut files = folder.write("case", &one);
        files.key = folder.path().join("nowhere");
        let error = Identity::load(&files).unwrap_err();
        assert!(error.is_missing() && error.to_string().contains("nowhere"), "{error}");
    }

    #[test]
    fn a_key_that_every_user_can_read_is_warned_of() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = Folder::new();
        let files = folder.write("a", &invented(&["example.org"]));
        std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(0o644)).unwrap();
        let identity = Identity::load(&files).unwrap();
        assert!(identity.warnings(identity.not_before())[0].contains("chmod 600"));
    }
}
