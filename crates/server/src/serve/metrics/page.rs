//! The page of a scrape, as text 0.0.4 of Prometheus or as `OpenMetrics` 1.0.
//!
//! The two differ in the name of a counter's family, which `OpenMetrics` writes without `_total`, in the lines of units, and in the last line.
//!
//! `OpenMetrics` has no native histograms in text: Prometheus reads these in protocol buffers only. From version 3 on, it makes native
//! histograms with the same buckets from the classic ones (`convert_classic_histograms_to_nhcb`).

use std::fmt::{Display, Write as _};

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue};

use super::counters::{BOUNDS, Histogram};
use super::families::{Family, Kind};

/// The form of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    OpenMetrics,
}

/// Units of which `OpenMetrics` has a line, if a name ends with them.
const UNITS: [&str; 3] = ["seconds", "bytes", "ratio"];

impl Format {
    /// The form that a client wants (RFC 9110, section 12.5.1). Without a wish it gets the older one.
    pub(super) fn wanted(fields: &HeaderMap) -> Self {
        let mut weights = [(Self::Text, 0), (Self::OpenMetrics, 0)];
        let ranges = fields.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        for range in ranges.flat_map(|value| value.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default();
            let (mut weight, mut version) = (1000, None);
            for (name, value) in parts.filter_map(|part| part.split_once('=')) {
                match name.to_ascii_lowercase().as_str() {
                    "q" => weight = value.parse().map_or(0, |weight: f64| (weight.clamp(0.0, 1.0) * 1000.0) as u32),
                    "version" => version = Some(value.trim_matches('"')),
                    _ => {}
                }
            }
            let format = match (media_type.to_ascii_lowercase().as_str(), version) {
                ("application/openmetrics-text", None | Some("1.0.0" | "0.0.1")) => Self::OpenMetrics,
                ("text/plain" | "text/*" | "*/*", None | Some("0.0.4")) => Self::Text,
                _ => continue,
            };
            let known = &mut weights[format as usize].1;
            *known = weight.max(*known);
        }
        let [(text, of_text), (open_metrics, of_open_metrics)] = weights;
        if of_open_metrics > of_text { open_metrics } else { text }
    }

    pub(super) fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        })
    }
}

/// A page on its way.
pub(super) struct Page {
    format: Format,
    text: String,
}

/// A family on a page, which gets its samples. They must come before those of the next family.
pub(super) struct Samples<'a> {
    text: &'a mut String,
    family: &'static Family,
}

impl Page {
    pub(super) fn new(format: Format) -> Self {
        Self { format, text: String::new() }
    }

    /// Begins a family.
    pub(super) fn family(&mut self, family: &'static Family) -> Samples<'_> {
        let name = match self.format {
            Format::Text => family.name,
            Format::OpenMetrics => family.name.strip_suffix("_total").unwrap_or(family.name),
        };
        let text = &mut self.text;
        // Never fails on a string. The texts of help have no letters to escape.
        let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {}", family.help, family.kind.word());
        let unit = UNITS.into_iter().find(|unit| name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')));
        if let Some(unit) = unit.filter(|_| self.format == Format::OpenMetrics) {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        Samples { text, family }
    }

    /// The whole page.
    pub(super) fn end(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

impl Samples<'_> {
    /// Adds a sample. `labels` are the values of the family's labels.
    pub(super) fn add(&mut self, labels: &[&str], value: impl Display) {
        self.line("", labels, None, value);
    }

    /// Adds a histogram.
    pub(super) fn add_histogram(&mut self, labels: &[&str], histogram: &Histogram) {
        debug_assert_eq!(self.family.kind, Kind::Histogram);
        let counts = histogram.cumulative();
        let bounds = BOUNDS.iter().map(|(bound, _)| *bound).chain(["+Inf"]);
        for (bound, count) in bounds.zip(counts) {
            self.line("_bucket", labels, Some(bound), count);
        }
        self.line("_sum", labels, None, histogram.seconds());
        self.line("_count", labels, None, counts[BOUNDS.len()]);
    }

    fn line(&mut self, suffix: &str, labels: &[&str], bound: Option<&str>, value: impl Display) {
        debug_assert_eq!(labels.len(), self.family.labels.len(), "{}", self.family.name);
        self.text.push_str(self.family.name);
        self.text.push_str(suffix);
        let labels = self.family.labels.iter().copied().zip(labels.iter().copied());
        let mut open = '{';
        for (name, value) in labels.chain(bound.map(|bound| ("le", bound))) {
            self.text.push(std::mem::replace(&mut open, ','));
            self.text.push_str(name);
            self.text.push_str("=\"");
            push_escaped(self.text, value);
            self.text.push('"');
        }
        let end = if open == '{' { "" } else { "}" };
        // Never fails on a string.
        let _ = writeln!(self.text, "{end} {value}");
    }
}

/// Appends the value of a label.
fn push_escaped(text: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            letter => text.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::families::{COLLAPSED, FIRST_BYTE};
    use super::*;

    #[test]
    fn a_client_gets_the_form_that_it_prefers() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                          application/openmetrics-text;version=0.0.1;q=0.5,\
                          text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, wanted) in [
            (None, Format::Text),
            (Some("*/*"), Format::Text),
            (Some(prometheus), Format::OpenMetrics),
            (Some("application/openmetrics-text; version=2.0.0, text/plain; q=0.1"), Format::Text),
            (Some("application/openmetrics-text;q=0.1, text/plain"), Format::Text),
            (Some("application/openmetrics-text;q=x"), Format::Text),
            (Some("Application/OpenMetrics-Text"), Format::OpenMetrics),
        ] {
            let accept = accept.map(|accept| (ACCEPT, HeaderValue::from_static(accept)));
            assert_eq!(Format::wanted(&accept.into_iter().collect()), wanted);
        }
    }

    #[test]
    fn labels_are_escaped_and_openmetrics_names_families_without_total() {
        let page = |format| {
            let mut page = Page::new(format);
            page.family(&COLLAPSED).add(&["a\"b\\c\nd"], 7);
            page.end()
        };
        let help = "Requests that were answered by the response to another request.";
        let sample = "eyewall_collapsed_requests_total{site=\"a\\\"b\\\\c\\nd\"} 7\n";
        let lines = |name: &str| format!("# HELP {name} {help}\n# TYPE {name} counter\n{sample}");
        assert_eq!(page(Format::Text), lines("eyewall_collapsed_requests_total"));
        assert_eq!(page(Format::OpenMetrics), lines("eyewall_collapsed_requests") + "# EOF\n");
    }

    #[test]
    fn a_histogram_has_its_unit_and_all_buckets() {
        let mut page = Page::new(Format::OpenMetrics);
        page.family(&FIRST_BYTE).add_histogram(&["a", "hit"], &Histogram::default());
        let text = page.end();
        assert!(text.contains("# UNIT eyewall_first_byte_seconds seconds\n"), "{text}");
        assert!(
            text.contains("eyewall_first_byte_seconds_bucket{site=\"a\",verdict=\"hit\",le=\"+Inf\"} 0\n"),
            "{text}"
        );
        assert_eq!(text.matches("_bucket").count(), BOUNDS.len() + 1);
        assert!(text.ends_with("_sum{site=\"a\",verdict=\"hit\"} 0\neyewall_first_byte_seconds_count{site=\"a\",verdict=\"hit\"} 0\n# EOF\n"));
    }
}
