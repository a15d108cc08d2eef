//! `eyewall ls`: lists the entries as it finds them. It keeps none of them in memory, so it can list a volume of any size.
//! Only `--sort` keeps the rows that it has to show.

use std::cmp::Ordering;
use std::io::{self, Write};
use std::path::Path;

use eyewall::Hit;
use eyewall_server::units;

use super::entry::Entry;
use super::pattern::Pattern;
use crate::args::{List, SortBy};
use crate::output::{HEADING, key_text, text_to_stdout};
use crate::{Error, Outcome, volume};

/// The column of the tags; longer ones push the key to the right.
const TAGS_WIDTH: usize = 16;

pub(crate) fn run(path: &Path, list: &List) -> Result<Outcome, Error> {
    let pattern = Pattern::new(list.pattern.as_deref())?;
    let cache = volume::open_to_read(path)?;
    let limit = list.limit.unwrap_or(usize::MAX);
    let has_tag = |hit: &Hit<'_>| list.tag.as_ref().is_none_or(|tag| hit.tags().any(|name| name == tag));
    let is_meant = |hit: &Hit<'_>| pattern.matches(hit.key()) && has_tag(hit);
    text_to_stdout(|output| {
        if !list.json {
            let tags = if list.tags { format!("{:<TAGS_WIDTH$}  ", "TAGS") } else { String::new() };
            writeln!(
                output,
                "{HEADING}{:>9}  {:>9}  {:>9}  {:<9}  {tags}KEY{HEADING:#}",
                "SIZE", "AGE", "TTL LEFT", "STATE"
            )?;
        }
        let mut rows = cache.iter_all().filter(|hit| is_meant(hit)).filter_map(|hit| Entry::new(&hit));
        let mut write = |row: &Entry| if list.json { write_json(output, row) } else { write_row(output, row, list) };
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

impl SortBy {
    /// Equal entries are ordered by their keys.
    fn compare(self, a: &Entry, b: &Entry) -> Ordering {
        let order = match self {
            Self::Size => b.value_bytes.cmp(&a.value_bytes),
            Self::Age => a.age.cmp(&b.age),
            Self::Key => Ordering::Equal,
        };
        order.then_with(|| a.key.cmp(&b.key))
    }
}

/// The first `limit` rows in this order. It never keeps many more rows than that.
fn first_of(
    rows: &mut dyn Iterator<Item = Entry>,
    limit: usize,
    mut compare: impl FnMut(&Entry, &Entry) -> Ordering,
) -> Vec<Entry> {
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

/// The tags come before the key, which ends the line.
fn write_row(output: &mut impl Write, row: &Entry, list: &List) -> io::Result<()> {
    let state = match row.reason {
        Some(reason) => format!("no: {reason}"),
        None => row.state.word().to_owned(),
    };
    let tags = if list.tags { format!("{}  ", tags_text(row)) } else { String::new() };
    writeln!(
        output,
        "{:>9}  {:>9}  {:>9}  {state:<9}  {tags}{}",
        units::size(row.value_bytes as u64),
        units::duration(row.age),
        row.ttl_left.map_or_else(|| "-".to_owned(), units::duration),
        key_text(&row.key),
    )
}

fn tags_text(row: &Entry) -> String {
    let tags = row.tags.iter().map(|tag| key_text(tag.as_bytes())).collect::<Vec<_>>().join(",");
    format!("{:<TAGS_WIDTH$}", if tags.is_empty() { "-" } else { &tags })
}

fn write_json(output: &mut impl Write, row: &Entry) -> io::Result<()> {
    serde_json::to_writer(&mut *output, &row.line())?;
    writeln!(output)
}
