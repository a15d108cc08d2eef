//! `eyewall scrub`: checks every entry of volumes against its checksum.

use std::io::Write as _;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use eyewall::Scrubbed;
use eyewall_server::units::{counted, size};
use serde::Serialize;

use crate::args::Scrub;
use crate::output::{ERROR, GOOD, HEADING};
use crate::{Error, Outcome, output, volume};

#[derive(Serialize)]
struct Document {
    path: PathBuf,
    #[serde(flatten)]
    found: Scrubbed,
}

pub(crate) fn run(cache: Option<&Path>, scrub: &Scrub) -> Result<Outcome, Error> {
    let mut outcome = Outcome::Done;
    let named = if scrub.files.is_empty() { vec![volume::named(cache)?.to_owned()] } else { scrub.files.clone() };
    for path in named {
        let found = pass(&path, scrub.rate)?;
        if found.entries_dropped > 0 {
            outcome = Outcome::Unsound;
        }
        if scrub.json {
            output::json_to_stdout(&Document { path, found })?;
        } else {
            output::text_to_stdout(|stdout| stdout.write_all(text(&path, &found).as_bytes()))?;
        }
    }
    Ok(outcome)
}

fn pass(path: &Path, rate: Option<NonZeroU64>) -> Result<Scrubbed, Error> {
    let cache = volume::open(path)?;
    let (mut pass, start) = (eyewall::Scrub::new(), Instant::now());
    while cache.scrub(&mut pass)? {
        if let Some(rate) = rate {
            let due = Duration::from_secs_f64(pass.found().bytes_read as f64 / rate.get() as f64);
            thread::sleep(due.saturating_sub(start.elapsed()));
        }
    }
    Ok(pass.found())
}

fn text(path: &Path, found: &Scrubbed) -> String {
    let read = format!("{}, {}", counted(found.entries_read, "entry", "entries"), size(found.bytes_read));
    let outcome = match found.entries_dropped {
        0 => format!("{GOOD}sound{GOOD:#}"),
        dropped => format!("{ERROR}damaged{ERROR:#}  {} dropped", counted(dropped, "entry", "entries")),
    };
    format!("{HEADING}{}{HEADING:#}   {read}\n{outcome}\n", path.display())
}
