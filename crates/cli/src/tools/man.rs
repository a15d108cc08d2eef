//! `eyewall man`: manual pages, one for the command and one for each verb, generated from the definition of the command line.

use std::fs;
use std::io::Write as _;

use clap::CommandFactory as _;

use crate::args::{Arguments, Man};
use crate::{Error, Outcome, output};

pub(crate) fn run(man: &Man) -> Result<Outcome, Error> {
    let command = Arguments::command();
    if let Some(folder) = &man.folder {
        let failed = |source| Error::File { path: folder.clone(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        clap_mangen::generate_to(command, folder).map_err(failed)?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).map_err(Error::Output)?;
        output::to_stdout(|stdout| stdout.write_all(&page))?;
    }
    Ok(Outcome::Done)
}
