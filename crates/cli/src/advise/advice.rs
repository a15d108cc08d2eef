//! The result, for people and for programs.

use std::fmt::Write as _;

use eyewall_server::units::{count, counted, size};
use serde::Serialize;

use super::estimate::{Estimate, Point};
use super::plot::plot;
use super::trace::Totals;
use crate::output::{GOOD, HEADING, WARNING};

/// The advice about a log.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Advice {
    pub(crate) logs: Vec<String>,
    #[serde(flatten)]
    pub(crate) totals: Totals,
    /// The share of the keys from which the numbers of keys and bytes, and the shares, are estimated.
    pub(crate) sample_rate: f64,
    pub(crate) keys: u64,
    /// The bytes of a volume that would hold everything.
    pub(crate) footprint_bytes: u64,
    pub(crate) one_hit_keys_ratio: f64,
    pub(crate) one_hit_bytes_ratio: f64,
    /// The share of requests that are not the first for their key.
    pub(crate) object_hits_max_ratio: f64,
    pub(crate) sizes: Vec<Point>,
    pub(crate) recommended_bytes: u64,
    pub(crate) rule: &'static str,
    /// The size that larger ones are compared with: the current one, or the recommended one.
    pub(crate) base: Point,
    pub(crate) is_base_now: bool,
    pub(crate) more: Vec<More>,
}

/// The gain of a larger volume.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct More {
    pub(crate) factor: f64,
    pub(crate) size_bytes: u64,
    /// In hundredths.
    pub(crate) object_hits_points: f64,
    pub(crate) byte_hits_points: f64,
}

impl More {
    pub(crate) fn new(factor: f64, base: &Point, larger: &Point) -> Self {
        let points = |larger: Estimate, base: Estimate| (larger.ratio - base.ratio) * 100.0;
        Self {
            factor,
            size_bytes: larger.size_bytes,
            object_hits_points: points(larger.object_hits, base.object_hits),
            byte_hits_points: points(larger.byte_hits, base.byte_hits),
        }
    }
}

/// The advice as text for a terminal.
pub(crate) fn text(advice: &Advice) -> String {
    let mut text = head(advice);
    text.push('\n');
    text.push_str(&plot(&advice.sizes));
    text.push('\n');
    text.push_str(&table(advice));
    text.push('\n');
    text.push_str(&recommendation(advice));
    text
}

fn head(advice: &Advice) -> String {
    let totals = &advice.totals;
    let mut text = format!(
        "{HEADING}{}{HEADING:#}   {}: {} of {} count, for {}\n",
        advice.logs.join(", "),
        counted(totals.lines, "line", "lines"),
        counted(totals.requests, "request", "requests"),
        size(totals.bytes),
        counted(advice.keys, "key", "keys"),
    );
    let left_out = [
        (totals.other_methods, "with another method than GET"),
        (totals.other_statuses, "with a status that doesn't count"),
    ];
    let left_out: Vec<String> = left_out
        .into_iter()
        .filter(|(lines, _)| *lines > 0)
        .map(|(lines, why)| format!("{} {why}", count(lines)))
        .collect();
    if !left_out.is_empty() {
        let _ = writeln!(text, "skipped      {}", left_out.join(", "));
    }
    if totals.bad_lines > 0 {
        let bad = counted(totals.bad_lines, "line", "lines");
        let _ = writeln!(text, "{WARNING}unreadable{WARNING:#}   {bad}");
    }
    let _ = writeln!(text, "footprint    {} would hold all requested objects", size(advice.footprint_bytes));
    let _ = writeln!(
        text,
        "one-hit      {:.1} % of the keys, {:.1} % of their bytes, were requested only once",
        advice.one_hit_keys_ratio * 100.0,
        advice.one_hit_bytes_ratio * 100.0
    );
    let _ = writeln!(
        text,
        "at best      {:.1} % of requests can hit; the others are the first for their key",
        advice.object_hits_max_ratio * 100.0
    );
    text
}

fn table(advice: &Advice) -> String {
    let mut text = format!(
        "{HEADING}{:>9}  {:>15}  {:>15}  {:>10}  {:>7}{HEADING:#}\n",
        "SIZE", "OBJECT HITS", "BYTE HITS", "TOO LARGE", "SAMPLE"
    );
    for point in &advice.sizes {
        let row = format!(
            "{:>9}  {:>15}  {:>15}  {:>8.2} %  {:>7}",
            size(point.size_bytes),
            percent(point.object_hits),
            percent(point.byte_hits),
            point.too_large_requests as f64 / advice.totals.requests.max(1) as f64 * 100.0,
            if point.sample_rate < 1.0 { format!("{:.2} %", point.sample_rate * 100.0) } else { "all".to_owned() },
        );
        let is_recommended = point.size_bytes == advice.recommended_bytes;
        let _ = if is_recommended { writeln!(text, "{GOOD}{row}  <-{GOOD:#}") } else { writeln!(text, "{row}") };
    }
    if advice.sizes.iter().any(|point| point.sample_rate < 1.0) {
        text.push_str("+/- is the standard error of the sample of keys; --exact replays all keys.\n");
    }
    text
}

