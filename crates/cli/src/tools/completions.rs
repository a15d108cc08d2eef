//! `eyewall completions`: a completion script, generated from the definition of the command line.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::args::{Arguments, Completions};
use crate::{Error, Outcome, output};

pub(crate) fn run(completions: &Completions) -> Result<Outcome, Error> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut Arguments::command(), "eyewall", &mut script);
    output::to_stdout(|stdout| stdout.write_all(&script))?;
    Ok(Outcome::Done)
}
