//! Keys that processes share, and how they follow one another.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::clock::{SteppedClock, of_unix_seconds};

const START: u64 = 1_800_000_000;
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// A folder with a file of keys, and a clock.
struct Shared {
    folder: TempDir,
    clock: Arc<SteppedClock>,
}

impl Shared {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), clock: Arc::new(SteppedClock::new(of_unix_seconds(START))) }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("tickets")
    }

    /// What a process has.
    fn process(&self) -> Tickets {
        Tickets::open(&self.path(), self.clock.clone()).unwrap()
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }

    fn starts(&self) -> Vec<u64> {
        self.text().lines().map(|line| line.split_once(' ').unwrap().0.parse().unwrap()).collect()
    }
}

fn name(ticket: &[u8]) -> &[u8] {
    &ticket[..NAME_BYTES]
}

#[test]
fn processes_read_each_others_tickets_and_a_restart_reads_those_of_before() {
    let shared = Shared::new();
    let (one, other) = (shared.process(), shared.process());
    let ticket = one.encrypt(b"a session").unwrap();
    assert_eq!(other.decrypt(&ticket).as_deref(), Some(&b"a session"[..]));
    drop((one, other));
    assert_eq!(shared.process().decrypt(&ticket).as_deref(), Some(&b"a session"[..]));
    assert_eq!(std::fs::metadata(shared.path()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn no_ticket_is_as_another_and_a_changed_one_is_not_read() {
    let shared = Shared::new();
    let tickets = shared.process();
    let ticket = tickets.encrypt(b"a session").unwrap();
    assert_ne!(tickets.encrypt(b"a session").unwrap(), ticket);
    for place in 0..ticket.len() {
        let mut changed = ticket.clone();
        changed[place] ^= 1;
        assert_eq!(tickets.decrypt(&changed), None, "byte {place}");
        assert_eq!(tickets.decrypt(&ticket[..place]), None, "{place} bytes");
    }
    assert_eq!(Shared::new().process().decrypt(&ticket), None);
}

#[test]
fn a_new_key_stands_in_the_file_before_it_is_used() {
    let shared = Shared::new();
    let (one, other) = (shared.process(), shared.process());
    let first = one.encrypt(b"first").unwrap();
    shared.clock.step(12 * HOUR);
    assert!(one.look().unwrap());
    assert_eq!(shared.starts(), [START + PERIOD_SECONDS + LEAD_SECONDS, START]);
    assert!(!one.look().unwrap());
    // Not used as yet, since others may not know it.
    assert_eq!(name(&one.encrypt(b"second").unwrap()), name(&first));
    assert!(other.look().unwrap());
    shared.clock.step(MINUTE);
    let second = one.encrypt(b"second").unwrap();
    assert_ne!(name(&second), name(&first));
    assert_eq!(other.decrypt(&second).as_deref(), Some(&b"second"[..]));
    assert_eq!(other.decrypt(&first).as_deref(), Some(&b"first"[..]));
    assert_eq!(shared.starts().len(), 2);
}

#[test]
fn a_ticket_lives_a_day_and_its_key_is_gone_soon_after() {
    let shared = Shared::new();
    let tickets = shared.process();
    let first = shared.text();
    shared.clock.step(719 * MINUTE);
    let ticket = tickets.encrypt(b"late").unwrap();
    // The server's upkeep, every 30 seconds.
    for _ in 0..24 * 120 {
        shared.clock.step(MINUTE / 2);
        tickets.look().unwrap();
        assert!(tickets.decrypt(&ticket).is_some());
    }
    for _ in 0..120 {
        shared.clock.step(MINUTE / 2);
        tickets.look().unwrap();
    }
    assert_eq!(tickets.decrypt(&ticket), None);
    assert!(!shared.text().contains(first.trim_end()) && shared.starts().len() <= KEYS);
    assert!(tickets.keys.load().len() <= KEYS);
}

#[test]
fn after_days_without_a_server_the_next_begins_with_a_new_key_at_once() {
    let shared = Shared::new();
    let ticket = shared.process().encrypt(b"old").unwrap();
    shared.clock.step(72 * HOUR);
    let tickets = shared.process();
    assert_eq!(shared.starts(), [START + 72 * 3600]);
    assert_eq!(tickets.decrypt(&ticket), None);
    assert!(tickets.encrypt(b"new").is_some());
}

#[test]
fn one_of_many_processes_makes_the_new_key() {
    let shared = Shared::new();
    let processes: Vec<Tickets> = (0..8).map(|_| shared.process()).collect();
    shared.clock.step(13 * HOUR);
    std::thread::scope(|scope| {
        for tickets in &processes {
            scope.spawn(|| tickets.look().unwrap());
        }
    });
    assert_eq!(shared.starts().len(), 2);
    for tickets in &processes {
        tickets.look().unwrap();
    }
    shared.clock.step(MINUTE);
    let ticket = processes[0].encrypt(b"a session").unwrap();
    assert!(processes.iter().all(|tickets| tickets.decrypt(&ticket).is_some()));
}

#[test]
fn many_processes_that_start_at_once_make_one_file() {
    let shared = Shared::new();
    let processes: Vec<Tickets> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..8).map(|_| scope.spawn(|| shared.process())).collect();
        starting.into_iter().map(|started| started.join().unwrap()).collect()
    });
    let ticket = processes[0].encrypt(b"a session").unwrap();
    assert!(processes.iter().all(|tickets| tickets.decrypt(&ticket).is_some()));
}