/// `45.3 %`, or `45.3 +/- 0.2 %`.
fn percent(estimate: Estimate) -> String {
    let ratio = estimate.ratio * 100.0;
    if estimate.error > 0.0 {
        format!("{ratio:.1} +/- {:.1} %", estimate.error * 100.0)
    } else {
        format!("{ratio:.1} %")
    }
}

fn recommendation(advice: &Advice) -> String {
    let mut text = format!(
        "recommended  {GOOD}{}{GOOD:#}\n             {}\n             eyewall create --size {}\n",
        size(advice.recommended_bytes),
        advice.rule,
        option(advice.recommended_bytes),
    );
    let _ = writeln!(
        text,
        "{}  {} hits {} of requests, {} of bytes",
        if advice.is_base_now { "now        " } else { "it         " },
        size(advice.base.size_bytes),
        percent(advice.base.object_hits),
        percent(advice.base.byte_hits)
    );
    let index = advice.base.index;
    let _ = writeln!(
        text,
        "index        {:.1} % of its slots in use; {:.1} % of evictions for want of a slot; {}",
        index.load_ratio * 100.0,
        index.slot_evictions_ratio * 100.0,
        counted(index.steps, "step", "steps")
    );
    for more in &advice.more {
        let _ = writeln!(
            text,
            "{:<11}  {} gains {:+.1} points of requests, {:+.1} of bytes",
            format!("{} times", more.factor),
            size(more.size_bytes),
            more.object_hits_points,
            more.byte_hits_points
        );
    }
    text
}

/// A size as `--size` reads it.
fn option(bytes: u64) -> String {
    let units = [("G", 30), ("M", 20), ("K", 10)];
    let whole = units.iter().find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    whole.map_or_else(|| bytes.to_string(), |(unit, shift)| format!("{}{unit}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::super::estimate::Index;
    use super::super::svg::svg;
    use super::*;
    use crate::expected::expect;

    fn point(size_bytes: u64, objects: f64, error: f64) -> Point {
        Point {
            size_bytes,
            object_hits: Estimate { ratio: objects, error },
            byte_hits: Estimate { ratio: objects / 2.0, error: error * 2.0 },
            too_large_requests: 12_000,
            sample_rate: if error > 0.0 { 0.125 } else { 1.0 },
            index: Index { load_ratio: 0.57, slot_evictions_ratio: 0.001, steps: 1234 },
        }
    }

    fn advice() -> Advice {
        let ratios = [0.2, 0.31, 0.42, 0.5, 0.57, 0.6, 0.605, 0.606];
        let sizes: Vec<Point> = ratios.iter().zip(20..).map(|(ratio, shift)| point(1 << shift, *ratio, 0.01)).collect();
        let (base, larger) = (sizes[5].clone(), point(3 << 24, 0.603, 0.01));
        Advice {
            logs: vec!["<access>.log".to_owned()],
            totals: Totals {
                lines: 1_000_003,
                bad_lines: 3,
                other_methods: 40_000,
                other_statuses: 0,
                requests: 960_000,
                bytes: 40 << 30,
            },
            sample_rate: 0.125,
            keys: 80_000,
            footprint_bytes: 130 << 20,
            one_hit_keys_ratio: 0.612,
            one_hit_bytes_ratio: 0.55,
            object_hits_max_ratio: 0.75,
            recommended_bytes: base.size_bytes,
            rule: "the smallest size where doubling adds less than one percentage point of object hits",
            more: vec![More::new(1.5, &base, &larger), More::new(2.0, &base, &sizes[6])],
            base,
            is_base_now: false,
            sizes,
        }
    }

    #[test]
    fn people_see_a_curve_a_table_and_a_recommended_size() {
        expect("advice.txt", &anstream::adapter::strip_str(&text(&advice())).to_string());
    }

    #[test]
    fn the_image_has_light_and_dark_colours_and_a_description() {
        let image = svg(&advice());
        expect("advice.svg", &image);
        assert!(!image.contains("<access>"), "names are escaped");
    }

    #[test]
    fn sizes_are_written_as_the_option_reads_them() {
        for bytes in [1, 1000, 512 << 10, 3 << 19, 64 << 20, 3 << 30] {
            assert_eq!(eyewall_server::units::parse_size(&option(bytes)), Ok(bytes));
        }
        assert_eq!(option(3 << 29), "1536M");
    }
}
