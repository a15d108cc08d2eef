//! `eyewall advise --server`: what would make more requests hits, from the server's own sample.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use eyewall_server::advice::{Remedy, Report};
use eyewall_server::units::{count, counted, duration, size};
use serde_json::Value;

use super::administration::{Post, question};
use crate::args::{Advise, ServerPlace};
use crate::output::{GOOD, HEADING, WARNING, json_to_stdout, key_text, text_to_stdout};
use crate::{Error, Outcome};

/// The paths of each kind.
const PATHS_SHOWN: usize = 5;

pub(crate) fn run(server: &ServerPlace, advise: &Advise) -> Result<Outcome, Error> {
    let report: Report = question(server, advise.token_file.as_deref(), Post { path: "/advice", body: Value::Null })?;
    if advise.json {
        json_to_stdout(&report)?;
    } else {
        let text = in_words(&report);
        text_to_stdout(|stdout| stdout.write_all(text.as_bytes()))?;
    }
    Ok(Outcome::Done)
}

fn percent(ratio: f64) -> String {
    format!("{:.1} %", ratio * 100.0)
}

fn in_words(report: &Report) -> String {
    let sample = &report.sample;
    let mut text = format!(
        "{HEADING}sample{HEADING:#}       {} to {}, {} of the paths, {}\n",
        counted(sample.requests, "request", "requests"),
        counted(sample.paths, "path", "paths"),
        percent(sample.rate),
        duration(Duration::from_secs(sample.seconds as u64)),
    );
    if sample.is_small {
        let _ = writeln!(
            text,
            "{WARNING}             the sample is small: ask again when there were more requests{WARNING:#}"
        );
    }
    let _ = writeln!(
        text,
        "hits         {} of requests, {} of bytes\n",
        percent(report.hit_ratio),
        percent(report.byte_hit_ratio)
    );
    let _ = writeln!(text, "{HEADING}{:>9}  {:>16}  {:>9}{HEADING:#}", "SIZE", "HITS", "BYTE HITS");
    for point in &report.sizes {
        let error = if point.error > 0.0 { format!(" +/- {:.1}", point.error * 100.0) } else { String::new() };
        let hits = format!("{:.1}{error} %", point.hit_ratio * 100.0);
        let now = if (point.factor - 1.0).abs() < f64::EPSILON { "  now" } else { "" };
        let _ = writeln!(text, "{:>9}  {hits:>16}  {:>9}{now}", size(point.size_bytes), percent(point.byte_hit_ratio));
    }
    let _ =
        writeln!(text, "\n{HEADING}{:>8}  {:>8}  {:<14} {:<20} WHY{HEADING:#}", "REQUESTS", "BYTES", "REASON", "SITE");
    for share in &report.misses {
        let _ = writeln!(
            text,
            "{:>8}  {:>8}  {:<14} {:<20} {}, such as {}",
            percent(share.request_ratio),
            percent(share.byte_ratio),
            key_text(share.reason.as_bytes()),
            key_text(share.site.as_bytes()),
            share.words,
            key_text(share.example.as_bytes()),
        );
    }
    for (name, paths) in [("HOTTEST", &report.hottest), ("SLOWEST", &report.slowest)] {
        let _ = writeln!(
            text,
            "\n{HEADING}{:>8}  {:>8}  {:>10}  {name} PATH OF THE SAMPLE{HEADING:#}",
            "REQUESTS", "HITS", "MEAN TIME"
        );
        for path in paths.iter().take(PATHS_SHOWN) {
            let _ = writeln!(
                text,
                "{:>8}  {:>8}  {:>7.1} ms  {}",
                count(path.requests),
                percent(path.hit_ratio),
                path.first_byte_us as f64 / 1e3,
                key_text(path.path.as_bytes()),
            );
        }
    }
    if report.remedies.is_empty() {
        text.push_str("\nno line of the configuration is known that would help\n");
    }
    for remedy in &report.remedies {
        of_remedy(&mut text, report, remedy);
    }
    text
}

fn of_remedy(text: &mut String, report: &Report, remedy: &Remedy) {
    let per_hour = report.sample.requests_of_all as f64 / report.sample.seconds.max(1.0) * 3600.0 * remedy.request_gain;
    let most = if remedy.is_upper_bound { "at most " } else { "" };
    let error = if remedy.error > 0.0 { format!(" (+/- {:.1})", remedy.error * 100.0) } else { String::new() };
    let of_site =
        if remedy.site.is_empty() { String::new() } else { format!(" for {}", key_text(remedy.site.as_bytes())) };
    let _ = writeln!(
        text,
        "\n{GOOD}{most}{} of requests{error}, {} of bytes{GOOD:#} become hits, {} requests an hour, with{of_site}:",
        percent(remedy.request_gain),
        percent(remedy.byte_gain),
        count(per_hour.max(0.0) as u64),
    );
    for line in remedy.configuration.lines() {
        let _ = writeln!(text, "    {}", key_text(line.as_bytes()));
    }
    let _ = writeln!(text, "  if {}", remedy.condition);
}
