//! `eyewall verify`: checks whether a volume is sound, and repairs it on request.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use eyewall::{Check, Repairs, Report};
use eyewall_server::units::{counted, size};
use serde::Serialize;

use crate::args::Verify;
use crate::output::{ERROR, GOOD, HEADING, WARNING};
use crate::{Error, Outcome, output, volume};

#[derive(Serialize)]
struct Document<'a> {
    path: String,
    sound: bool,
    #[serde(flatten)]
    report: &'a Report,
}

pub(crate) fn run(path: &Path, verify: &Verify) -> Result<Outcome, Error> {
    let cache = volume::open(path)?;
    let report = cache.verify_with(&Check::new().deep(verify.deep).repair(verify.repair))?;
    if verify.json {
        let document = Document { path: path.display().to_string(), sound: report.is_sound(), report: &report };
        output::json_to_stdout(&document)?;
    } else {
        let text = text(path, &report, verify);
        output::text_to_stdout(|stdout| stdout.write_all(text.as_bytes()))?;
    }
    Ok(if report.is_sound() { Outcome::Done } else { Outcome::Unsound })
}

fn text(path: &Path, report: &Report, verify: &Verify) -> String {
    let mut text = format!(
        "{HEADING}{}{HEADING:#}   {}, {}\n",
        path.display(),
        counted(report.entries, "entry", "entries"),
        counted(report.records, "record", "records")
    );
    if verify.deep {
        let _ = writeln!(
            text,
            "read     {}, {}",
            counted(report.entries_read, "entry", "entries"),
            size(report.bytes_read)
        );
    }
    if report.is_sound() {
        let _ = writeln!(text, "{GOOD}sound{GOOD:#}");
        return text;
    }
    for problem in &report.problems {
        let _ = writeln!(text, "{ERROR}problem{ERROR:#}  {problem}");
    }
    if verify.repair {
        let _ = writeln!(text, "{GOOD}repaired{GOOD:#} {}", repairs(&report.repairs));
    } else {
        let _ = writeln!(
            text,
            "{WARNING}advice{WARNING:#}   run it with --repair, which drops the damaged parts and keeps the rest"
        );
    }
    text
}

fn repairs(repairs: &Repairs) -> String {
    let all = [
        (repairs.rings_emptied, "ring emptied", "rings emptied"),
        (repairs.rings_held, "ring to empty once its readers finish", "rings to empty once their readers finish"),
        (repairs.slots_dropped, "slot dropped", "slots dropped"),
        (repairs.entries_dropped, "entry dropped", "entries dropped"),
        (repairs.stripes_counted, "stripe recounted", "stripes recounted"),
    ];
    let done = all.iter().filter(|(number, ..)| *number > 0);
    done.map(|(number, one, many)| counted(*number, one, many)).collect::<Vec<_>>().join(", ")
}
