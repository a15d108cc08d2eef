//! A site without a certificate gets one, by each kind of challenge.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use eyewall_tls::acme::{Acme, ChallengeKind, ExternalAccount, SetState};
use serde_json::json;

use crate::site::{DAY, HOUR, Site, identity, served, set, wait_failing, wait_valid};

#[test]
fn by_http_01_with_the_server_taking_the_certificate_up() {
    let Some(site) = Site::new(ChallengeKind::Http01) else { return };
    let names = &["www.example.org", "example.org"];
    let acme = site.acme(&[names]);
    let (mut watched, certificates) = served(&acme, names);
    let status = wait_valid(&acme);
    assert_eq!((status.failures, status.error), (0, None));
    assert_eq!(watched.look(&certificates).len(), 1);
    assert!(certificates.has("example.org") && certificates.has("www.example.org"));

    let files = acme.files(&set(names));
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&files.certificate), 0o600);
    let (certificates, authority) =
        (files.certificate.parent().unwrap(), files.certificate.parent().unwrap().parent().unwrap());
    assert_eq!((mode(certificates), mode(authority), mode(&authority.join("account.json"))), (0o700, 0o700, 0o600));
    // The answers are gone.
    for kind in ["http", "tls"] {
        assert_eq!(std::fs::read_dir(authority.join("challenges").join(kind)).unwrap().count(), 0);
    }
    // A restart orders nothing.
    drop(acme);
    wait_valid(&site.acme(&[names]));
    assert_eq!(site.pebble.issued(), 1);
}

#[test]
fn by_tls_alpn_01_for_a_name_and_for_an_address() {
    let Some(site) = Site::new(ChallengeKind::TlsAlpn01) else { return };
    let names = &["example.org", "127.0.0.1"];
    let acme = site.acme(&[names]);
    wait_valid(&acme);
    let identity = identity(&acme, names);
    assert!(names.iter().all(|name| identity.names().contains(&(*name).to_owned())), "{:?}", identity.names());
}

#[test]
fn by_dns_01_for_a_wildcard_and_the_name_itself() {
    let Some(mut site) = Site::new(ChallengeKind::Dns01) else { return };
    site.settings.dns_command = Some(site.dns_command("true"));
    let names = &["*.example.org", "example.org"];
    let acme = site.acme(&[names]);
    wait_valid(&acme);
    let (_, certificates) = served(&acme, names);
    assert!(certificates.has("example.org") && certificates.has("any.example.org"));
    let calls = site.dns_calls();
    for (task, count) in [("set", 2), ("clear", 2)] {
        let call = format!("{task} _acme-challenge.example.org");
        assert_eq!(calls.iter().filter(|made| **made == call).count(), count, "{calls:?}");
    }
    assert_eq!(site.dns_records(), "");
}

#[test]
fn each_set_of_names_gets_its_own_and_one_that_fails_holds_up_no_other() {
    let Some(site) = Site::new(ChallengeKind::Http01) else { return };
    let acme = site.acme(&[&["blocked.example"], &["a.example.org"], &["b.example.org"]]);
    let status = wait_failing(&acme, 1);
    assert!(status.error.as_ref().unwrap().contains("blocked.example"), "{status:?}");
    let is_valid = |name: &str| acme.files(&set(&[name])).certificate.exists();
    crate::site::wait(&acme, "both there", |_| is_valid("a.example.org") && is_valid("b.example.org"));
    assert!(!is_valid("blocked.example"));
}

#[test]
fn by_a_profile_whose_certificates_live_six_days() {
    let Some(mut site) = Site::new(ChallengeKind::Http01) else { return };
    site.settings.profile = Some("shortlived".to_owned());
    let acme = site.acme(&[&["example.org"]]);
    let status = wait_valid(&acme);
    let left = status.not_after.unwrap().duration_since(site.now()).unwrap();
    assert!(left > 5 * DAY && left < 6 * DAY + HOUR, "{left:?}");
    // The authority suggests a time about 4 days on, a day before or after.
    let until = status.next.unwrap().duration_since(site.now()).unwrap();
    assert!(until > 2 * DAY && until < 5 * DAY + HOUR, "{until:?}");

    site.settings.profile = Some("unheard-of".to_owned());
    site.settings.folder = site.settings.folder.join("other");
    let status = wait_failing(&site.acme(&[&["example.org"]]), 1);
    assert!(status.error.as_ref().unwrap().contains("unheard-of"), "{status:?}");
}

#[test]
fn by_an_account_that_the_operator_has_otherwise() {
    let key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let more = json!({ "externalAccountBindingRequired": true, "externalAccountMACKeys": { "kid-1": key } });
    let Some(mut site) = Site::with(ChallengeKind::Http01, &more) else { return };
    let status = wait_failing(&site.acme(&[&["example.org"]]), 1);
    assert!(status.error.as_ref().unwrap().contains("externalAccountRequired"), "{status:?}");
    site.settings.external_account = Some(ExternalAccount { id: "kid-1".to_owned(), key: key.to_owned() });
    site.step(HOUR);
    wait_valid(&site.acme(&[&["example.org"]]));
}

#[test]
fn wrong_settings_are_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = eyewall_tls::acme::AcmeSettings::new(folder.path().join("state"));
    let clock = Arc::new(eyewall_tls::clock::SystemClock);
    let start = |settings: &eyewall_tls::acme::AcmeSettings, name: &str| {
        Acme::start(settings.clone(), &[set(&[name])], clock.clone()).unwrap_err().to_string()
    };
    assert!(start(&settings, "*.example.org").contains("dns-01"));
    settings.directory = "http://ca.example".to_owned();
    assert!(start(&settings, "example.org").contains("by https"));
    assert!(!folder.path().join("state").exists());
    assert_eq!(SetState::default(), SetState::Waiting);
}
