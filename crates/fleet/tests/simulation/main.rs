//! A fleet in a simulated network: no node answers from what was purged more than `max_blind` ago.
//!
//! Nodes answer from their volumes, ask the origin, and take responses from each other.
//!
//! Messages are lost, late, doubled and out of order. Nodes die between any two steps, keep their volume, and come back. Servers are
//! restarted, replaced and emptied. All of it follows from a seed, so that a failure can be repeated: `EYEWALL_FLEET_SEED` runs one seed,
//! `EYEWALL_FLEET_SEEDS` says how many to run.

#![expect(clippy::expect_used, reason = "a test may panic")]

mod cache;
mod dice;
mod node;
mod server;
mod world;

use dice::Dice;
use node::Rule;
use world::{Kind, Outcome, World};

/// How many seeds to run of each kind of log.
fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    match (number("EYEWALL_FLEET_SEED"), number("EYEWALL_FLEET_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count) => 0..count.unwrap_or(200),
    }
}

fn run(kind: Kind, broken: Option<Rule>, believes_durable: bool, seed: u64) -> Outcome {
    World::new(kind, broken, believes_durable, Dice::new(seed)).run()
}

/// Runs all seeds with what the operator should have configured, and checks that the runs were worth something.
fn check(kind: Kind) {
    let mut all = Outcome::default();
    for seed in seeds() {
        let outcome = run(kind, None, kind == Kind::Replicated, seed);
        assert_eq!(outcome.violation, None, "{kind:?}, seed {seed}");
        all.add(&outcome);
    }
    println!("{kind:?}: {all:?}");
    if seeds().end - seeds().start >= 100 {
        assert!(all.acknowledged > 1000 && all.hits > 10_000 && all.gaps > 100 && all.deaths > 50, "{all:?}");
        assert!(all.blind > 50 && all.takeovers > 50, "{all:?}");
        assert!(all.taken > 1000 && all.refused > 100, "{all:?}");
    }
}

#[test]
fn a_single_server_that_is_restarted_empty_or_whole_loses_no_purge() {
    check(Kind::Single);
}

#[test]
fn a_log_whose_replicas_acknowledge_loses_no_purge_though_the_old_server_lives_on() {
    check(Kind::Replicated);
}

#[test]
fn a_failover_that_loses_lines_loses_no_purge() {
    check(Kind::Lossy);
}

/// The simulation can fail: it finds out if the operator calls a log durable that is not.
#[test]
fn a_lossy_log_that_is_called_durable_is_found_out() {
    let is_broken = |seed| run(Kind::Lossy, None, true, seed).violation.is_some();
    assert!((0..400).any(is_broken), "no seed broke the promise");
}

/// The simulation needs each rule for responses of other nodes.
#[test]
fn without_one_of_the_rules_a_node_takes_what_was_purged() {
    for (rule, kind) in [
        (Rule::Judges, Kind::Replicated),
        (Rule::NotesFirst, Kind::Replicated),
        (Rule::AppliesOwn, Kind::Replicated),
        (Rule::NumbersAtStart, Kind::Replicated),
        (Rule::SameReign, Kind::Lossy),
    ] {
        let is_broken = |seed| run(kind, Some(rule), kind == Kind::Replicated, seed).violation.is_some();
        assert!((0..1000).any(is_broken), "{rule:?}: no seed broke the promise");
    }
}
