//! Certificates in files that others replace: by hand, by a client of ACME such as certbot, or by [`crate::acme`].

use std::path::Path;
use std::sync::Arc;

use crate::certificates::{Certificates, HostIdentities};
use crate::file::Stamp;
use crate::identity::{Identity, IdentityError, IdentityFiles};

/// Some hosts, and the files that their identities are in.
#[derive(Clone, Debug)]
pub struct HostFiles {
    /// As [`HostIdentities::hosts`].
    pub hosts: Vec<String>,
    /// The identities' files.
    pub files: Vec<IdentityFiles>,
    /// Whether files may be missing or unusable as yet, since [`crate::acme`] is going to write them.
    pub may_be_missing: bool,
}

/// What happened to the files of an identity.
#[derive(Debug)]
#[non_exhaustive]
pub enum Change {
    /// They were read, and clients get the new identity from now on.
    Loaded {
        /// The files.
        files: IdentityFiles,
        /// The identity in the files.
        identity: Arc<Identity>,
    },
    /// They changed and hold nothing that can be used. Clients get the old identity as before. Reported once for each state of the files.
    Kept {
        /// The files.
        files: IdentityFiles,
        /// The fault.
        error: IdentityError,
    },
}

/// Files of identities, read again when they change.
#[derive(Debug)]
pub struct Watched {
    hosts: Vec<WatchedHost>,
}

#[derive(Debug)]
struct WatchedHost {
    hosts: Vec<String>,
    may_be_missing: bool,
    identities: Vec<WatchedIdentity>,
}

#[derive(Debug)]
struct WatchedIdentity {
    files: IdentityFiles,
    /// Those of the files when they were read last, whatever came of it.
    stamps: [Option<Stamp>; 3],
    identity: Option<Arc<Identity>>,
}

impl Watched {
    /// Reads all files. Nothing comes of it before [`Watched::publish`], so that a server can check a new configuration and refuse it.
    ///
    /// # Errors
    /// That of the first files that give no identity, except where they may be missing.
    pub fn open(hosts: Vec<HostFiles>) -> Result<Self, IdentityError> {
        let hosts = hosts.into_iter().map(WatchedHost::open).collect::<Result<_, _>>()?;
        Ok(Self { hosts })
    }

    /// Gives clients the identities that were read.
    pub fn publish(&self, certificates: &Certificates) {
        let hosts: Vec<HostIdentities> = self
            .hosts
            .iter()
            .map(|host| HostIdentities {
                hosts: host.hosts.clone(),
                identities: host.identities.iter().filter_map(|watched| watched.identity.clone()).collect(),
            })
            .collect();
        certificates.replace(&hosts);
    }

    /// Looks whether files changed, reads those that did, and publishes what is in them. For the server's upkeep, every second or few: it
    /// costs a `stat` a file.
    pub fn look(&mut self, certificates: &Certificates) -> Vec<Change> {
        let changes: Vec<Change> = self.hosts.iter_mut().flat_map(WatchedHost::look).collect();
        if changes.iter().any(|change| matches!(change, Change::Loaded { .. })) {
            self.publish(certificates);
        }
        changes
    }

    /// Every identity that clients get now, with its files.
    pub fn identities(&self) -> impl Iterator<Item = (&IdentityFiles, &Arc<Identity>)> {
        let all = self.hosts.iter().flat_map(|host| &host.identities);
        all.filter_map(|watched| Some((&watched.files, watched.identity.as_ref()?)))
    }
}

impl WatchedHost {
    fn open(host: HostFiles) -> Result<Self, IdentityError> {
        let HostFiles { hosts, files, may_be_missing } = host;
        let mut identities = Vec::with_capacity(files.len());
        for files in files {
            let stamps = stamps(&files);
            let identity = match Identity::load(&files) {
                Ok(identity) => Some(Arc::new(identity)),
                Err(_) if may_be_missing => None,
                Err(error) => return Err(error),
            };
            identities.push(WatchedIdentity { files, stamps, identity });
        }
        Ok(Self { hosts, may_be_missing, identities })
    }

    fn look(&mut self) -> Vec<Change> {
        let may_be_missing = self.may_be_missing;
        self.identities.iter_mut().filter_map(|watched| watched.look(may_be_missing)).collect()
    }
}

