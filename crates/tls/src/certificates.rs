//! The identity that a client gets, by the name that it asks for (SNI, RFC 6066, section 3).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::SignatureScheme;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::acme::Challenges;
use crate::identity::Identity;

/// The protocol of ALPN by which an authority validates a name (RFC 8737, section 4).
pub const ACME_TLS: &[u8] = b"acme-tls/1";

/// Some hosts, and the identities that they have.
#[derive(Clone, Debug)]
pub struct HostIdentities {
    /// Host names, or `*.` and a name for all hosts one label below it. Where the list is empty, the names in the certificates count.
    pub hosts: Vec<String>,
    /// For instance one of ECDSA and one of RSA: a client gets the first whose key it supports.
    pub identities: Vec<Arc<Identity>>,
}

/// The identities of all hosts.
///
/// Every handshake reads the table behind an atomic pointer, without a lock. [`Certificates::replace`] puts another table in its place
/// in one step: a handshake sees the old table or the new one. Connections that stand keep the identity that they began with.
pub struct Certificates {
    table: ArcSwap<Table>,
    challenges: Option<Arc<Challenges>>,
}

#[derive(Default)]
struct Table {
    /// By host name, in lower case.
    exact: HashMap<String, Vec<Arc<CertifiedKey>>>,
    /// By what follows `*.`.
    wildcard: HashMap<String, Vec<Arc<CertifiedKey>>>,
    /// For clients that name no host.
    first: Vec<Arc<CertifiedKey>>,
}

impl Certificates {
    /// A table without hosts. With `challenges`, an authority that asks by TLS-ALPN-01 (RFC 8737) is answered.
    pub fn new(challenges: Option<Arc<Challenges>>) -> Self {
        Self { table: ArcSwap::default(), challenges }
    }

    /// Puts these hosts in the place of all others. Clients that name no host get the identities of the first of `hosts` that has any.
    pub fn replace(&self, hosts: &[HostIdentities]) {
        self.table.store(Arc::new(Table::new(hosts)));
    }

    /// Whether a client that names this host gets an identity.
    pub fn has(&self, host: &str) -> bool {
        self.table.load().of_host(host).is_some()
    }

    /// Whether TLS-ALPN-01 can be asked for.
    pub(crate) fn is_challenged(&self) -> bool {
        self.challenges.is_some()
    }
}

impl Table {
    fn new(hosts: &[HostIdentities]) -> Self {
        let mut table = Self::default();
        for host in hosts {
            let first = host.identities.iter().map(|identity| Arc::clone(identity.certified()));
            if table.first.is_empty() {
                table.first = first.collect();
            }
            for identity in &host.identities {
                let names = if host.hosts.is_empty() { identity.names() } else { &host.hosts };
                for name in names {
                    table.add(name, identity);
                }
            }
        }
        table
    }

    fn add(&mut self, name: &str, identity: &Identity) {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let identities = match name.strip_prefix("*.") {
            Some(parent) => self.wildcard.entry(parent.to_owned()).or_default(),
            None => self.exact.entry(name).or_default(),
        };
        if !identities.iter().any(|known| Arc::ptr_eq(known, identity.certified())) {
            identities.push(Arc::clone(identity.certified()));
        }
    }

    /// The exact name goes before the wildcard, whose `*` stands for one label (RFC 9525, section 6.3).
    fn of_host(&self, host: &str) -> Option<&[Arc<CertifiedKey>]> {
        let lower;
        let host = if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            lower = host.to_ascii_lowercase();
            &lower
        } else {
            host
        };
        let exact = self.exact.get(host);
        let found = exact.or_else(|| self.wildcard.get(host.split_once('.')?.1));
        found.map(Vec::as_slice)
    }

    /// The first whose key the client supports. Where there is none, the first: rustls then tells the client what is wrong.
    fn select(&self, host: Option<&str>, schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let identities = match host {
            Some(host) => self.of_host(host)?,
            None => &self.first,
        };
        // Asking a key costs a memory allocation.
        if let [only] = identities {
            return Some(Arc::clone(only));
        }
        let fits = |identity: &&Arc<CertifiedKey>| identity.key.choose_scheme(schemes).is_some();
        identities.iter().find(fits).or(identities.first()).cloned()
    }
}

