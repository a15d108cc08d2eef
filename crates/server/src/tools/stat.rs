//! `eyewall stat`: how a volume is doing, in one glance.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use eyewall::Stats;
use serde::Serialize;

use crate::args::Stat;
use crate::output::to_stdout;
use crate::units::{count, counted, duration, size};
use crate::{Error, Outcome, volume};

const BAR_CELLS: u64 = 30;

pub(crate) fn run(path: &Path, stat: &Stat) -> Result<Outcome, Error> {
    let cache = volume::open_to_read(path)?;
    let stats = cache.stats()?;
    let text =
        if stat.json { json(path, cache.is_read_only(), &stats) } else { table(path, cache.is_read_only(), &stats) };
    to_stdout(|output| output.write_all(text.as_bytes()))?;
    Ok(Outcome::Done)
}

#[derive(Serialize)]
struct Document<'a> {
    path: String,
    read_only: bool,
    #[serde(flatten)]
    stats: &'a Stats,
    warnings: Vec<String>,
}

fn json(path: &Path, read_only: bool, stats: &Stats) -> String {
    let document = Document { path: path.display().to_string(), read_only, stats, warnings: warnings(stats) };
    // A structure of numbers and strings always has a JSON form.
    serde_json::to_string(&document).unwrap_or_default() + "\n"
}

fn table(path: &Path, read_only: bool, stats: &Stats) -> String {
    let mut text = format!(
        "{}   {}, {} of up to {}\n\n",
        path.display(),
        size(stats.size_bytes),
        counted(stats.entries, "entry", "entries"),
        size(stats.entry_bytes_max)
    );
    for (name, part, whole, words) in gauges(stats) {
        let _ = writeln!(text, "{name:<8} {} {}   {words}", bar(part, whole), percent(part, whole));
    }
    text.push('\n');
    for (name, words) in lines(read_only, stats) {
        let _ = writeln!(text, "{name:<8} {words}");
    }
    for warning in warnings(stats) {
        let _ = write!(text, "\nwarning  {}\n", warning.replace(". ", ".\n         "));
    }
    text
}

/// What is full and what is well used: a name, a part of a whole, and the figures in words.
fn gauges(stats: &Stats) -> [(&'static str, u64, u64, String); 3] {
    let lookups = stats.hits + stats.misses;
    [
        (
            "data",
            stats.live_bytes,
            stats.data_bytes,
            format!("{} live, {} free of {}", size(stats.live_bytes), size(stats.free_bytes), size(stats.data_bytes)),
        ),
        (
            "index",
            stats.index_live,
            stats.index_slots,
            format!(
                "{} of {} slots, {} ghosts",
                count(stats.index_live),
                count(stats.index_slots),
                count(stats.index_ghosts)
            ),
        ),
        ("hits", stats.hits, lookups, format!("{} of {} lookups", count(stats.hits), count(lookups))),
    ]
}

fn lines(read_only: bool, stats: &Stats) -> Vec<(&'static str, String)> {
    let evictions = stats.evictions_cold + stats.evictions_expired + stats.evictions_index + stats.evictions_damaged;
    let mut lines = vec![
        ("writes", format!("{}, {}", counted(stats.puts, "put", "puts"), counted(stats.removes, "remove", "removes"))),
        (
            "evicted",
            format!(
                "{} ({} cold, {} expired, {} for want of index)",
                count(evictions),
                count(stats.evictions_cold),
                count(stats.evictions_expired),
                count(stats.evictions_index)
            ),
        ),
        ("written", format!("{} by puts, {} moved within", size(stats.bytes_written), size(stats.bytes_copied))),
        (
            "users",
            format!(
                "{}{}; {}, {}",
                counted(stats.processes, "process", "processes"),
                if read_only { "" } else { ", this one included" },
                counted(stats.threads, "thread", "threads"),
                counted(stats.pins, "pin", "pins")
            ),
        ),
        (
            "layout",
            format!(
                "{}, {} of tables and index",
                counted(stats.stripes, "stripe", "stripes"),
                size(stats.overhead_bytes)
            ),
        ),
    ];
    if evictions > 0 {
        let age = duration(Duration::from_millis(stats.eviction_age_ms));
        let _ = write!(lines[1].1, ", the last one {age} old");
    }
    let troubles = troubles(stats);
    if !troubles.is_empty() {
        lines.push(("troubles", troubles));
    }
    lines
}

/// What should be rare, and is told only where it happened.
fn troubles(stats: &Stats) -> String {
    let all = [
        (stats.repairs, "repairs after a process died"),
        (stats.resets, "resets of damaged rings"),
        (stats.evictions_damaged, "damaged entries dropped"),
        (stats.unclean_drops, "starts from empty, since the file could not be trusted"),
        (stats.pinned_refusals, "puts refused because of pins"),
        (stats.busy, "waits given up"),
    ];
    let happened = all.iter().filter(|(number, _)| *number > 0);
    happened.map(|(number, what)| format!("{} {what}", count(*number))).collect::<Vec<_>>().join(", ")
}

/// What somebody should act on, in words.
fn warnings(stats: &Stats) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_index_too_small(stats) {
        let mean = stats.live_bytes / stats.index_live.max(1);
        warnings.push(format!(
            "the index is nearly full while {} of the data area are free: entries push each other out too early. \
             The mean entry has {mean} bytes; make a new volume with `eyewall create --entry-size-hint {mean}`.",
            size(stats.free_bytes)
        ));
    }
    if stats.resets + stats.evictions_damaged > 0 {
        warnings
            .push("damaged parts were found and emptied; check the disk, and who else writes to this file.".to_owned());
    }
    warnings
}

