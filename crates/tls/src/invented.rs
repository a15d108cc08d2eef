//! Certificates of the tests' own making, and a folder for them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use crate::file;
use crate::identity::{Identity, IdentityFiles};

/// A certificate that signs itself, and its key, in PEM.
pub(crate) fn invented(names: &[&str]) -> (String, String) {
    invented_by(&KeyPair::generate().unwrap(), names)
}

/// The same for a given key.
pub(crate) fn invented_by(key: &KeyPair, names: &[&str]) -> (String, String) {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let certificate = CertificateParams::new(names).unwrap().self_signed(key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// A folder with files of identities.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, over an existing one.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join(name);
        file::replace(&path, content.as_bytes()).unwrap();
        path
    }

    /// Writes certificate and key.
    pub(crate) fn write(&self, name: &str, (certificate, key): &(String, String)) -> IdentityFiles {
        IdentityFiles {
            certificate: self.file(&format!("{name}.pem"), certificate),
            key: self.file(&format!("{name}.key"), key),
            ocsp: None,
        }
    }

    /// An identity for names.
    pub(crate) fn identity(&self, names: &[&str]) -> Arc<Identity> {
        Arc::new(Identity::load(&self.write("identity", &invented(names))).unwrap())
    }
}
