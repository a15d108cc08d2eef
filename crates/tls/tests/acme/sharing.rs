//! Several processes have one state folder: one of them works, and all have what comes of it.

use std::time::{Duration, Instant};

use eyewall_tls::acme::{Acme, ChallengeKind, SetState};

use crate::pebble::PATIENCE;
use crate::site::{DAY, Site, chain, identity, wait, wait_valid};

#[test]
fn one_certificate_is_ordered_and_any_process_answers() {
    let Some(site) = Site::new(ChallengeKind::Http01) else { return };
    let names = &["example.org"];
    // The last one answers for all.
    let processes: Vec<_> = (0..4).map(|_| site.acme(&[names])).collect();
    let deadline = Instant::now() + PATIENCE;
    while !processes.iter().all(|acme| acme.status()[0].state == SetState::Valid) {
        assert!(Instant::now() < deadline, "{:?}", processes.iter().map(Acme::status).collect::<Vec<_>>());
        std::thread::sleep(Duration::from_millis(5));
        // A worker without the lock looks again later.
        site.step(Duration::from_secs(1));
    }
    assert_eq!((site.pebble.issued(), site.pebble.count("There are now 1 accounts in memory")), (1, 1));
    assert_eq!(site.pebble.count("There are now 2 accounts in memory"), 0);
    let not_after = identity(&processes[0], names).not_after();
    assert!(processes.iter().all(|acme| acme.status()[0].not_after == Some(not_after)));
}

#[test]
fn a_process_takes_up_what_another_renewed() {
    let Some(site) = Site::new(ChallengeKind::Http01) else { return };
    let names = &["example.org"];
    let one = site.acme(&[names]);
    wait_valid(&one);
    let first = chain(&one, names);
    let other = site.acme(&[names]);
    wait_valid(&other);
    drop(one);
    site.step(80 * DAY);
    wait(&other, "renewed", |_| chain(&other, names) != first);
    assert_eq!(site.pebble.issued(), 2);
}
