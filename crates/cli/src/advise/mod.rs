//! `eyewall advise`: how large the volume should be, from an access log. `tools/advice.rs` asks a running server instead.
//!
//! ```text
//! input    bytes of the logs, in blocks of whole lines: one thread
//!   eyewall-access-log   parses lines: a crate of its own
//!     trace  its requests, thinned by key until they fit into memory
//!       sizes   which sizes are tried, and with how many of the keys
//!         replay  each through a volume of the engine: two threads
//!           estimate  the figures of the whole log, and their errors
//!             advice  the result: plot, svg
//! ```
//!
//! Each size is a real volume on the heap. So the replay has the engine's own eviction policy, and the costs that a
//! simulation would leave out: headers, the index, and the unused ends of rings.
//!
//! # What is absent
//! Time: nothing expires, and nothing is purged. A log doesn't show which responses the origin forbids to store.

mod advice;
mod estimate;
mod input;
mod plot;
mod progress;
mod replay;
mod sizes;
mod svg;
mod trace;

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use advice::{Advice, More};
use estimate::{Point, Tally};
use eyewall_access_log::{Format, Line, lines};
use input::Block;
use progress::Progress;
use trace::{Collector, Trace};

use crate::args::Advise;
use crate::{Error, Outcome, output};

/// The factors by which a larger volume is compared.
const FACTORS: [f64; 2] = [1.5, 2.0];
/// Blocks that may wait for the parser.
const BLOCKS_WAITING: usize = 4;

pub(crate) fn run(advise: &Advise) -> Result<Outcome, Error> {
    if let Some(server) = &advise.server {
        return crate::tools::advice::run(server, advise);
    }
    let trace = read(&advise.logs, advise.format, advise.exact)?;
    let mut sizes = if advise.size.is_empty() { sizes::defaults(&trace) } else { advise.size.clone() };
    sizes.sort_unstable();
    sizes.dedup();
    check_memory(advise.exact, &sizes)?;
    let tallies = replay::replay_all(&trace, &sizes)?;
    let advice = advise_on(&trace, tallies, advise)?;
    if let Some(path) = &advise.svg {
        let failed = |source| Error::File { path: path.clone(), source };
        std::fs::write(path, svg::svg(&advice)).map_err(failed)?;
    }
    let text = if advise.json {
        // Numbers and strings always have a JSON form.
        serde_json::to_string(&advice).unwrap_or_default() + "\n"
    } else {
        advice::text(&advice)
    };
    output::text_to_stdout(|stdout| std::io::Write::write_all(stdout, text.as_bytes()))?;
    Ok(Outcome::Done)
}

/// Reads all logs in their order: one thread for the bytes, this one for the lines.
fn read(paths: &[PathBuf], format: Option<Format>, is_exact: bool) -> Result<Trace, Error> {
    let mut collector = Collector::new(is_exact);
    let progress = &Progress::new("reading", input::bytes(paths));
    for path in paths {
        let (sender, receiver) = mpsc::sync_channel(BLOCKS_WAITING);
        thread::scope(|scope| {
            let reader = scope.spawn(move || input::read(path, progress, |block| sender.send(block).is_ok()));
            let parsed = parse(path, &receiver, format, &mut collector);
            // The reader stops at its next block when this receiver is dropped.
            drop(receiver);
            let was_read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            parsed.and(was_read)
        })?;
    }
    if collector.totals.requests == 0 {
        let from = paths.iter().map(|path| input::name(path)).collect::<Vec<_>>().join(", ");
        return Err(Error::NothingCounts { from, lines: collector.totals.lines });
    }
    Ok(collector.finish())
}

/// Parses the requests of one log.
fn parse(
    path: &Path,
    blocks: &mpsc::Receiver<Block>,
    mut format: Option<Format>,
    collector: &mut Collector,
) -> Result<(), Error> {
    let mut scratch = Vec::new();
    let (lines_before, bad_before) = (collector.totals.lines, collector.totals.bad_lines);
    for block in blocks {
        collector.totals.lines += block.overlong;
        collector.totals.bad_lines += block.overlong;
        format = format.or_else(|| Format::detect(&block.text));
        for line in lines(&block.text) {
            collector.totals.lines += 1;
            let said = format.map_or(Line::Bad, |format| format.parse(line, &mut scratch));
            match said {
                Line::Request { key, bytes } => collector.add(key, bytes),
                Line::OtherMethod => collector.totals.other_methods += 1,
                Line::OtherStatus => collector.totals.other_statuses += 1,
                Line::Bad => collector.totals.bad_lines += 1,
            }
        }
    }
    let (lines, bad) = (collector.totals.lines - lines_before, collector.totals.bad_lines - bad_before);
    if lines > 0 && lines == bad {
        return Err(Error::NoLog { from: input::name(path), lines });
    }
    Ok(())
}

/// `--exact` has two volumes in memory at a time. The kernel would kill the process if they didn't fit.
fn check_memory(is_exact: bool, sizes: &[u64]) -> Result<(), Error> {
    let needed = sizes.iter().rev().take(2).fold(0, |sum: u64, size| sum.saturating_add(*size));
    let Some(available) = available_bytes().filter(|available| is_exact && needed > *available) else { return Ok(()) };
    Err(Error::Memory { needed, available })
}

/// The memory that the kernel reports as available without swapping.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

fn advise_on(trace: &Trace, mut tallies: Vec<Tally>, advise: &Advise) -> Result<Advice, Error> {
    let sizes: Vec<u64> = tallies.iter().map(|tally| tally.size_bytes).collect();
    let curve: Vec<(u64, f64)> = estimate::points(&tallies, &trace.totals)
        .iter()
        .map(|point| (point.size_bytes, point.object_hits.ratio))
        .collect();
    let recommended = sizes::knee(&curve).unwrap_or(sizes::SIZE_MIN);
    let base = advise.now.unwrap_or(recommended);
    let compared: Vec<u64> = [1.0].iter().chain(&FACTORS).map(|factor| (base as f64 * factor).round() as u64).collect();
    let missing: Vec<u64> = compared.iter().copied().filter(|size| !sizes.contains(size)).collect();
    check_memory(advise.exact, &missing)?;
    tallies.extend(replay::replay_all(trace, &missing)?);
    tallies.sort_by_key(|tally| tally.size_bytes);
    let points = estimate::points(&tallies, &trace.totals);
    let mut compared = compared.iter().filter_map(|size| points.iter().find(|point| point.size_bytes == *size));
    let base: &Point = compared.next().ok_or(Error::SampleTooSmall { size: base })?;
    let more = FACTORS.iter().zip(compared).map(|(factor, larger)| More::new(*factor, base, larger)).collect();
    let (one_hit_keys_ratio, one_hit_bytes_ratio) = trace.one_hit_shares();
    Ok(Advice {
        logs: advise.logs.iter().map(|path| input::name(path)).collect(),
        totals: trace.totals.clone(),
        sample_rate: trace.rate,
        keys: trace.key_count(),
        footprint_bytes: trace.footprint_bytes(),
        one_hit_keys_ratio,
        one_hit_bytes_ratio,
        object_hits_max_ratio: (1.0 - trace.key_count() as f64 / trace.totals.requests as f64).max(0.0),
        sizes: points.iter().filter(|point| sizes.contains(&point.size_bytes)).cloned().collect(),
        recommended_bytes: recommended,
        rule: if sizes.last() == Some(&recommended) && !advise.size.is_empty() {
            "the largest size that was tried"
        } else {
            "the smallest size where doubling adds less than one percentage point of object hits"
        },
        base: base.clone(),
        is_base_now: advise.now.is_some(),
        more,
    })
}
