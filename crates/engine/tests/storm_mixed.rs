//! The mixed storm: over four volumes at once (a small one, one on the disk, one that erases, one with a tier) processes get,
//! hold, put, stream, follow, fill, count and touch, purge and resize, with clocks that differ, while others of them are killed,
//! stopped and sent away. No byte is ever wrong; nothing is found that was overwritten, removed or purged before, or had ended;
//! nobody fills what somebody else is filling; the file keeps its size; and when all is over nothing is lost.
//!
//! It goes for a fixed number of rounds, or for as many seconds as `EYEWALL_MIXED_SECONDS` says (`make soak`, part `mixed`), with
//! a seed that it prints; `EYEWALL_MIXED_SEED` gives another. The seed gives what is tried; how the processes meet, it doesn't.

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
fn nothing_wrong_comes_of_all_of_it_at_once() {
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
        // To their very ends: a thread gives its slots back behind the last line of its closure.
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
