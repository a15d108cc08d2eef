//! Time goes on, and certificates are renewed before they end.

use eyewall_tls::acme::ChallengeKind;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::site::{DAY, HOUR, Site, chain, identity, served, wait, wait_failing, wait_valid};

#[test]
fn at_two_thirds_of_the_life_where_the_authority_suggests_no_time() {
    let Some(site) = Site::new(ChallengeKind::Http01) else { return };
    let names = &["example.org"];
    let acme = site.acme(&[names]);
    wait_valid(&acme);
    let first = chain(&acme, names);
    drop(acme);

    site.pebble.suggest(&first, "not JSON");
    let acme = site.acme(&[names]);
    let status = wait_valid(&acme);
    let identity = identity(&acme, names);
    let life = identity.not_after().duration_since(identity.not_before()).unwrap();
    assert_eq!(status.next, Some(identity.not_after() - life / 3));
    let (mut watched, certificates) = served(&acme, names);

    site.step(59 * DAY);
    assert!(watched.look(&certificates).is_empty());
    site.step(2 * DAY);
    wait(&acme, "renewed", |_| chain(&acme, names) != first);
    assert_eq!(watched.look(&certificates).len(), 1);
    assert!(certificates.has("example.org"));
    assert_eq!(site.pebble.issued(), 2);
    // Pebble's clock didn't go on, so that the new certificate looks old. That makes no loop.
    wait_valid(&acme);
    assert_eq!(site.pebble.issued(), 2);
}

#[test]
fn when_the_authority_suggests_it_and_the_order_says_what_it_replaces() {
    let Some(site) = Site::new(ChallengeKind::TlsAlpn01) else { return };
    let names = &["example.org"];
    let acme = site.acme(&[names]);
    wait_valid(&acme);
    let first = chain(&acme, names);
    // Pebble 2.10 doesn't find a certificate whose serial number begins with a zero byte. The order then replaces nothing.
    let certificate = identity(&acme, names).certified().cert[0].clone();
    let is_found = X509Certificate::from_der(&certificate).unwrap().1.raw_serial()[0] != 0;
    // The certificate is going to be revoked.
    let window = r#"{"suggestedWindow": {"start": "2020-01-01T00:00:00Z", "end": "2020-01-02T00:00:00Z"}}"#;
    site.pebble.suggest(&first, window);
    // The authority said to ask again in six hours.
    site.step(5 * HOUR);
    site.step(HOUR + HOUR / 60);
    wait(&acme, "renewed", |_| chain(&acme, names) != first);
    assert_eq!(site.pebble.count("is a replacement of"), usize::from(is_found));
    assert_eq!(site.pebble.issued(), 2);
}

#[test]
fn an_authority_that_is_gone_takes_no_certificate_away() {
    let Some(mut site) = Site::new(ChallengeKind::Http01) else { return };
    let names = &["example.org"];
    let acme = site.acme(&[names]);
    wait_valid(&acme);
    let first = chain(&acme, names);
    let (mut watched, certificates) = served(&acme, names);
    site.pebble.stop();
    site.step(70 * DAY);
    let status = wait_failing(&acme, 1);
    assert!(status.error.as_ref().unwrap().contains("can't reach 127.0.0.1"), "{status:?}");
    assert_eq!(status.not_after, Some(identity(&acme, names).not_after()));
    let next = status.next.unwrap().duration_since(site.now()).unwrap();
    // A minute, and a quarter of that more or less; in whole seconds.
    assert!((44..=75).contains(&next.as_secs()), "{next:?}");
    assert_eq!(chain(&acme, names), first);
    assert!(watched.look(&certificates).is_empty() && certificates.has("example.org"));
}
