//! The result, and the line that prints it.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Significant digits of the percentiles and of the buckets.
const DIGITS: u8 = 3;
const DIGITS_OF_BUCKETS: u8 = 2;

/// The kinds of failed requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A lost connection could not be opened again.
    Connect,
    /// The request could not be sent.
    Write,
    /// The connection ended before the response did.
    Read,
    /// The bytes are not TLS, or the certificate is not trusted.
    Tls,
    /// The bytes are not an HTTP/1 head.
    Head,
    /// The status was not 200.
    Status,
    /// The length is missing or wrong.
    Length,
    /// The body is wrong. Only first responses are checked.
    Body,
    /// There was no complete response for half of the window, and at least a second.
    Timeout,
}

/// The result of a window.
#[derive(Debug)]
pub(crate) struct Tally {
    line: Line,
    latency_ns: Histogram<u64>,
}

/// Times in microseconds; all are whole numbers, except the percentiles.
#[derive(Debug, Default, Serialize)]
struct Line {
    /// Complete responses.
    requests: u64,
    /// Their bytes, including heads.
    bytes: u64,
    /// Those whose own connection resumed a TLS session.
    resumed: u64,
    micros: u64,
    /// The client's own share of its core.
    cpu_micros: u64,
    p50: f64,
    p99: f64,
    errors: BTreeMap<Kind, u64>,
    /// All times: inclusive upper bounds in nanoseconds, and their counts. They have two digits, so that a
    /// whole run takes little room; the percentiles above have three.
    buckets: Vec<(u64, u64)>,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self { line: Line::default(), latency_ns: histogram(DIGITS) }
    }

    /// Counts a response of so many bytes after so much time.
    pub(crate) fn answered(&mut self, bytes: u64, time: Duration) {
        self.line.requests += 1;
        self.line.bytes += bytes;
        self.latency_ns.saturating_record(time.as_nanos() as u64);
    }

    /// Counts a response whose own connection resumed a session.
    pub(crate) fn resumed(&mut self, is_resumed: bool) {
        self.line.resumed += u64::from(is_resumed);
    }

    pub(crate) fn add(&mut self, kind: Kind, count: u64) {
        if count > 0 {
            *self.line.errors.entry(kind).or_default() += count;
        }
    }

    /// Sets the length of the window, and the client's use of its core.
    pub(crate) fn end(&mut self, window: Duration, cpu: Duration) {
        self.line.micros = window.as_micros() as u64;
        self.line.cpu_micros = cpu.as_micros() as u64;
        self.line.p50 = self.micros_at(0.5);
        self.line.p99 = self.micros_at(0.99);
        let mut coarse = histogram(DIGITS_OF_BUCKETS);
        for value in self.latency_ns.iter_recorded() {
            coarse.saturating_record_n(value.value_iterated_to(), value.count_since_last_iteration());
        }
        let buckets = coarse.iter_recorded();
        self.line.buckets =
            buckets.map(|value| (value.value_iterated_to(), value.count_since_last_iteration())).collect();
    }

    fn micros_at(&self, quantile: f64) -> f64 {
        self.latency_ns.value_at_quantile(quantile) as f64 / 1000.0
    }

    pub(crate) fn as_line(&self) -> String {
        #[expect(clippy::expect_used, reason = "numbers under names that are text")]
        serde_json::to_string(&self.line).expect("plain data")
    }
}

fn histogram(digits: u8) -> Histogram<u64> {
    #[expect(clippy::expect_used, reason = "the bounds are constants that the library takes")]
    let mut empty = Histogram::new_with_max(1 << 36, digits).expect("fit bounds");
    empty.auto(true);
    empty
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_was_counted() {
        let mut tally = Tally::new();
        for micros in 1..=100 {
            tally.answered(10, Duration::from_micros(micros));
        }
        tally.add(Kind::Read, 2);
        tally.add(Kind::Status, 0);
        tally.add(Kind::Read, 1);
        tally.end(Duration::from_millis(5), Duration::from_micros(70));
        let line: serde_json::Value = serde_json::from_str(&tally.as_line()).expect("JSON");
        assert_eq!(line["requests"], 100);
        assert_eq!(line["bytes"], 1000);
        assert_eq!(line["micros"], 5000);
        assert_eq!(line["cpu_micros"], 70);
        assert_eq!(line["errors"], serde_json::json!({"read": 3}));
        let near =
            |value: &serde_json::Value, micros: f64| (value.as_f64().expect("a number") / micros - 1.0).abs() < 0.001;
        assert!(near(&line["p50"], 50.0) && near(&line["p99"], 99.0), "{line}");
        let buckets: Vec<(u64, u64)> = serde_json::from_value(line["buckets"].clone()).expect("pairs");
        assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 100);
        assert!(buckets.is_sorted_by(|left, right| left.0 < right.0), "{buckets:?}");
        let (longest, _) = buckets[buckets.len() - 1];
        assert!((100_000..101_000).contains(&longest), "{longest}");
    }
}
