//! `eyewall stat`: the state of a volume on one page.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use eyewall::{Details, FoundTier, ProcessDetails, SizeClass, Stats, StripeDetails, TierStats};
use eyewall_server::units::{count, counted, duration, size};
use eyewall_server::warnings;
use serde::Serialize;

use super::parts;
use crate::args::Stat;
use crate::output::{GOOD, HEADING, WARNING, text_to_stdout};
use crate::volume;
use crate::{Error, Outcome};

const BAR_CELLS: u64 = 20;

pub(crate) fn run(path: &Path, stat: &Stat) -> Result<Outcome, Error> {
    let cache = volume::open_to_read(path)?;
    let mut stats = cache.stats()?;
    let mut warnings = warnings::of_stats(&stats);
    warnings.extend(warnings::of_storage(&cache));
    warnings.extend(cache.put_aside().map(|aside| {
        format!("{} is a broken volume that the server renamed; remove it when you no longer need it.", aside.display())
    }));
    match cache.tier_in(&stat.tier_folder) {
        Ok(found) => {
            warnings.extend(found.as_ref().and_then(leftover));
            stats.tier = found.map(|found| found.stats);
        }
        Err(error) => warnings.push(format!("can't read the volume's tier: {error}.")),
    }
    let details = if stat.stripes || stat.processes || stat.sizes { cache.details()? } else { Details::default() };
    let text = if stat.json {
        json(path, &stats, Shown::new(stat, &details), warnings)
    } else {
        let mut text = table(&path.display().to_string(), &stats, &warnings);
        for (is_wanted, part) in [
            (stat.stripes, parts::stripes(&details.stripes)),
            (stat.processes, parts::processes(&details.processes)),
            (stat.sizes, parts::sizes(&details.sizes)),
        ] {
            if is_wanted {
                text.push_str(&part);
            }
        }
        text
    };
    text_to_stdout(|output| output.write_all(text.as_bytes()))?;
    Ok(Outcome::Done)
}

#[derive(Serialize)]
struct Document<'a> {
    path: String,
    #[serde(flatten)]
    stats: &'a Stats,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Shown<'a>>,
    warnings: Vec<String>,
}

/// The optional parts that the user asked for.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    stripes: Option<&'a [StripeDetails]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<&'a [ProcessDetails]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sizes: Option<&'a [SizeClass]>,
}

impl<'a> Shown<'a> {
    fn new(stat: &Stat, details: &'a Details) -> Option<Self> {
        (stat.stripes || stat.processes || stat.sizes).then(|| Self {
            stripes: stat.stripes.then_some(details.stripes.as_slice()),
            processes: stat.processes.then_some(details.processes.as_slice()),
            sizes: stat.sizes.then_some(details.sizes.as_slice()),
        })
    }
}

fn json(path: &Path, stats: &Stats, details: Option<Shown<'_>>, warnings: Vec<String>) -> String {
    let document = Document { path: path.display().to_string(), stats, details, warnings };
    // Numbers and strings always have a JSON form.
    serde_json::to_string(&document).unwrap_or_default() + "\n"
}

pub(super) fn table(name: &str, stats: &Stats, warnings: &[String]) -> String {
    let mut text = format!(
        "{HEADING}{name}{HEADING:#}   {}, {}; entries up to {}\n\n",
        size(stats.size_bytes),
        counted(stats.entries, "entry", "entries"),
        size(stats.entry_bytes_max)
    );
    for (name, part, whole, words) in gauges(stats) {
        let _ = writeln!(text, "{name:<8} {GOOD}{}{GOOD:#} {}   {words}", bar(part, whole), percent(part, whole));
    }
    text.push('\n');
    for (name, words) in lines(stats) {
        let _ = writeln!(text, "{name:<8} {words}");
    }
    for warning in warnings {
        let _ = write!(text, "\n{WARNING}warning{WARNING:#}  {}\n", warning.replace(". ", ".\n         "));
    }
    text
}

