//! `eyewall import`: stores the entries of a stream that `export` wrote.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use eyewall::Imported;
use eyewall_server::units::{counted, size};

use crate::args::Import;
use crate::{Error, Outcome, output, volume};

pub(crate) fn run(path: &Path, import: &Import) -> Result<Outcome, Error> {
    let cache = volume::open(path)?;
    let how = eyewall::Import::new().keep(import.keep);
    let imported = if import.file.as_os_str() == "-" {
        cache.import(std::io::stdin().lock(), &how)?
    } else {
        let failed = |source| Error::Stream { from: import.file.display().to_string(), source };
        cache.import(File::open(&import.file).map_err(failed)?, &how)?
    };
    if import.json {
        output::json_to_stdout(&imported)?;
    } else {
        output::text_to_stdout(|stdout| writeln!(stdout, "{}", words(&imported)))?;
    }
    Ok(Outcome::Done)
}

fn words(imported: &Imported) -> String {
    let mut words = format!("{}, {}", counted(imported.entries, "entry", "entries"), size(imported.bytes));
    for (number, what) in [
        (imported.kept, "kept as they were in the volume"),
        (imported.too_large, "skipped, because they are too large for this volume"),
        (imported.expired, "skipped, because they have expired"),
    ] {
        if number > 0 {
            let _ = write!(words, "; {number} {what}");
        }
    }
    words
}
