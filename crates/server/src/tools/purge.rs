//! `eyewall purge`: removes entries of a volume by tag, by prefix, or all of them.

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use eyewall::Purge as Kind;
use serde::Serialize;

use crate::args::Purge;
use crate::units::counted;
use crate::{Error, Outcome, output, volume};

#[derive(Serialize)]
struct Purged {
    purges: u64,
    /// Where it was swept: how many entries were dropped.
    dropped: Option<u64>,
    /// How often the volume's tables have been too small for its purges, ever.
    purge_overflows: u64,
}

pub(crate) fn run(path: &Path, purge: &Purge) -> Result<Outcome, Error> {
    let cache = volume::open(path)?;
    let kind = if purge.soft { Kind::Soft } else { Kind::Hard };
    let before = cache.stats()?.purge_overflows;
    if purge.all {
        cache.purge_all(kind)?;
    }
    for tag in &purge.tag {
        cache.purge_tag(tag, kind)?;
    }
    for prefix in &purge.prefix {
        cache.purge_prefix(prefix.as_bytes(), kind)?;
    }
    let purges = (purge.tag.len() + purge.prefix.len()) as u64 + u64::from(purge.all);
    let dropped = if purge.sweep { Some(cache.sweep()?) } else { None };
    let overflows = cache.stats()?.purge_overflows.saturating_sub(before);
    warn_of_overflows(overflows);
    if purge.json {
        output::json_to_stdout(&Purged { purges, dropped, purge_overflows: overflows })?;
    } else if let Some(dropped) = dropped {
        output::text_to_stdout(|stdout| writeln!(stdout, "{} dropped", counted(dropped, "entry", "entries")))?;
    }
    Ok(Outcome::Done)
}

/// Tells a person that a table of the volume was too small for what was purged.
pub(super) fn warn_of_overflows(overflows: u64) {
    if overflows > 0 {
        output::tell(
            output::WARNING,
            "eyewall: warning",
            "more was purged than asked for, since the volume's table of purges was full; `eyewall sweep` empties it",
        );
    }
}
