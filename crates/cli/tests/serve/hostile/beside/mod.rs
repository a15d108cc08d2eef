//! A well-behaved client beside an attack: how long its hits take with the attack and without it.
//!
//! Only with `EYEWALL_SOAK`; it takes a quarter of an hour. It asserts no times: it prints a table, and a person judges it. Windows
//! without and with the attack alternate, so that other work on the machine hits both.
//!
//! Client, attacker and server share the cores. So the attacker sends at a fixed rate, from pieces that it has made before, and the
//! table has the cores that the clients, with attacker and origin, and the server used during the attack. `EYEWALL_ATTACK_FACTOR` multiplies the rate.
//! `EYEWALL_ATTACKS` names the attacks to run, separated by commas.

mod attacks;
mod client;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::peak::Peak;
use super::way::{Reached, Way};
use crate::common::origin::{Origin, respond};
use crate::common::server::anonymous_bytes;
use attacks::{ATTACKS, Attack, Attacker};
use client::Latencies;

/// The length of the page.
const PAGE: usize = 9689;
const PAIRS: usize = 5;
const WINDOW: Duration = Duration::from_secs(3);
/// From the beginning of an attack to the window with it.
const LEAD: Duration = Duration::from_secs(1);
/// The clock of the kernel for `/proc` (`USER_HZ`).
const TICKS: f64 = 100.0;

/// What an attack has done.
struct Row {
    attack: &'static Attack,
    way: Way,
    without: Latencies,
    with: Latencies,
    /// Bytes of memory.
    peak: u64,
    /// Of this process, and of the server.
    cores: [f64; 2],
    pieces: u64,
    connections: u64,
}

/// What all threads of an attack count.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) has_ended: AtomicBool,
    pieces: AtomicU64,
    connections: AtomicU64,
    failures: AtomicU64,
}

fn origin() -> Origin {
    Origin::raw(|asked, stream| match asked.target.as_str() {
        "/large" => {
            let piece = [b'x'; 16 << 10];
            respond(stream, 200, "Cache-Control: no-store", 1024 * piece.len(), &[]);
            let _ = (0..1024).try_for_each(|_| stream.write_all(&piece));
        }
        "/upload" => drop(std::io::copy(stream, &mut std::io::sink())),
        _ => respond(stream, 200, "Cache-Control: max-age=3600", PAGE, &[b'x'; PAGE]),
    })
}

/// Runs an attack while the function measures, and returns what it returns.
fn attacked<T>(reached: &Reached, attack: &Attack, counts: &Counts, factor: f64, measure: impl FnOnce() -> T) -> T {
    counts.has_ended.store(false, Ordering::Relaxed);
    thread::scope(|scope| {
        for number in 0..attack.connections {
            scope.spawn(move || {
                let rate = attack.pieces_each * factor;
                let mut attacker = Attacker::new(reached, attack, number);
                let pace = Duration::from_secs_f64(1.0 / rate);
                // The connections take turns: together they would be a burst of ten times the size.
                let mut due = Instant::now() + pace * number / attack.connections;
                thread::sleep(due.saturating_duration_since(Instant::now()));
                while !counts.has_ended.load(Ordering::Relaxed) {
                    match attacker.strike() {
                        Ok(has_connected) => {
                            counts.pieces.fetch_add(1, Ordering::Relaxed);
                            counts.connections.fetch_add(u64::from(has_connected), Ordering::Relaxed);
                        }
                        Err(_) => drop(counts.failures.fetch_add(1, Ordering::Relaxed)),
                    }
                    // It doesn't catch up: its rate is at most the given one.
                    due = (due + pace).max(Instant::now());
                    thread::sleep(due.saturating_duration_since(Instant::now()).min(WINDOW));
                }
            });
        }
        thread::sleep(LEAD);
        let measured = measure();
        counts.has_ended.store(true, Ordering::Relaxed);
        measured
    })
}

/// Seconds of a core that a process has used: the server, or this one, which is client, attacker and origin.
fn core_seconds(process: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let rest = stat.rsplit_once(')').unwrap().1;
    rest.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap() / TICKS).sum()
}

fn run(attack: &'static Attack, way: Way, factor: f64) -> Row {
    let origin = origin();
    let site = format!("origins = [\"{}\"]\n", origin.url());
    let reached = Reached::new(way, "workers = 2\n", &site);
    reached.get_until_hit("/page");
    let process = reached.server.child.id();
    let (before, peak) = (anonymous_bytes(process), Peak::of(process));
    let (counts, mut without, mut with) = (Counts::default(), Latencies::default(), Latencies::default());
    let processes = [std::process::id(), process];
    let mut seconds = [0.0; 2];
    for _ in 0..PAIRS {
        without.measure(&reached, WINDOW);
        attacked(&reached, attack, &counts, factor, || {
            let begun = processes.map(core_seconds);
            with.measure(&reached, WINDOW);
            let ended = processes.map(core_seconds);
            seconds = [0, 1].map(|number| seconds[number] + ended[number] - begun[number]);
        });
    }
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (measured, attacking) = (WINDOW * PAIRS as u32, (WINDOW + LEAD) * PAIRS as u32);
    Row {
        attack,
        way,
        without,
        with,
        peak: peak.bytes().saturating_sub(before),
        cores: seconds.map(|seconds| seconds / measured.as_secs_f64()),
        pieces: count(&counts.pieces) / attacking.as_secs(),
        connections: count(&counts.connections) / attacking.as_secs(),
    }
}

impl Row {
    fn heading() -> &'static str {
        "| attack | way | p50, p99 without | p50, p99 with | p99 with / without | failed | memory | cores of clients, of server | sent a second: pieces, new connections |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    }

    fn text(&self) -> String {
        let both =
            |latencies: &Latencies| format!("{:.2}, {:.2} ms", latencies.quantile(0.5), latencies.quantile(0.99));
        let mut text =
            format!("| {} | {} | {} | {} |", self.attack.name, self.way.word(), both(&self.without), both(&self.with));
        let ratio = self.with.quantile(0.99) / self.without.quantile(0.99);
        let failed = self.without.failed + self.with.failed;
        let mebibytes = self.peak as f64 / f64::from(1 << 20);
        let _ =
            write!(text, " {ratio:.2} | {failed} | {mebibytes:.1} MiB | {:.2}, {:.2} |", self.cores[0], self.cores[1]);
        let _ = writeln!(text, " {}, {} |", self.pieces, self.connections);
        text
    }
}

#[test]
fn hits_are_answered_in_time() {
    if std::env::var_os("EYEWALL_SOAK").is_none() {
        return;
    }
    let factor = std::env::var("EYEWALL_ATTACK_FACTOR").map_or(1.0, |factor| factor.parse().expect("a number"));
    let chosen = std::env::var("EYEWALL_ATTACKS").unwrap_or_default();
    let is_chosen = |attack: &&Attack| chosen.is_empty() || chosen.split(',').any(|name| name.trim() == attack.name);
    let mut table = Row::heading().to_owned();
    for attack in ATTACKS.iter().filter(is_chosen) {
        for way in Way::BOTH {
            let row = run(attack, way, factor);
            // Each at once, so that a run that is cut off has something to show.
            println!("{}", row.text().trim_end());
            assert_eq!(row.without.failed, 0, "the client fails without the attack");
            table += &row.text();
        }
    }
    println!(
        "\n{} requests a second of {PAGE} bytes, {PAIRS} pairs of windows of {WINDOW:?}, factor {factor}\n",
        client::RATE
    );
    println!("{table}");
}
