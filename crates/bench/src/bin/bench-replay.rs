//! The replay alone, without the peers that take long to build: for tuning the eviction policy.

#![forbid(unsafe_code)]

use clap::Parser;
use eyewall_bench::error::Result;
use eyewall_bench::report;
use eyewall_bench::run::{Run, Settings};
use eyewall_bench::work::replay;

#[derive(Debug, Parser)]
#[command(about = "Replays real traces through the engine and prints hit ratios")]
struct Arguments {
    #[command(flatten)]
    settings: Settings,
}

fn main() -> Result<()> {
    let mut run = Run::start(Arguments::parse().settings)?;
    replay::run(&mut run)?;
    println!();
    for row in &run.record().rows {
        println!("{}", report::short(row));
    }
    Ok(())
}
