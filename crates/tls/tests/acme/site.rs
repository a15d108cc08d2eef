//! A site that wants certificates: an authority, a state folder, and a server that answers.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use eyewall_tls::acme::{Acme, AcmeSettings, ChallengeKind, Challenges, SetState, SetStatus};
use eyewall_tls::clock::{Clock as _, SteppedClock};
use eyewall_tls::{Certificates, HostFiles, Identity, Watched};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::answering::Answering;
use crate::pebble::{PATIENCE, Pebble, program};

pub(crate) const HOUR: Duration = Duration::from_hours(1);
pub(crate) const DAY: Duration = Duration::from_hours(24);

pub(crate) struct Site {
    pub(crate) pebble: Pebble,
    pub(crate) settings: AcmeSettings,
    pub(crate) clock: Arc<SteppedClock>,
    folder: TempDir,
    /// Who answers at port 80 just now.
    answers: Arc<Mutex<Vec<Arc<Challenges>>>>,
    _servers: [Answering; 3],
}

impl Site {
    /// `None` where there is no Pebble. The server answers at port 443 only in a site of TLS-ALPN-01, and else at port 80.
    pub(crate) fn new(kind: ChallengeKind) -> Option<Self> {
        Self::with(kind, &json!({}))
    }

    /// The same with settings of Pebble.
    pub(crate) fn with(kind: ChallengeKind, more: &Value) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().unwrap();
        let records = folder.path().join("records");
        std::fs::create_dir(&records).unwrap();
        let answers: Arc<Mutex<Vec<Arc<Challenges>>>> = Arc::default();
        let (http, dns) = (Answering::http(reader(&answers)), Answering::dns(records));
        // Made before there are challenges: a table of its own for each.
        let told = reader(&answers);
        let tls = Answering::tcp(move |stream| {
            for challenges in told() {
                crate::answering::shake(&stream, Arc::new(Certificates::new(Some(challenges))));
            }
        });
        let pebble = Pebble::start(&program, http.port(), tls.port(), dns.address(), more);
        let mut settings = AcmeSettings::new(folder.path().join("state"));
        settings.directory = pebble.directory();
        settings.roots = Some(pebble.roots());
        settings.contacts = vec!["operator@example.org".to_owned()];
        settings.challenges = vec![kind];
        let clock = Arc::new(SteppedClock::new(SystemTime::now()));
        let site = Self { pebble, settings, clock, folder, answers, _servers: [http, tls, dns] };
        Some(site)
    }

    /// A command that sets and clears TXT records of this site's DNS server, and logs its calls.
    pub(crate) fn dns_command(&self) -> PathBuf {
        let path = self.folder.path().join("dns-command");
        let text = r#"#!/bin/sh
set -eu
cd "$(dirname "$0")"
echo "$1 $2" >> calls
case $1 in
    set) echo "$3" >> "records/$2" ;;
    clear) grep -vx -e "$3" "records/$2" > "records/new" || true; mv "records/new" "records/$2" ;;
esac
"#;
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    /// What the command was called for.
    pub(crate) fn dns_calls(&self) -> Vec<String> {
        let calls = std::fs::read_to_string(self.folder.path().join("calls")).unwrap();
        calls.lines().map(ToOwned::to_owned).collect()
    }

    /// The records that are set.
    pub(crate) fn dns_records(&self) -> String {
        let records = std::fs::read_dir(self.folder.path().join("records")).unwrap();
        records.map(|record| std::fs::read_to_string(record.unwrap().path()).unwrap()).collect()
    }

    /// A process that gets certificates for sets of names, and whose server answers.
    pub(crate) fn acme(&self, sets: &[&[&str]]) -> Acme {
        let sets: Vec<Vec<String>> = sets.iter().map(|names| set(names)).collect();
        let acme = Acme::start(self.settings.clone(), &sets, self.clock.clone()).unwrap();
        *self.answers.lock().unwrap() = vec![acme.challenges().clone()];
        acme
    }

    /// No server answers from now on.
    pub(crate) fn be_silent(&self) {
        self.answers.lock().unwrap().clear();
    }

    /// Time goes on by this much.
    pub(crate) fn step(&self, by: Duration) {
        self.clock.step(by);
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.clock.now()
    }
}

fn reader(answers: &Arc<Mutex<Vec<Arc<Challenges>>>>) -> impl Fn() -> Vec<Arc<Challenges>> + Send + 'static {
    let answers = answers.clone();
    move || answers.lock().unwrap().clone()
}

pub(crate) fn set(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// Waits until the first set is as wanted, and gives its status.
pub(crate) fn wait(acme: &Acme, what: &str, is_so: impl Fn(&SetStatus) -> bool) -> SetStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = acme.status().swap_remove(0);
        if is_so(&status) {
            return status;
        }
        assert!(Instant::now() < deadline, "not {what}: {status:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for a certificate.
pub(crate) fn wait_valid(acme: &Acme) -> SetStatus {
    wait(acme, "valid", |status| status.state == SetState::Valid)
}

/// Waits for a failure that is at least the so many-th in a row.
pub(crate) fn wait_failing(acme: &Acme, failures: u32) -> SetStatus {
    wait(acme, "failing", |status| status.state == SetState::Failing && status.failures >= failures)
}

/// What is in the file of a set of names.
pub(crate) fn identity(acme: &Acme, names: &[&str]) -> Identity {
    Identity::load(&acme.files(&set(names))).unwrap()
}

/// The chain of a set of names.
pub(crate) fn chain(acme: &Acme, names: &[&str]) -> String {
    std::fs::read_to_string(acme.files(&set(names)).certificate).unwrap()
}

/// The table of a server that reads the file of a set of names.
pub(crate) fn served(acme: &Acme, names: &[&str]) -> (Watched, Certificates) {
    let certificates = Certificates::new(None);
    let files = HostFiles { hosts: Vec::new(), files: vec![acme.files(&set(names))], may_be_missing: true };
    let watched = Watched::open(vec![files]).unwrap();
    watched.publish(&certificates);
    (watched, certificates)
}
