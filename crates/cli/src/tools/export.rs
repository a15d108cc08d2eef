//! `eyewall export`: all entries of a volume, as a stream.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use eyewall::Exported;
use eyewall_server::units::{counted, size};

use crate::args::Export;
use crate::{Error, Outcome, output, volume};

pub(crate) fn run(path: &Path, export: &Export) -> Result<Outcome, Error> {
    let cache = volume::open_to_read(path)?;
    let failed = |source| Error::File { path: export.file.clone(), source };
    let is_stdout = export.file.as_os_str() == "-";
    let exported = if is_stdout {
        cache.export(std::io::stdout().lock())?
    } else {
        let file = File::create(&export.file).map_err(failed)?;
        let exported = cache.export(&file)?;
        // The user may remove the volume after this, so the entries have to be on the disk.
        file.sync_all().map_err(failed)?;
        exported
    };
    tell(exported, is_stdout, export.json)?;
    Ok(Outcome::Done)
}

fn tell(exported: Exported, is_stdout: bool, is_json: bool) -> Result<(), Error> {
    match (is_stdout, is_json) {
        (true, true) => {
            // A failure here means that standard error is gone.
            let _ = writeln!(std::io::stderr(), "{}", serde_json::to_string(&exported).unwrap_or_default());
            Ok(())
        }
        (false, true) => output::json_to_stdout(&exported),
        (true, false) => Ok(()),
        (false, false) => output::text_to_stdout(|stdout| {
            writeln!(stdout, "{}, {}", counted(exported.entries, "entry", "entries"), size(exported.bytes))
        }),
    }
}