/// The gauges: a name, a part of a whole, and the figures in words.
fn gauges(stats: &Stats) -> [(&'static str, u64, u64, String); 3] {
    let lookups = stats.hits + stats.misses;
    [
        (
            "data",
            stats.live_bytes,
            stats.data_bytes,
            format!("{} of {}, {} free", size(stats.live_bytes), size(stats.data_bytes), size(stats.free_bytes)),
        ),
        (
            "index",
            stats.index_live,
            stats.index_slots,
            format!(
                "{} of {} slots, {} ghosts{}",
                count(stats.index_live),
                count(stats.index_slots),
                count(stats.index_ghosts),
                index_steps(stats)
            ),
        ),
        ("hits", stats.hits, lookups, format!("{} of {} lookups", count(stats.hits), count(lookups))),
    ]
}

fn lines(stats: &Stats) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("writes", format!("{}, {}", counted(stats.puts, "put", "puts"), counted(stats.removes, "remove", "removes"))),
        ("evicted", evicted(stats)),
        ("written", format!("{} by puts, {} by moving entries", size(stats.bytes_written), size(stats.bytes_copied))),
        (
            "users",
            format!(
                "{}; {}, {}",
                counted(stats.processes, "process", "processes"),
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
    if let Some(tier) = &stats.tier {
        lines.extend(["tier", ""].into_iter().zip(tier_figures(tier)));
    }
    if stats.purges > 0 {
        lines.insert(2, ("purges", purges(stats)));
    }
    let troubles = troubles(stats);
    if !troubles.is_empty() {
        lines.push(("troubles", troubles));
    }
    lines
}

/// Whether the index is growing or shrinking, and how many steps it has made.
fn index_steps(stats: &Stats) -> String {
    let way = match stats.index_slots_wanted {
        wanted if wanted > stats.index_slots => format!(", growing to {}", count(wanted)),
        wanted if wanted < stats.index_slots => format!(", shrinking to {}", count(wanted)),
        _ => String::new(),
    };
    if stats.index_steps == 0 { way } else { format!("{way}, {}", counted(stats.index_steps, "step", "steps")) }
}

/// The number of evictions, by cause, and the age of the last evicted entry.
fn evicted(stats: &Stats) -> String {
    let whys = [
        (stats.evictions_cold, "cold"),
        (stats.evictions_expired, "expired"),
        (stats.evictions_purged, "purged"),
        (stats.evictions_index, "for want of a slot"),
        (stats.evictions_damaged, "damaged"),
    ];
    let happened = whys.iter().filter(|(number, _)| *number > 0);
    let parts: Vec<String> = happened.map(|(number, why)| format!("{} {why}", count(*number))).collect();
    match whys.iter().map(|(number, _)| number).sum::<u64>() {
        0 => "0".to_owned(),
        all => {
            let age = duration(Duration::from_millis(stats.eviction_age_ms));
            format!("{} ({}), the last one {age} old", count(all), parts.join(", "))
        }
    }
}

/// The tier: copies in shared memory for processes that opened the volume with one. Two lines.
fn tier_figures(tier: &TierStats) -> [String; 2] {
    [
        format!(
            "{} of {} in memory, {}, {}",
            size(tier.present_bytes),
            size(tier.size_bytes),
            counted(tier.entries, "copy", "copies"),
            counted(tier.processes, "process", "processes"),
        ),
        format!(
            "{}, {} void; {} made, {} evicted",
            counted(tier.hits, "hit", "hits"),
            count(tier.voids),
            count(tier.fills),
            count(tier.evictions),
        ),
    ]
}

/// A tier that is left of killed processes.
fn leftover(found: &FoundTier) -> Option<String> {
    (found.stats.processes == 0).then(|| {
        format!(
            "{} is the tier of processes that were killed. It takes memory until a program opens the volume with a tier \
             again. Removing the file is always safe.",
            found.path.display()
        )
    })
}

fn purges(stats: &Stats) -> String {
    let more = match stats.purge_overflows {
        0 => String::new(),
        overflows => {
            format!("; {} purged more than requested, because tables were full", counted(overflows, "time", "times"))
        }
    };
    format!("{}{more}", counted(stats.purges, "purge", "purges"))
}

/// Rare events, shown only if they have happened.
fn troubles(stats: &Stats) -> String {
    let times = |number| counted(number, "time", "times");
    let all = [
        (stats.repairs, format!("repaired {} after a process died", times(stats.repairs))),
        (stats.resets, format!("emptied a damaged ring {}", times(stats.resets))),
        (stats.unclean_drops, format!("emptied {}, because the file could not be trusted", times(stats.unclean_drops))),
        (stats.pinned_refusals, format!("refused a put {} because of pins", times(stats.pinned_refusals))),
        (stats.busy, format!("gave up waiting for a lock {}", times(stats.busy))),
    ];
    let happened = all.into_iter().filter(|(number, _)| *number > 0);
    happened.map(|(_, what)| what).collect::<Vec<_>>().join("; ")
}

fn bar(part: u64, whole: u64) -> String {
    let cells = (part.min(whole) * BAR_CELLS).checked_div(whole).unwrap_or(0);
    // Any part above 0 shows.
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

    fn table_with_warnings(stats: &Stats) -> String {
        let text = table("site.eye", stats, &warnings::of_stats(stats));
        anstream::adapter::strip_str(&text).to_string()
    }

    fn stats() -> Stats {
        let mut stats = Stats::default();
        (stats.size_bytes, stats.data_bytes) = (64 << 20, 60 << 20);
        (stats.live_bytes, stats.free_bytes) = (20 << 20, 40 << 20);
        (stats.index_slots, stats.index_live, stats.entries) = (42_000, 40_000, 40_000);
        (stats.hits, stats.misses) = (93, 7);
        stats
    }

    #[test]
    fn a_growing_or_shrinking_index_shows_its_goal() {
        let mut changing = stats();
        (changing.index_slots_wanted, changing.index_steps) = (50_000, 12);
        let text = table_with_warnings(&changing);
        assert!(text.contains("40,000 of 42,000 slots, 0 ghosts, growing to 50,000, 12 steps"), "{text}");
        changing.index_slots_wanted = 8000;
        assert!(table_with_warnings(&changing).contains(", shrinking to 8,000, 12 steps"));
        (changing.index_slots_wanted, changing.index_steps) = (42_000, 0);
        assert!(table_with_warnings(&changing).contains("slots, 0 ghosts\n"));
    }

    #[test]
    fn rare_events_are_shown_only_if_they_happened() {
        let mut stats = stats();
        (stats.unclean_drops, stats.repairs, stats.evictions_damaged) = (1, 2, 3);
        let text = table_with_warnings(&stats);
        assert!(text.contains("emptied 1 time, because the file could not be trusted"), "{text}");
        assert!(text.contains("repaired 2 times after a process died"), "{text}");
        assert!(text.contains("evicted  3 (3 damaged), the last one "), "{text}");
    }

    #[test]
    fn the_hit_ratio_is_a_bar_and_a_figure() {
        let text = table_with_warnings(&stats());
        assert!(text.contains("hits     [##################  ] 93.0 %   93 of 100 lookups"), "{text}");
    }

    #[test]
    fn an_unused_volume_has_no_ratio() {
        let text = table_with_warnings(&Stats::default());
        assert!(text.contains("hits     [                    ]    -     0 of 0 lookups"), "{text}");
    }
}
