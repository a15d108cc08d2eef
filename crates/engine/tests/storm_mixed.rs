//! The mixed storm runs over four volumes at once: a small one, one on the disk, one that erases, and one with a
//! tier. Processes get, hold, put, stream, follow, fill, count, touch, purge and resize, with clocks that differ.
//! Meanwhile others of them are killed, stopped and sent away. No byte is ever wrong. Nothing is found that was
//! overwritten, removed or purged before, or had expired. Nobody fills what somebody else is filling. The file keeps
//! its size, and nothing is lost when all is over.
//!
//! It runs for a fixed number of rounds, or for `EYEWALL_MIXED_SECONDS` seconds (`make soak`, part `mixed`). It
//! prints its seed; `EYEWALL_MIXED_SEED` sets one. The seed decides what is tried, but not how the processes meet.

#![cfg(test)]

mod anatomy;
mod common;
mod mixed;

use std::fmt::Display;
use std::time::{Duration, SystemTime};

use common::play;
use eyewall::seams;
use mixed::ground::{LONGEST, TALLIES};
use mixed::weather::{Length, Storm};
use mixed::{SITES, aftermath, worker};

const ROUNDS: u64 = 40;

#[test]
fn child() {
    play(&[("worker", worker::work)]);
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn everything_at_once_gives_nothing_wrong() {
    let seconds = number("EYEWALL_MIXED_SECONDS");
    if seconds.is_none() && std::env::var_os("EYEWALL_SOAK").is_some() {
        println!("the mixed storm is a part of its own: EYEWALL_MIXED_SECONDS says for how long");
        return;
    }
    let length = seconds.map_or(Length::Rounds(ROUNDS), |seconds| Length::Time(Duration::from_secs(seconds)));
    let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let seed = number("EYEWALL_MIXED_SEED").unwrap_or(if seconds.is_some() { since_1970 } else { 1 });
    println!("seed {seed}");
    seams::ignore_waiting();
    let mut storms: Vec<Storm> = (0..SITES.len()).map(|site| Storm::new(site, seed)).collect();
    std::thread::scope(|scope| {
        let raging: Vec<_> = storms.iter_mut().map(|storm| scope.spawn(move || storm.rage(length))).collect();
        // Joined to their very ends: a thread gives its slots back after the last line of its closure.
        for storm in raging {
            storm.join().unwrap();
        }
    });
    print_counts(&storms);
    aftermath::let_time_pass();
    storms.into_iter().for_each(aftermath::survey);
}

fn print_counts(storms: &[Storm]) {
    print_row("", storms.iter().map(|storm| storm.site.name), "all");
    for (number, text) in TALLIES.iter().enumerate() {
        let counts: Vec<u64> = storms.iter().map(|storm| storm.ground.tally(number)).collect();
        print_row(text, counts.iter(), counts.iter().sum::<u64>());
    }
    for (number, text) in LONGEST.iter().enumerate() {
        let longest: Vec<f64> = storms.iter().map(|storm| storm.ground.longest_ms(number)).collect();
        let all = longest.iter().copied().fold(0.0, f64::max);
        print_row(&format!("{text}, ms"), longest.iter(), all);
    }
}

fn print_row(text: &str, counts: impl Iterator<Item = impl Display>, all: impl Display) {
    print!("{text:<36}");
    counts.for_each(|count| print!("{count:>12}"));
    println!("{all:>12}");
}
