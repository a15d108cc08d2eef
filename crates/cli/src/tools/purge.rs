//! `eyewall purge`: removes entries of a volume by tag, by prefix, or all of them.

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use eyewall::{Cache, Purge as Kind};
use eyewall_server::units::counted;
use serde::Serialize;

use crate::args::Purge;
use crate::{Error, Outcome, output, volume};

/// The time to count the entries of a purge target, which the purge itself doesn't need.
const COUNT_TIME: Duration = Duration::from_secs(1);
/// The clock is read once per this many entries.
const COUNT_STEP: u64 = 1024;

#[derive(Serialize)]
struct Purged {
    purges: u64,
    /// How many entries the purge covered; `None` if counting took too long.
    entries: Option<u64>,
    /// With `--sweep`, how many entries were dropped.
    dropped: Option<u64>,
    /// How often the volume's tables were too small for this purge.
    purge_overflows: u64,
}

pub(crate) fn run(path: &Path, purge: &Purge) -> Result<Outcome, Error> {
    let cache = volume::open(path)?;
    let kind = if purge.soft { Kind::Soft } else { Kind::Hard };
    let target = count(&cache, purge, Instant::now() + COUNT_TIME);
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
        output::json_to_stdout(&Purged { purges, entries: target.entries, dropped, purge_overflows: overflows })?;
    } else {
        output::text_to_stdout(|stdout| {
            writeln!(stdout, "{}", target.in_words(kind))?;
            match dropped {
                Some(dropped) => writeln!(stdout, "{} dropped", counted(dropped, "entry", "entries")),
                None => Ok(()),
            }
        })?;
    }
    Ok(Outcome::Done)
}

/// The stored entries that a purge covers.
struct Target {
    entries: Option<u64>,
    /// A stored tag with the host of its site, which the user has probably forgotten.
    site_tag: Option<String>,
}

/// Counts the entries that the purge covers, until the deadline.
fn count(cache: &Cache, purge: &Purge, deadline: Instant) -> Target {
    let mut target = Target { entries: None, site_tag: None };
    let mut entries = 0;
    for (number, hit) in (0_u64..).zip(cache.iter_all()) {
        if number.is_multiple_of(COUNT_STEP) && Instant::now() >= deadline {
            return target;
        }
        let has_tag = hit.tags().any(|tag| purge.tag.iter().any(|name| name == tag));
        let has_prefix = purge.prefix.iter().any(|prefix| hit.key().starts_with(prefix.as_bytes()));
        entries += u64::from(purge.all || has_tag || has_prefix);
        if target.site_tag.is_none() {
            let is_of_site =
                |tag: &str| purge.tag.iter().any(|name| tag.strip_suffix(name).is_some_and(|site| site.ends_with(':')));
            target.site_tag = hit.tags().find(|tag| is_of_site(tag)).map(str::to_owned);
        }
    }
    target.entries = Some(entries);
    target
}

impl Target {
    fn in_words(&self, kind: Kind) -> String {
        let done = match kind {
            Kind::Soft => "made stale",
            Kind::Hard => "purged",
        };
        match (self.entries, &self.site_tag) {
            (Some(0), Some(tag)) => {
                format!("no stored entry matches; the tags of a site begin with its host: did you mean `{tag}`?")
            }
            (Some(0), None) => "no stored entry matches".to_owned(),
            (Some(entries), _) => format!("{} {done}", counted(entries, "entry", "entries")),
            (None, _) => format!("{done}; the volume has too many entries to count them"),
        }
    }
}

/// Warns that a table of the volume was too small for the purges.
pub(super) fn warn_of_overflows(overflows: u64) {
    if overflows > 0 {
        output::tell(
            output::WARNING,
            "eyewall: warning",
            "more was purged than asked for, because the volume's table of purges was full; empty it by `eyewall sweep`",
        );
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use eyewall::Options;

    use super::*;
    use crate::args::{Arguments, Verb};

    #[test]
    fn counting_ends_at_its_deadline() {
        let cache = Options::new().heap().unwrap();
        cache.put("key", "value").unwrap();
        let Verb::Purge(purge) = Arguments::try_parse_from(["eyewall", "purge", "--all"]).unwrap().verb else {
            panic!("it is another verb");
        };
        let target = count(&cache, &purge, Instant::now());
        assert_eq!(target.entries, None);
        assert_eq!(target.in_words(Kind::Hard), "purged; the volume has too many entries to count them");
    }
}
