//! `eyewall resize`: changes the size of a volume that may be in use.

use std::io::Write as _;
use std::path::Path;

use eyewall::Options;
use eyewall_server::units::{counted, size};
use serde_json::json;

use crate::args::Resize;
use crate::{Error, Outcome, output, volume};

/// The largest hint, in bytes; larger ones count as this.
const ENTRY_SIZE_HINT_MAX: u64 = 4 << 10;

pub(crate) fn resize(path: &Path, wanted: &Resize) -> Result<Outcome, Error> {
    let cache = volume::open(path)?;
    let mut shape = Options::new();
    if let Some(bytes) = wanted.size {
        shape = shape.size(bytes);
    }
    if let Some(hint) = wanted.entry_size_hint {
        shape = shape.entry_size_hint(hint);
    }
    if let Some(bytes) = wanted.entry_bytes_max {
        shape = shape.entry_bytes_max(bytes);
    }
    let resized = cache.resize(&shape)?;
    let hint = wanted.entry_size_hint.map(|bytes| u64::from(bytes).min(ENTRY_SIZE_HINT_MAX));
    let kept = cache.stats()?.entries;
    if wanted.json {
        output::json_to_stdout(&json!({
            "size_bytes": cache.size(),
            "entry_size_hint": hint,
            "entries": kept,
            "copied": resized.copied,
            "too_large": resized.too_large,
            "dead": resized.dead,
        }))?;
        return Ok(Outcome::Done);
    }
    output::text_to_stdout(|stdout| {
        writeln!(stdout, "{} now, with {}", size(cache.size()), counted(kept, "entry", "entries"))?;
        if let Some(hint) = hint {
            writeln!(stdout, "the index is for entries of {}", size(hint))?;
        }
        let evicted = resized.copied.saturating_sub(kept);
        for (count, why) in
            [(evicted, "did not fit"), (resized.too_large, "too large for it"), (resized.dead, "expired or purged")]
        {
            if count > 0 {
                writeln!(stdout, "{} left behind: {why}", counted(count, "entry", "entries"))?;
            }
        }
        Ok(())
    })?;
    Ok(Outcome::Done)
}
