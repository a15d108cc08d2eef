//! The advice as tables, for browsers without script.

use std::fmt::Write as _;

use super::page::escaped;
use crate::serve::advice::{Remedy, Report};
use crate::units::{counted, size};

/// The most rows of each table, as on the page with script.
const ROWS_MAX: usize = 6;

/// The tables; `None` is advice that is being made.
pub(super) fn tables(report: Option<&Report>) -> String {
    let Some(report) = report else { return "<p>The advice is being made.</p>".to_owned() };
    if report.sample.requests == 0 {
        return "<p>There is no advice, because there were no requests yet.</p>".to_owned();
    }
    let percent = |ratio: f64| format!("{:.1} %", ratio * 100.0);
    let mut text = format!(
        "<table><caption>Hits by size, from a sample of {}</caption><thead><tr><th>size<th>hits<th>of bytes</thead><tbody>",
        counted(report.sample.requests, "request", "requests")
    );
    for point in &report.sizes {
        let now = if (point.factor - 1.0).abs() < f64::EPSILON { " (now)" } else { "" };
        let [hits, bytes] = [point.hit_ratio, point.byte_hit_ratio].map(percent);
        // Never fails on a string.
        let _ =
            write!(text, "<tr><th>{}{now}<td>{hits}{}<td>{bytes}", size(point.size_bytes), error_words(point.error));
    }
    text.push_str(
        "</tbody></table><table><caption>Why requests miss</caption><thead><tr><th>why<th>reason<th>site<th>requests<th>of bytes<th>such as</thead><tbody>",
    );
    for share in report.misses.iter().take(ROWS_MAX) {
        let [words, reason, site, example] =
            [&share.words, &share.reason, &share.site, &share.example].map(|text| escaped(text));
        let [requests, bytes] = [share.request_ratio, share.byte_ratio].map(percent);
        let _ = write!(text, "<tr><th>{words}<td>{reason}<td>{site}<td>{requests}<td>{bytes}<td>{example}");
    }
    text.push_str("</tbody></table><table><caption>What would help</caption><thead><tr><th>more hits<th>of bytes<th>site<th>configuration<th>if</thead><tbody>");
    for remedy in report.remedies.iter().take(ROWS_MAX) {
        let Remedy { configuration, condition, site, .. } = remedy;
        let [configuration, condition, site] = [configuration, condition, site].map(|text| escaped(text));
        let most = if remedy.is_upper_bound { "at most " } else { "" };
        let [requests, bytes] = [remedy.request_gain, remedy.byte_gain].map(percent);
        let error = error_words(remedy.error);
        let _ = write!(
            text,
            "<tr><th>{most}{requests}{error}<td>{bytes}<td>{site}<td><pre>{configuration}</pre><td>{condition}"
        );
    }
    if report.remedies.is_empty() {
        text.push_str("<tr><th>no line of the configuration is known");
    }
    text.push_str("</tbody></table>");
    text
}

fn error_words(error: f64) -> String {
    if error > 0.0 { format!(" +/- {:.1}", error * 100.0) } else { String::new() }
}
