//! A site that wants certificates: an authority, a state folder, and a server that answers.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime};

use eyewall_tls::acme::{Acme, AcmeSettings, ChallengeKind, Challenges, SetState, SetStatus};
use eyewall_tls::clock::{Clock as _, SteppedClock};
use eyewall_tls::{Certificates, HostFiles, Identity, Watched};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::answering::{Answering, shake};
use crate::pebble::{PATIENCE, Pebble, program};

pub(crate) const HOUR: Duration = Duration::from_hours(1);
pub(crate) const DAY: Duration = Duration::from_hours(24);

/// The worker that answers the authority. Waits until one does.
#[derive(Default)]
struct Answers(Mutex<Answerer>, Condvar);

#[derive(Default)]
enum Answerer {
    #[default]
    Undecided,
    Nobody,
    Process(Arc<Challenges>),
}

impl Answers {
    fn decide(&self, answerer: Answerer) {
        *self.0.lock().unwrap() = answerer;
        self.1.notify_all();
    }

    fn wait(&self) -> Option<Arc<Challenges>> {
        let is_undecided = |answerer: &mut Answerer| matches!(answerer, Answerer::Undecided);
        match &*self.1.wait_while(self.0.lock().unwrap(), is_undecided).unwrap() {
            Answerer::Process(challenges) => Some(challenges.clone()),
            Answerer::Undecided | Answerer::Nobody => None,
        }
    }
}

pub(crate) struct Site {
    pub(crate) pebble: Pebble,
    pub(crate) settings: AcmeSettings,
    pub(crate) clock: Arc<SteppedClock>,
    folder: TempDir,
    answers: Arc<Answers>,
    _servers: [Answering; 3],
}

impl Site {
    /// `None` where there is no Pebble.
    pub(crate) fn new(kind: ChallengeKind) -> Option<Self> {
        Self::with(kind, &json!({}))
    }

    /// The same with settings of Pebble.
    pub(crate) fn with(kind: ChallengeKind, more: &Value) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().unwrap();
        let records = folder.path().join("records");
        std::fs::create_dir(&records).unwrap();
        let answers: Arc<Answers> = Arc::default();
        let [of_http, of_tls] = [0, 1].map(|_| answers.clone());
        let http = Answering::http(move || of_http.wait());
        let tls = Answering::tcp(move |stream| {
            if let Some(challenges) = of_tls.wait() {
                shake(&stream, Arc::new(Certificates::new(Some(challenges))));
            }
        });
        let dns = Answering::dns(records);
        let pebble = Pebble::start(&program, http.port(), tls.port(), dns.address(), more);
        let mut settings = AcmeSettings::new(folder.path().join("state"));
        settings.directory = pebble.directory();
        settings.roots = Some(pebble.roots());
        settings.contacts = vec!["operator@example.org".to_owned()];
        settings.challenges = vec![kind];
        let clock = Arc::new(SteppedClock::new(SystemTime::now()));
        Some(Self { pebble, settings, clock, folder, answers, _servers: [http, tls, dns] })
    }

    /// A command that sets and clears TXT records of this site's DNS server, and logs its calls. After a record is set it does this.
    pub(crate) fn dns_command(&self, then: &str) -> PathBuf {
        let path = self.folder.path().join("dns-command");
        let text = r#"#!/bin/sh
set -eu
cd "$(dirname "$0")"
echo "$1 $2" >> calls
case $1 in
    set) echo "$3" >> "records/$2"; exec THEN ;;
    clear) grep -vx -e "$3" "records/$2" > "records/new" || true; mv "records/new" "records/$2" ;;
esac
"#;
        std::fs::write(&path, text.replace("THEN", then)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    /// What the command was called for.
    pub(crate) fn dns_calls(&self) -> Vec<String> {
        let calls = std::fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default();
        calls.lines().map(ToOwned::to_owned).collect()
    }

    /// The records that are set.
    pub(crate) fn dns_records(&self) -> String {
        let records = std::fs::read_dir(self.folder.path().join("records")).unwrap();
        records.map(|record| std::fs::read_to_string(record.unwrap().path()).unwrap()).collect()
    }

    /// A process that gets certificates for sets of names, and whose server answers.
    pub(crate) fn acme(&self, sets: &[&[&str]]) -> Acme {
        let acme = self.start(sets);
        self.answers.decide(Answerer::Process(acme.challenges().clone()));
        acme
    }

    /// A process that gets certificates. Its server answers no authority.
    pub(crate) fn silent_acme(&self, sets: &[&[&str]]) -> Acme {
        self.answers.decide(Answerer::Nobody);
        self.start(sets)
    }

    /// A process that gets certificates. Its server is slow to answer the authority: it waits until there is another process.
    pub(crate) fn slow_acme(&self, sets: &[&[&str]]) -> Acme {
        self.answers.decide(Answerer::Undecided);
        self.start(sets)
    }

    fn start(&self, sets: &[&[&str]]) -> Acme {
        let sets: Vec<Vec<String>> = sets.iter().map(|names| set(names)).collect();
        Acme::start(self.settings.clone(), &sets, self.clock.clone()).unwrap()
    }

    /// Time goes on by this much.
    pub(crate) fn step(&self, by: Duration) {
        self.clock.step(by);
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.clock.now()
    }
}

impl Drop for Site {
    /// A server that still waits for a process has to end.
    fn drop(&mut self) {
        self.answers.decide(Answerer::Nobody);
    }
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

/// The content of the file of a set of names.
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
