//! The replay alone, without the peers that take long to build: for tuning the eviction policy.

#![forbid(unsafe_code)]

use clap::Parser;
use eyewall_bench::error::Result;
use eyewall_bench::report;
use eyewall_bench::run::{Run, Settings};
use eyewall_bench::work::replay::{self, With};

#[derive(Debug, Parser)]
#[command(about = "Replays real traces through the engine and prints hit ratios")]
struct Arguments {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    with: With,
}

fn main() -> Result<()> {
    let Arguments { settings, with } = Arguments::parse();
    let mut run = Run::start(settings)?;
    replay::run(&mut run, &with)?;
    println!();
    for row in &run.record().rows {
        println!("{}", report::short(row));
    }
    Ok(())
}
