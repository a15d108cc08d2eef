//! `eyewall doctor`: what is wrong with this machine, a configuration and its origins.

use std::io::Write as _;
use std::path::Path;

use eyewall_server::config::{self, Spanned};
use eyewall_server::doctor::{self, Finding, State};
use eyewall_server::units::counted;
use serde::Serialize;

use crate::args::Doctor;
use crate::{Error, Outcome, output};

/// The output of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    findings: &'a [Finding],
}

pub(crate) fn run(cache: Option<&Path>, asked: &Doctor) -> Result<Outcome, Error> {
    let mut config =
        config::load(&asked.file).map_err(|problems| Error::Config { path: asked.file.clone(), problems })?;
    if let Some(cache) = cache {
        config.cache.path = Some(Spanned::new(0..0, cache.to_owned()));
    }
    let findings = doctor::examine(config);
    if asked.json {
        output::json_to_stdout(&Report { findings: &findings })?;
    } else {
        output::text_to_stdout(|stdout| {
            for finding in &findings {
                writeln!(stdout, "{:<8} {}: {}", word(finding.state), finding.about, finding.words)?;
                finding.advice.iter().try_for_each(|advice| writeln!(stdout, "         -> {advice}"))?;
            }
            let number = |state| findings.iter().filter(|finding| finding.state == state).count() as u64;
            let (faults, warnings) = (number(State::Fault), number(State::Warning));
            let (faults, warnings) = (counted(faults, "fault", "faults"), counted(warnings, "warning", "warnings"));
            writeln!(stdout, "{faults}, {warnings}")
        })?;
    }
    let is_faulty = findings.iter().any(|finding| finding.state == State::Fault);
    Ok(if is_faulty { Outcome::Unsound } else { Outcome::Done })
}

fn word(state: State) -> &'static str {
    match state {
        State::Good => "good",
        State::Warning => "warning",
        State::Fault => "fault",
    }
}