impl WatchedIdentity {
    fn look(&mut self, may_be_missing: bool) -> Option<Change> {
        // Taken before the files are read: what changes meanwhile is seen by the next look.
        let stamps = stamps(&self.files);
        if stamps == self.stamps {
            return None;
        }
        self.stamps = stamps;
        let files = self.files.clone();
        match Identity::load(&files) {
            Ok(identity) => {
                let identity = Arc::new(identity);
                self.identity = Some(Arc::clone(&identity));
                Some(Change::Loaded { files, identity })
            }
            Err(error) if may_be_missing && error.is_missing() => None,
            Err(error) => Some(Change::Kept { files, error }),
        }
    }
}

fn stamps(files: &IdentityFiles) -> [Option<Stamp>; 3] {
    let of = |path: &Path| Stamp::of(path);
    [of(&files.certificate), of(&files.key), files.ocsp.as_deref().and_then(of)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invented::{Folder, invented};

    fn host(files: &IdentityFiles, may_be_missing: bool) -> HostFiles {
        HostFiles { hosts: Vec::new(), files: vec![files.clone()], may_be_missing }
    }

    #[test]
    fn a_renewed_certificate_is_taken_and_a_wrong_one_is_reported_once() {
        let folder = Folder::new();
        let (first, second) = (invented(&["first.example"]), invented(&["second.example"]));
        let files = folder.write("site", &first);
        let mut watched = Watched::open(vec![host(&files, false)]).unwrap();
        let certificates = Certificates::new(None);
        watched.publish(&certificates);
        assert!(certificates.has("first.example"));
        assert!(watched.look(&certificates).is_empty());

        // The new certificate is there, and its key is not as yet.
        folder.file("site.pem", &second.0);
        let changes = watched.look(&certificates);
        assert!(matches!(&changes[..], [Change::Kept { error: IdentityError::KeyMismatch { .. }, .. }]), "{changes:?}");
        assert!(watched.look(&certificates).is_empty());
        assert!(certificates.has("first.example"));

        folder.file("site.key", &second.1);
        assert!(matches!(&watched.look(&certificates)[..], [Change::Loaded { .. }]));
        assert!(certificates.has("second.example") && !certificates.has("first.example"));
        assert_eq!(watched.identities().next().unwrap().1.names(), ["second.example"]);

        std::fs::remove_file(&files.key).unwrap();
        assert!(matches!(&watched.look(&certificates)[..], [Change::Kept { error, .. }] if error.is_missing()));
        assert!(certificates.has("second.example"));
    }

    #[test]
    fn a_broken_certificate_does_not_hold_up_another() {
        let folder = Folder::new();
        let one = folder.write("one", &invented(&["one.example"]));
        let two = folder.write("two", &invented(&["two.example"]));
        let mut watched = Watched::open(vec![host(&one, false), host(&two, false)]).unwrap();
        let certificates = Certificates::new(None);
        watched.publish(&certificates);
        folder.file("one.pem", "half a certif");
        folder.write("two", &invented(&["three.example"]));
        let changes = watched.look(&certificates);
        assert!(matches!(&changes[..], [Change::Kept { .. }, Change::Loaded { .. }]), "{changes:?}");
        assert!(certificates.has("one.example") && certificates.has("three.example"));
    }

    #[test]
    fn a_certificate_to_come_may_be_missing() {
        let folder = Folder::new();
        let path = folder.path().join("later.pem");
        let files = IdentityFiles { certificate: path.clone(), key: path, ocsp: None };
        assert!(Watched::open(vec![host(&files, false)]).unwrap_err().is_missing());
        folder.file("later.pem", "cut off");
        Watched::open(vec![host(&files, true)]).unwrap();
        std::fs::remove_file(folder.path().join("later.pem")).unwrap();
        let mut watched = Watched::open(vec![host(&files, true)]).unwrap();
        let certificates = Certificates::new(None);
        watched.publish(&certificates);
        assert!(watched.look(&certificates).is_empty());
        let (certificate, key) = invented(&["later.example"]);
        folder.file("later.pem", &format!("{certificate}{key}"));
        assert!(matches!(&watched.look(&certificates)[..], [Change::Loaded { .. }]));
        assert!(certificates.has("later.example"));
        // Nobody takes away what works.
        std::fs::remove_file(folder.path().join("later.pem")).unwrap();
        assert!(watched.look(&certificates).is_empty());
        assert!(certificates.has("later.example"));
    }
}