impl ResolvesServerCert for Certificates {
    /// `None`, for a host that isn't known, makes rustls end the handshake by a fatal alert (`access_denied`).
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // An authority offers this protocol and no other (RFC 8737, section 3).
        if let Some(mut protocols) = hello.alpn()
            && protocols.next() == Some(ACME_TLS)
            && protocols.next().is_none()
        {
            return self.challenges.as_ref()?.tls_identity(hello.server_name()?);
        }
        self.table.load().select(hello.server_name(), hello.signature_schemes())
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.table.load();
        let mut names: Vec<&String> = table.exact.keys().chain(table.wildcard.keys()).collect();
        names.sort();
        formatter.debug_struct("Certificates").field("names", &names).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{KeyPair, PKCS_ED25519};
    use rustls::SignatureScheme::{ECDSA_NISTP256_SHA256, ED25519, RSA_PSS_SHA256};

    use super::*;
    use crate::invented::{Folder, invented_by};

    fn hosts(names: &[&str], identities: &[&Arc<Identity>]) -> HostIdentities {
        HostIdentities {
            hosts: names.iter().map(ToString::to_string).collect(),
            identities: identities.iter().map(|identity| Arc::clone(identity)).collect(),
        }
    }

    /// Which of the identities a client gets.
    fn selected(table: &Table, host: Option<&str>, identities: &[&Arc<Identity>]) -> Option<usize> {
        let selected = table.select(host, &[ECDSA_NISTP256_SHA256])?;
        identities.iter().position(|identity| Arc::ptr_eq(identity.certified(), &selected))
    }

    #[test]
    fn the_exact_name_goes_before_the_wildcard_which_stands_for_one_label() {
        let folder = Folder::new();
        let (first, exact, wildcard) =
            (&folder.identity(&["a.test"]), &folder.identity(&["b.test"]), &folder.identity(&["c.test"]));
        let all = [first, exact, wildcard];
        let table = Table::new(&[
            hosts(&["First.example"], &[first]),
            hosts(&["*.example.org"], &[wildcard]),
            hosts(&["www.example.org."], &[exact]),
        ]);
        for (host, expected) in [
            (Some("first.example"), Some(0)),
            (Some("FIRST.example"), Some(0)),
            (Some("www.example.org"), Some(1)),
            (Some("shop.example.org"), Some(2)),
            (Some("a.shop.example.org"), None),
            (Some("example.org"), None),
            (Some("unknown.example"), None),
            (None, Some(0)),
        ] {
            assert_eq!(selected(&table, host, &all), expected, "{host:?}");
        }
    }

    #[test]
    fn without_hosts_the_names_in_the_certificates_count() {
        let folder = Folder::new();
        let identity = &folder.identity(&["example.org", "*.example.org"]);
        let certificates = Certificates::new(None);
        assert!(!certificates.has("example.org"));
        certificates.replace(&[hosts(&[], &[identity])]);
        assert!(certificates.has("example.org") && certificates.has("www.example.org"));
        assert!(!certificates.has("example.net"));
        certificates.replace(&[]);
        assert!(!certificates.has("example.org"));
    }

    #[test]
    fn a_client_gets_the_first_key_that_it_supports() {
        let folder = Folder::new();
        let edwards = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let files = folder.write("edwards", &invented_by(&edwards, &["example.org"]));
        let edwards = &Arc::new(Identity::load(&files).unwrap());
        let nist = &folder.identity(&["example.org"]);
        let table = Table::new(&[hosts(&[], &[edwards, nist])]);
        let selected = |schemes: &[SignatureScheme]| table.select(Some("example.org"), schemes).unwrap();
        assert!(Arc::ptr_eq(&selected(&[ECDSA_NISTP256_SHA256]), nist.certified()));
        assert!(Arc::ptr_eq(&selected(&[ECDSA_NISTP256_SHA256, ED25519]), edwards.certified()));
        assert!(Arc::ptr_eq(&selected(&[RSA_PSS_SHA256]), edwards.certified()));
    }

    #[test]
    fn a_host_whose_certificate_is_yet_to_come_gets_none_and_the_next_answers_without_sni() {
        let folder = Folder::new();
        let identity = &folder.identity(&["b.example"]);
        let table = Table::new(&[hosts(&["a.example"], &[]), hosts(&["b.example"], &[identity])]);
        assert_eq!(selected(&table, Some("a.example"), &[identity]), None);
        assert_eq!(selected(&table, None, &[identity]), Some(0));
    }
}