#[test]
fn a_broken_file_is_refused_at_the_start_and_reported_once_later() {
    let shared = Shared::new();
    let tickets = shared.process();
    let ticket = tickets.encrypt(b"a session").unwrap();
    let key = shared.text();
    for text in
        ["", "\n", "1800000000\n", "1800000000 00ff\n", "soon 00\n", &key[..key.len() - 2], &key.replace(' ', " g")]
    {
        file::replace(&shared.path(), text.as_bytes()).unwrap();
        let error = Tickets::open(&shared.path(), shared.clock.clone()).unwrap_err();
        assert!(matches!(error, TicketError::Invalid { line: 1, .. }), "{text:?}: {error}");
        assert!(error.to_string().contains("delete the file"));
    }
    assert!(matches!(tickets.look(), Err(TicketError::Invalid { .. })));
    assert!(!tickets.look().unwrap());
    // The keys in use go on.
    assert!(tickets.decrypt(&ticket).is_some() && tickets.encrypt(b"more").is_some());
    file::replace(&shared.path(), key.as_bytes()).unwrap();
    assert!(tickets.look().unwrap());
}

#[test]
fn a_file_that_was_deleted_is_made_anew_with_another_key() {
    let shared = Shared::new();
    let (one, other) = (shared.process(), shared.process());
    let ticket = one.encrypt(b"a session").unwrap();
    std::fs::remove_file(shared.path()).unwrap();
    assert!(one.look().unwrap() && other.look().unwrap());
    assert!(one.decrypt(&ticket).is_none() && other.decrypt(&ticket).is_none());
    assert!(other.decrypt(&one.encrypt(b"another").unwrap()).is_some());
    // The folder went, too.
    std::fs::remove_dir_all(shared.folder.path()).unwrap();
    assert!(matches!(one.look(), Err(TicketError::File { .. })));
    assert!(!one.look().unwrap() && one.encrypt(b"more").is_some());
}

#[test]
fn a_file_that_others_may_read_is_refused() {
    let shared = Shared::new();
    drop(shared.process());
    for mode in [0o604, 0o640, 0o602] {
        std::fs::set_permissions(shared.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        let error = Tickets::open(&shared.path(), shared.clock.clone()).unwrap_err();
        assert!(matches!(error, TicketError::OpenToOthers { .. }), "{error}");
    }
}

#[test]
fn a_key_that_is_too_old_makes_no_tickets() {
    let shared = Shared::new();
    let tickets = shared.process();
    shared.clock.step(36 * HOUR);
    // Nobody looked meanwhile.
    assert_eq!(tickets.encrypt(b"a session"), None);
    tickets.look().unwrap();
    assert!(tickets.encrypt(b"a session").is_some());
}

#[test]
fn a_clock_that_was_set_back_does_not_end_tickets() {
    let shared = Shared::new();
    let tickets = shared.process();
    shared.clock.set(of_unix_seconds(START - 3600));
    let ticket = tickets.encrypt(b"a session").unwrap();
    assert!(tickets.decrypt(&ticket).is_some());
    // And a key of a clock that was a year ahead is no reason to make none.
    shared.clock.set(of_unix_seconds(START - 365 * 24 * 3600));
    assert!(tickets.look().unwrap());
    assert!(tickets.encrypt(b"a session").is_some());
}

#[test]
fn keys_in_memory_follow_one_another_too() {
    let clock = Arc::new(SteppedClock::new(of_unix_seconds(START)));
    let tickets = Tickets::in_memory(clock.clone()).unwrap();
    let first = tickets.encrypt(b"first").unwrap();
    assert!(!tickets.look().unwrap());
    clock.step(12 * HOUR);
    assert!(tickets.look().unwrap());
    assert_ne!(name(&tickets.encrypt(b"second").unwrap()), name(&first));
    assert!(tickets.decrypt(&first).is_some());
    clock.step(24 * HOUR);
    assert!(tickets.look().unwrap());
    assert_eq!(tickets.decrypt(&first), None);
    assert_eq!(tickets.keys.load().len(), 2);
}
