//! `eyewall ls`: the entries, as they come. Nothing is collected, so that a volume of any size can be listed; but for
//! `--sort`, which keeps what it has to show.

use std::cmp::Ordering;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use eyewall::Hit;
use serde::Serialize;

use super::pattern::Pattern;
use crate::args::{List, SortBy};
use crate::output::{HEADING, key_text, text_to_stdout};
use crate::{Error, Outcome, units, volume};

pub(crate) fn run(path: &Path, list: &List) -> Result<Outcome, Error> {
    let pattern = Pattern::new(list.pattern.as_deref())?;
    let cache = volume::open_to_read(path)?;
    let limit = list.limit.unwrap_or(usize::MAX);
    text_to_stdout(|output| {
        if !list.json {
            writeln!(output, "{HEADING}{:>9}  {:>9}  {:>9}  KEY{HEADING:#}", "SIZE", "AGE", "TTL LEFT")?;
        }
        let mut rows = cache.iter().filter(|hit| pattern.matches(hit.key())).map(|hit| Row::new(&hit));
        let mut write = |row: &Row| if list.json { write_json(output, row) } else { write_row(output, row) };
        match list.sort {
            None => rows.take(limit).try_for_each(|row| write(&row)),
            Some(by) => first_of(&mut rows, limit, |a, b| {
                let order = by.compare(a, b);
                if list.reverse { order.reverse() } else { order }
            })
            .iter()
            .try_for_each(write),
        }
    })?;
    Ok(Outcome::Done)
}

/// What is shown of an entry. A hit holds its bytes in place, so none is kept.
struct Row {
    key: Vec<u8>,
    value_bytes: usize,
    metadata_bytes: usize,
    age: Duration,
    ttl_left: Option<Duration>,
    serial: u64,
}

impl Row {
    fn new(hit: &Hit<'_>) -> Self {
        Self {
            key: hit.key().to_owned(),
            value_bytes: hit.value().len(),
            metadata_bytes: hit.metadata().len(),
            age: hit.age(),
            ttl_left: hit.ttl_left(),
            serial: hit.serial(),
        }
    }
}

impl SortBy {
    /// Entries that are alike stand in the order of their keys.
    fn compare(self, a: &Row, b: &Row) -> Ordering {
        let order = match self {
            Self::Size => b.value_bytes.cmp(&a.value_bytes),
            Self::Age => a.age.cmp(&b.age),
            Self::Key => Ordering::Equal,
        };
        order.then_with(|| a.key.cmp(&b.key))
    }
}

/// The first `limit` rows in this order, without keeping many more than those.
fn first_of(
    rows: &mut dyn Iterator<Item = Row>,
    limit: usize,
    mut compare: impl FnMut(&Row, &Row) -> Ordering,
) -> Vec<Row> {
    const ROWS_MIN: usize = 1000;
    let kept_max = limit.saturating_mul(2).max(ROWS_MIN);
    let mut kept = Vec::new();
    for row in rows {
        kept.push(row);
        if kept.len() >= kept_max {
            kept.sort_unstable_by(&mut compare);
            kept.truncate(limit);
        }
    }
    kept.sort_unstable_by(&mut compare);
    kept.truncate(limit);
    kept
}

fn write_row(output: &mut impl Write, row: &Row) -> io::Result<()> {
    writeln!(
        output,
        "{:>9}  {:>9}  {:>9}  {}",
        units::size(row.value_bytes as u64),
        units::duration(row.age),
        row.ttl_left.map_or_else(|| "-".to_owned(), units::duration),
        key_text(&row.key),
    )
}

/// One entry for programs. A key that is UTF-8 is given as it is, another one in hexadecimal digits.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
    value_bytes: usize,
    metadata_bytes: usize,
    age_seconds: f64,
    ttl_left_seconds: Option<f64>,
    serial: u64,
}

fn write_json(output: &mut impl Write, row: &Row) -> io::Result<()> {
    let key = std::str::from_utf8(&row.key).ok();
    let line = Line {
        key,
        key_hex: key.is_none().then(|| hexadecimal(&row.key)),
        value_bytes: row.value_bytes,
        metadata_bytes: row.metadata_bytes,
        age_seconds: row.age.as_secs_f64(),
        ttl_left_seconds: row.ttl_left.map(|left| left.as_secs_f64()),
        serial: row.serial,
    };
    serde_json::to_writer(&mut *output, &line)?;
    writeln!(output)
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
