//! Reads a page of metrics, as Prometheus does.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::admin::Socket;
use super::client::Reply;

/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_mins(1);

/// The labels of a sample, and their values.
pub(crate) type Labels = BTreeMap<String, String>;

/// Requests and bytes of bodies by site, verdict and status.
pub(crate) type Counts = BTreeMap<[String; 3], (u64, u64)>;

/// A page of metrics.
pub(crate) struct Scrape {
    pub(crate) text: String,
    samples: Vec<(String, Labels, f64)>,
}

impl Scrape {
    /// Asks the administration.
    pub(crate) fn of(socket: &Socket) -> Self {
        Self::read(&socket.ask("GET", "/metrics", &[], ""))
    }

    pub(crate) fn read(reply: &Reply) -> Self {
        assert_eq!(reply.status, 200, "{}", reply.text());
        let text = reply.text().to_owned();
        let samples = text.lines().filter(|line| !line.starts_with('#')).map(sample).collect();
        Self { text, samples }
    }

    /// Asks until a page is as wanted: a server may answer before it counts.
    pub(crate) fn until(socket: &Socket, is_so: impl Fn(&Self) -> bool) -> Self {
        let start = Instant::now();
        loop {
            let scrape = Self::of(socket);
            if is_so(&scrape) {
                return scrape;
            }
            assert!(start.elapsed() < PATIENCE, "still {}", scrape.text);
        }
    }

    /// The samples of a name.
    pub(crate) fn samples(&self, name: &str) -> impl Iterator<Item = (&Labels, f64)> {
        let named = self.samples.iter().filter(move |(sample, ..)| sample == name);
        named.map(|(_, labels, value)| (labels, *value))
    }

    /// The sum of the samples of a name that have these labels, in whole numbers.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        self.exact_sum(name, labels) as u64
    }

    pub(crate) fn exact_sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |sample: &Labels| labels.iter().all(|(name, value)| sample.get(*name).is_some_and(|is| is == value));
        self.samples(name).filter(|(sample, _)| has(sample)).map(|(_, value)| value).sum()
    }

    /// The counted requests, without the counts that are zero.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::new();
        let key = |labels: &Labels| ["site", "verdict", "status"].map(|label| labels[label].clone());
        for (labels, value) in self.samples("eyewall_requests_total") {
            counts.entry(key(labels)).or_default().0 += value as u64;
        }
        for (labels, value) in self.samples("eyewall_response_bytes_total") {
            counts.entry(key(labels)).or_default().1 += value as u64;
        }
        counts.retain(|_, counts| *counts != (0, 0));
        counts
    }

    /// All names of samples, with the names of their labels.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &Labels)> {
        self.samples.iter().map(|(name, labels, _)| (name.as_str(), labels))
    }

    /// All samples of counters and histograms, which only grow.
    pub(crate) fn growing(&self) -> BTreeMap<(&str, &Labels), f64> {
        let grows = |name: &str| ["_total", "_bucket", "_count", "_sum"].iter().any(|end| name.ends_with(end));
        let growing = self.samples.iter().filter(|(name, ..)| grows(name));
        growing.map(|(name, labels, value)| ((name.as_str(), labels), *value)).collect()
    }
}

/// Runs `promtool` with this standard input, and demands that it finds nothing wrong. False: there is none.
pub(crate) fn promtool(arguments: &[&str], input: &str) -> bool {
    let mut command = Command::new(promtool_program());
    let started = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = started else {
        assert!(std::env::var_os("CI").is_none(), "promtool is missing; make tools ARGS=promtool");
        println!("skipped: there is no promtool; make tools ARGS=promtool gets it");
        return false;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "promtool {arguments:?}: {}", String::from_utf8_lossy(&said));
    true
}

/// That of `EYEWALL_PROMTOOL`, of `make tools`, or of the path.
fn promtool_program() -> OsString {
    if let Some(program) = std::env::var_os("EYEWALL_PROMTOOL") {
        return program;
    }
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/tool");
    let known = Command::new(tool).arg("promtool").stderr(Stdio::null()).output();
    let known = known.ok().filter(|known| known.status.success());
    known.map_or_else(|| "promtool".into(), |known| String::from_utf8(known.stdout).unwrap().trim().into())
}

/// `name{label="value",other="value"} 5`. The values have no quotes.
fn sample(line: &str) -> (String, Labels, f64) {
    let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
    let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
    let Some((name, labels)) = series.split_once('{') else { return (series.to_owned(), Labels::new(), value) };
    let labels = labels.strip_suffix("\"}").unwrap_or_else(|| panic!("{line}"));
    let label = |label: &str| {
        let (name, value) = label.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
        (name.to_owned(), value.to_owned())
    };
    (name.to_owned(), labels.split("\",").map(label).collect(), value)
}