/// More than 90 % of the index in use with more than 20 % of the data area free.
fn is_index_too_small(stats: &Stats) -> bool {
    stats.index_live.saturating_mul(10) > stats.index_slots.saturating_mul(9)
        && stats.free_bytes.saturating_mul(5) > stats.data_bytes
}

fn bar(part: u64, whole: u64) -> String {
    let cells = (part.min(whole) * BAR_CELLS).checked_div(whole).unwrap_or(0);
    // A little is more than nothing.
    let cells = if part > 0 { cells.max(1) } else { 0 };
    format!("[{:<width$}]", "#".repeat(cells as usize), width = BAR_CELLS as usize)
}

fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => "   -  ".to_owned(),
        _ => format!("{:>4.1} %", part as f64 * 100.0 / whole as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats() -> Stats {
        let mut stats = Stats::default();
        (stats.size_bytes, stats.data_bytes) = (64 << 20, 60 << 20);
        (stats.live_bytes, stats.free_bytes) = (20 << 20, 40 << 20);
        (stats.index_slots, stats.index_live, stats.entries) = (1000, 950, 950);
        (stats.hits, stats.misses) = (93, 7);
        stats
    }

    #[test]
    fn an_index_that_fills_before_the_data_is_told_in_words() {
        let text = table(Path::new("site.eye"), false, &stats());
        assert!(text.contains("warning  the index is nearly full while 40 MiB"), "{text}");
        assert!(text.contains("--entry-size-hint 22075"), "{text}");

        let mut full = stats();
        (full.live_bytes, full.free_bytes) = (58 << 20, 2 << 20);
        assert!(warnings(&full).is_empty(), "both full is as it should be");
    }

    #[test]
    fn the_hit_ratio_is_a_bar_and_a_figure() {
        let text = table(Path::new("site.eye"), false, &stats());
        assert!(text.contains("hits     [###########################   ] 93.0 %   93 of 100 lookups"), "{text}");
    }

    #[test]
    fn an_unused_volume_has_no_ratio() {
        let text = table(Path::new("site.eye"), false, &Stats::default());
        assert!(text.contains("hits     [                              ]    -     0 of 0 lookups"), "{text}");
    }
}
