//! Rows as text for people: one line on the terminal, one line of a Markdown table.

use std::fmt::Write as _;

use crate::record::{Bar, Judgement, Record, Row, Spread};

/// One row for the terminal.
pub fn line(row: &Row) -> String {
    let mut text = format!("{:<9} {} [{}]", row.section, row.case, row.unit);
    for series in &row.series {
        let _ = write!(text, "\n            {:<28} {}", series.store, spread(&series.spread));
    }
    for judgement in &row.judgements {
        let _ = write!(text, "\n          = {}", judged(judgement));
    }
    text
}

/// The whole record as a Markdown document.
pub fn markdown(record: &Record) -> String {
    let machine = &record.machine;
    let mut text = format!(
        "# Engine benchmark, {}\n\n{}, {} cores, {} MiB, {}; disk: {}, shared memory: {}.\n",
        record.date,
        machine.cpu,
        machine.cores,
        machine.memory_mib,
        machine.kernel,
        machine.disk_file_system,
        machine.shm_file_system,
    );
    let _ = writeln!(
        text,
        "{}Medians of {} interleaved repetitions, min..max in brackets; seed {}. \
         How and with what bias: METHODOLOGY.md and BIAS.md.\n",
        if record.quick { "**A smoke run: too short to be quoted.** " } else { "" },
        record.repetitions,
        record.seed,
    );
    let (met, judged) = tally(record);
    let _ = writeln!(text, "Bars met: {met} of {judged}.");
    for note in &record.notes {
        let _ = writeln!(text, "\n- {note}");
    }
    let mut section = "";
    for row in &record.rows {
        if row.section != section {
            section = row.section;
            let _ = write!(text, "\n## {section}\n\n| case | unit | figures | comparison |\n|---|---|---|---|\n");
        }
        text.push_str(&markdown_line(row));
    }
    text
}

/// Bars met, and bars.
pub fn tally(record: &Record) -> (usize, usize) {
    let verdicts: Vec<bool> =
        record.rows.iter().flat_map(|row| &row.judgements).filter_map(|judgement| judgement.met).collect();
    (verdicts.iter().filter(|met| **met).count(), verdicts.len())
}

fn markdown_line(row: &Row) -> String {
    let figures: Vec<String> =
        row.series.iter().map(|series| format!("{} {}", series.store, spread(&series.spread))).collect();
    let comparisons: Vec<String> = row.judgements.iter().map(judged).collect();
    format!("| {} | {} | {} | {} |\n", row.case, row.unit, figures.join("<br>"), comparisons.join("<br>"))
}

fn judged(judgement: &Judgement) -> String {
    let mut text = format!("{}: {}", judgement.what, spread(&judgement.spread));
    match judgement.bar {
        Some(Bar::AtLeast(bar)) => {
            let _ = write!(text, ", bar >= {}", figure(bar));
        }
        Some(Bar::AtMost(bar)) => {
            let _ = write!(text, ", bar <= {}", figure(bar));
        }
        None => {}
    }
    if let Some(aim) = judgement.aim {
        let _ = write!(text, ", aim {}", figure(aim));
    }
    match judgement.met {
        Some(true) => text.push_str(": met"),
        Some(false) => text.push_str(": **missed**"),
        None => {}
    }
    text
}

fn spread(spread: &Spread) -> String {
    if spread.min.total_cmp(&spread.max).is_eq() {
        return figure(spread.median);
    }
    format!("{} ({}..{})", figure(spread.median), figure(spread.min), figure(spread.max))
}

/// Three to four digits that matter, thousands kept apart.
pub fn figure(number: f64) -> String {
    let size = number.abs();
    if size >= 1000.0 {
        return thousands(number);
    }
    let decimals = match size {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 || size == 0.0 => 2,
        _ => 4,
    };
    let text = format!("{number:.decimals$}");
    match text.strip_suffix(".00") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

fn thousands(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0.0 { format!("-{text}") } else { text }
}
