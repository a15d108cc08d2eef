//! The operator's settings.

use std::net::IpAddr;
use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::AcmeError;
use super::challenge::{self, ChallengeKind};

/// The directory of Let's Encrypt, the default.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// The directory of Let's Encrypt for trials: it allows more orders, and nobody trusts its certificates.
pub const LETS_ENCRYPT_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";

/// The authority, and the way to get certificates from it.
#[derive(Clone, Debug)]
pub struct AcmeSettings {
    /// The address of the authority's directory, by https (RFC 8555, section 7.1.1).
    pub directory: String,
    /// Mail addresses at which the authority may reach the operator. By naming an authority here, the operator agrees to its terms.
    pub contacts: Vec<String>,
    /// What the authority gave the operator to name an account there (RFC 8555, section 7.3.4).
    pub external_account: Option<ExternalAccount>,
    /// The kind of certificate, where the authority has several: for instance `shortlived` of Let's Encrypt.
    pub profile: Option<String>,
    /// PEM with the certificates to trust for the directory's server; `None` trusts those of the system.
    pub roots: Option<PathBuf>,
    /// The folder that processes share. It is made if it isn't there.
    pub folder: PathBuf,
    /// The kinds of challenge that the server can answer, in the order in which they are tried.
    pub challenges: Vec<ChallengeKind>,
    /// For DNS-01: called as `COMMAND set NAME VALUE`, which returns when the authority can see the TXT record, and as
    /// `COMMAND clear NAME VALUE`. Each has two minutes.
    pub dns_command: Option<PathBuf>,
}

impl AcmeSettings {
    /// Let's Encrypt, by HTTP-01 and TLS-ALPN-01.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            directory: LETS_ENCRYPT.to_owned(),
            contacts: Vec::new(),
            external_account: None,
            profile: None,
            roots: None,
            folder,
            challenges: vec![ChallengeKind::TlsAlpn01, ChallengeKind::Http01],
            dns_command: None,
        }
    }
}

impl AcmeSettings {
    /// Checks these settings for these sets of names, as [`Acme::start`](super::Acme::start) does. Reads no file.
    ///
    /// # Errors
    /// [`AcmeError::Setting`], for the first fault.
    pub fn check(&self, sets: &[Vec<String>]) -> Result<(), AcmeError> {
        check(self, sets).map(|_| ())
    }
}

/// Names an account that the operator has with the authority otherwise.
#[derive(Clone)]
pub struct ExternalAccount {
    /// The key's identifier.
    pub id: String,
    /// The key in base64url.
    pub key: String,
}

impl std::fmt::Debug for ExternalAccount {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ExternalAccount").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ExternalAccount {
    /// The bytes of the key; `None` if it isn't base64url.
    pub(super) fn key_bytes(&self) -> Option<Vec<u8>> {
        BASE64_URL_SAFE_NO_PAD.decode(self.key.trim().trim_end_matches('=')).ok()
    }
}

/// Checks settings and names, and gives the names in their normal form.
pub(super) fn check(settings: &AcmeSettings, sets: &[Vec<String>]) -> Result<Vec<Vec<String>>, AcmeError> {
    let wrong = |what: String, reason| Err(AcmeError::Setting { what, reason });
    if !settings.directory.starts_with("https://") || settings.directory.parse::<http::Uri>().is_err() {
        return wrong(format!("the ACME directory \"{}\"", settings.directory), "give an address by https");
    }
    for contact in &settings.contacts {
        let is_address = contact.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
        if !is_address || !contact.bytes().all(|byte| byte.is_ascii_graphic() && !b",?:".contains(&byte)) {
            return wrong(format!("the contact \"{contact}\""), "give a mail address");
        }
    }
    if settings.external_account.as_ref().is_some_and(|account| account.key_bytes().is_none()) {
        return wrong("the key of the external account".to_owned(), "give it in base64url, as the authority does");
    }
    if settings.challenges.is_empty() {
        return wrong("the kinds of challenge".to_owned(), "allow one at least");
    }
    let has_dns = settings.challenges.contains(&ChallengeKind::Dns01);
    if has_dns && settings.dns_command.is_none() {
        return wrong("the challenge dns-01".to_owned(), "name the command that sets TXT records");
    }
    let sets: Vec<Vec<String>> = sets.iter().map(|names| normal(names)).collect();
    for names in &sets {
        if names.is_empty() {
            return wrong("a set of names".to_owned(), "give one name at least");
        }
        for name in names {
            let is_wildcard = name.starts_with("*.");
            if !is_name(name) {
                return wrong(
                    format!("the name \"{name}\""),
                    "give a DNS name of letters, digits and hyphens (others as punycode), or an IP address",
                );
            }
            if is_wildcard && !has_dns {
                return wrong(format!("the name \"{name}\""), "authorities give wildcards by dns-01 only; allow it");
            }
        }
    }
    Ok(sets)
}

/// Names as certificates and files have them: in lower case, without a dot at the end, each once.
pub(super) fn normal(names: &[String]) -> Vec<String> {
    let mut normal: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let name = name.parse().map_or(name, |address: IpAddr| address.to_string());
        if !normal.contains(&name) {
            normal.push(name);
        }
    }
    normal
}

fn is_name(name: &str) -> bool {
    let host = name.strip_prefix("*.").unwrap_or(name);
    challenge::is_host(host) || (host == name && name.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(change: impl Fn(&mut AcmeSettings), names: &[&str]) -> String {
        let mut settings = AcmeSettings::new("/nowhere".into());
        change(&mut settings);
        let names = names.iter().map(ToString::to_string).collect();
        check(&settings, &[names]).map_or_else(|error| error.to_string(), |sets| sets[0].join(" "))
    }

    #[test]
    fn names_are_taken_in_their_normal_form() {
        let same = |_: &mut AcmeSettings| ();
        assert_eq!(reason(same, &["Example.ORG.", "example.org", "www.example.org"]), "example.org www.example.org");
        assert_eq!(reason(same, &["2001:DB8:0::1"]), "2001:db8::1");
        for name in ["", "a b", "../x", "a..b", "b\u{fc}cher.example", "*", "*.192.0.2.7.", "a/b", "*.*.a"] {
            assert!(reason(same, &[name]).starts_with("the name"), "{name:?}");
        }
        assert!(reason(same, &[]).starts_with("a set of names"));
    }

    #[test]
    fn a_wrong_setting_is_named() {
        let name = &["example.org"][..];
        assert!(reason(|settings| settings.directory = "http://ca.example/".into(), name).contains("by https"));
        assert!(reason(|settings| settings.contacts = vec!["nobody".into()], name).contains("mail address"));
        assert!(reason(|settings| settings.challenges = vec![], name).contains("one at least"));
        assert!(reason(|settings| settings.challenges = vec![ChallengeKind::Dns01], name).contains("TXT"));
        assert!(reason(|_| (), &["*.example.org"]).contains("dns-01"));
        let account = ExternalAccount { id: "1".into(), key: "not base64!".into() };
        assert!(!format!("{account:?}").contains("base64"));
        assert!(reason(|settings| settings.external_account = Some(account.clone()), name).contains("base64url"));
        let dns = |settings: &mut AcmeSettings| {
            settings.challenges = vec![ChallengeKind::Dns01];
            settings.dns_command = Some("/bin/true".into());
        };
        assert_eq!(reason(dns, &["*.example.org"]), "*.example.org");
    }
}
