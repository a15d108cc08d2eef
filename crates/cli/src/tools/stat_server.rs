//! `eyewall stat --server`: the state of a server's volume, its sites in short, and the best of its advice.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use eyewall::Stats;
use eyewall_server::advice::{Remedy, Report};
use eyewall_server::units::{count, duration, size};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::administration::{Post, questions};
use super::stat;
use crate::args::{ServerPlace, Stat};
use crate::output::{GOOD, HEADING, WARNING, json_to_stdout, key_text, text_to_stdout};
use crate::{Error, Outcome};

/// The most sites in the table.
const SITES_SHOWN: usize = 20;

/// What `GET /status` returns, as far as it is shown.
#[derive(Deserialize, Serialize)]
struct Status {
    version: String,
    process: u32,
    uptime_seconds: u64,
    sites: Vec<Site>,
    #[serde(skip_serializing)]
    volume: Volume,
}

#[derive(Deserialize, Serialize)]
struct Volume {
    path: Option<String>,
    #[serde(flatten)]
    stats: Stats,
    warnings: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct Site {
    name: String,
    traffic: Traffic,
}

#[derive(Deserialize, Serialize)]
struct Traffic {
    requests: u64,
    spared_requests: u64,
    bytes: u64,
    errors: u64,
}

/// The output of `stat --json`, and what only a server knows.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    volume: &'a Volume,
    server: &'a Status,
    advice: &'a Report,
}

pub(crate) fn run(server: &ServerPlace, stat: &Stat) -> Result<Outcome, Error> {
    let posts = ["/status", "/advice"].map(|path| Post { path, body: Value::Null });
    let [status, advice] = questions(server, stat.token_file.as_deref(), &posts)?;
    let malformed = |source: serde_json::Error| Error::NoServer { server: server.to_string(), source: source.into() };
    let mut status: Status = serde_json::from_slice(&status).map_err(malformed)?;
    let advice: Report = serde_json::from_slice(&advice).map_err(malformed)?;
    status.sites.sort_by(|one, other| {
        other.traffic.requests.cmp(&one.traffic.requests).then_with(|| one.name.cmp(&other.name))
    });
    if stat.json {
        json_to_stdout(&Document { volume: &status.volume, server: &status, advice: &advice })?;
    } else {
        let text = in_words(&status, &advice);
        text_to_stdout(|stdout| stdout.write_all(text.as_bytes()))?;
    }
    Ok(Outcome::Done)
}

fn in_words(status: &Status, advice: &Report) -> String {
    let Volume { path, stats, warnings } = &status.volume;
    let name = path.as_ref().map_or_else(|| "volume in memory".to_owned(), |path| key_text(path.as_bytes()));
    let mut text = stat::table(&name, stats, warnings);
    let _ = writeln!(
        text,
        "\n{HEADING}server{HEADING:#}   {}, process {}, up {}",
        key_text(status.version.as_bytes()),
        status.process,
        duration(Duration::from_secs(status.uptime_seconds))
    );
    let _ = writeln!(
        text,
        "\n{HEADING}{:>12}  {:>7}  {:>10}  {:>8}  SITE{HEADING:#}",
        "REQUESTS", "SPARED", "BYTES", "ERRORS"
    );
    for Site { name, traffic } in status.sites.iter().take(SITES_SHOWN) {
        let spared = match traffic.requests {
            0 => "-".to_owned(),
            // 100 % only if it is so.
            all => format!("{:.1} %", (traffic.spared_requests as f64 / all as f64 * 1000.0).floor() / 10.0),
        };
        let errors = count(traffic.errors);
        let (requests, bytes) = (count(traffic.requests), size(traffic.bytes));
        let _ = writeln!(text, "{requests:>12}  {spared:>7}  {bytes:>10}  {errors:>8}  {}", key_text(name.as_bytes()));
    }
    if let Some(more @ 1..) = status.sites.len().checked_sub(SITES_SHOWN) {
        let _ = writeln!(text, "and {} more", count(more as u64));
    }
    of_advice(&mut text, advice);
    text
}

/// The best size, and the line of the configuration that gains most.
fn of_advice(text: &mut String, advice: &Report) {
    let _ = write!(text, "\n{HEADING}advice{HEADING:#}   ");
    if advice.sample.requests == 0 {
        text.push_str("none, because there were no requests yet\n");
        return;
    }
    let hits = |point: &eyewall_server::advice::SizePoint| {
        let now = if (point.factor - 1.0).abs() < f64::EPSILON { " (now)" } else { "" };
        format!("{}{now} {:.1} %", size(point.size_bytes), point.hit_ratio * 100.0)
    };
    let _ = writeln!(text, "hits by size: {}", advice.sizes.iter().map(hits).collect::<Vec<_>>().join(", "));
    if advice.sample.is_small {
        let _ =
            writeln!(text, "         {WARNING}the sample is small: ask again when there were more requests{WARNING:#}");
    }
    let Some(Remedy { request_gain, is_upper_bound, configuration, condition, site, .. }) = advice.remedies.first()
    else {
        text.push_str("         no line of the configuration is known that would help\n");
        return;
    };
    let most = if *is_upper_bound { "at most " } else { "" };
    let of_site = if site.is_empty() { String::new() } else { format!(" for {}", key_text(site.as_bytes())) };
    let gain = request_gain * 100.0;
    let _ = writeln!(text, "         {GOOD}{most}{gain:.1} % of requests become hits{GOOD:#} with{of_site}:");
    for line in configuration.lines() {
        let _ = writeln!(text, "             {}", key_text(line.as_bytes()));
    }
    let _ = writeln!(text, "         if {condition}; `eyewall advise --server` shows the rest");
}
