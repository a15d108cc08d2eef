//! The optional parts of `eyewall stat`: stripes, processes, sizes.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use eyewall::{ProcessDetails, RingDetails, RingKind, SizeClass, StripeDetails};
use eyewall_server::units::{count, duration, size};

use super::bars::bar;
use crate::output::{GOOD, HEADING};

const BAR_CELLS: usize = 30;

/// Two lines for each stripe, one for each of its rings.
pub(crate) fn stripes(stripes: &[StripeDetails]) -> String {
    let mut text = format!(
        "\n{HEADING}{:>6}  {:<5} {:>9} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7} {:>9} {:>6} {:>9}  {:>9}{HEADING:#}\n",
        "STRIPE",
        "RING",
        "SIZE",
        "LIVE",
        "HELD",
        "DEAD",
        "FILLER",
        "FREE",
        "LAPS",
        "ENTRIES",
        "INDEX",
        "EVICTED",
        "LAST"
    );
    for stripe in stripes {
        for ring in &stripe.rings {
            text.push_str(&ring_line(stripe, ring));
            if ring.ring == RingKind::Small {
                text.push_str(&stripe_words(stripe));
            }
            text.push('\n');
        }
    }
    text
}

fn ring_line(stripe: &StripeDetails, ring: &RingDetails) -> String {
    let (number, name) = match ring.ring {
        RingKind::Small => (stripe.number.to_string(), "small"),
        RingKind::Main => (String::new(), "main"),
    };
    // The index has the other bytes of the ring.
    let own = ring.bytes - ring.index_bytes.min(ring.bytes);
    let share = |bytes: u64| format!("{:.1} %", bytes as f64 * 100.0 / own.max(1) as f64);
    format!(
        "{number:>6}  {name:<5} {:>9} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7}",
        size(own),
        share(ring.live_bytes),
        share(ring.pinned_bytes),
        share(ring.dead_bytes + ring.unreadable_bytes),
        share(ring.filler_bytes),
        share(ring.free_bytes),
        count(ring.head_laps),
    )
}

fn stripe_words(stripe: &StripeDetails) -> String {
    let evicted = stripe.evictions_cold
        + stripe.evictions_expired
        + stripe.evictions_index
        + stripe.evictions_damaged
        + stripe.evictions_purged;
    let last = if evicted > 0 { duration(Duration::from_millis(stripe.eviction_age_ms)) } else { "-".to_owned() };
    let index = stripe.index_live as f64 * 100.0 / stripe.index_slots.max(1) as f64;
    format!(" {:>9} {:>6} {:>9}  {last:>9}", count(stripe.entries), format!("{index:.1} %"), count(evicted))
}

/// A line for each process.
pub(crate) fn processes(processes: &[ProcessDetails]) -> String {
    let mut text = format!(
        "\n{HEADING}{:>8}  {:>9}  {:>7}  {:>5}  {:>12}  {:>12}{HEADING:#}\n",
        "PROCESS", "FOR", "THREADS", "PINS", "HITS", "MISSES"
    );
    for process in processes {
        let since = SystemTime::now().duration_since(process.since()).unwrap_or_default();
        let _ = writeln!(
            text,
            "{:>8}  {:>9}  {:>7}  {:>5}  {:>12}  {:>12}",
            process.pid,
            duration(since),
            process.threads,
            process.pins,
            count(process.hits),
            count(process.misses),
        );
    }
    if processes.is_empty() {
        text.push_str("no process is attached\n");
    }
    text
}

/// A bar for each class of sizes, with the number of entries and their bytes.
pub(crate) fn sizes(classes: &[SizeClass]) -> String {
    let most = classes.iter().map(|class| class.entries).max().unwrap_or(0);
    let bytes: u64 = classes.iter().map(|class| class.bytes).sum();
    let mut text = format!("\n{HEADING}{:>9}  {:>12}  {:>7}{HEADING:#}\n", "FROM", "ENTRIES", "BYTES");
    for class in classes {
        let share = class.bytes as f64 * 100.0 / bytes.max(1) as f64;
        let _ = writeln!(
            text,
            "{:>9}  {:>12}  {:>7}  {GOOD}{}{GOOD:#}",
            size(class.from_bytes),
            count(class.entries),
            format!("{share:.1} %"),
            bar(class.entries, most, BAR_CELLS)
        );
    }
    if classes.is_empty() {
        text.push_str("there are no entries\n");
    }
    text
}
