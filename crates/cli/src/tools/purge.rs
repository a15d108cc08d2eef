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

/// How long to count what is meant, which the purge itself doesn't need.
const COUNT_TIME: Duration = Duration::from_secs(1);
/// Entries between two looks at the clock.
const COUNT_STEP: u64 = 1024;

#[derive(Serialize)]
struct Purged {
    purges: u64,
    /// How many entries were meant; none where counting took too long.
    entries: Option<u64>,
    /// Where it was swept: how many entries were dropped.
    dropped: Option<u64>,
    /// How often the volume's tables have been too small for its purges, ever.
    purge_overflows: u64,
}

pub(crate) fn run(path: &Path, purge: &Purge) -> Result<Outcome, Error> {
    let cache = volume::open(path)?;
    let kind = if purge.soft { Kind::Soft } else { Kind::Hard };
    let meant = count(&cache, purge, Instant::now() + COUNT_TIME);
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
        output::json_to_stdout(&Purged { purges, entries: meant.entries, dropped, purge_overflows: overflows })?;
    } else {
        output::text_to_stdout(|stdout| {
            writeln!(stdout, "{}", meant.in_words(kind))?;
            match dropped {
                Some(dropped) => writeln!(stdout, "{} dropped", counted(dropped, "entry", "entries")),
                None => Ok(()),
            }
        })?;
    }
    Ok(Outcome::Done)
}

/// What a purge means of what is stored.
struct Meant {
    entries: Option<u64>,
    /// A tag of a site that was probably meant.
    site_tag: Option<String>,
}

/// Looks at all entries, until the deadline.
fn count(cache: &Cache, purge: &Purge, deadline: Instant) -> Meant {
    let mut meant = Meant { entries: None, site_tag: None };
    let mut entries = 0;
    for (number, hit) in (0_u64..).zip(cache.iter_all()) {
        if number.is_multiple_of(COUNT_STEP) && Instant::now() >= deadline {
            return meant;
        }
        let has_tag = hit.tags().any(|tag| purge.tag.iter().any(|name| name == tag));
        let has_prefix = purge.prefix.iter().any(|prefix| hit.key().starts_with(prefix.as_bytes()));
        entries += u64::from(purge.all || has_tag || has_prefix);
        if meant.site_tag.is_none() {
            let is_of_site =
                |tag: &str| purge.tag.iter().any(|name| tag.strip_suffix(name).is_some_and(|site| site.ends_with(':')));
            meant.site_tag = hit.tags().find(|tag| is_of_site(tag)).map(str::to_owned);
        }
    }
    meant.entries = Some(entries);
    meant
}

impl Meant {
    fn in_words(&self, kind: Kind) -> String {
        let done = match kind {
            Kind::Soft => "made stale",
            Kind::Hard => "purged",
        };
        match (self.entries, &self.site_tag) {
            (Some(0), Some(tag)) => {
                format!("nothing is stored that this means; tags of a site carry its host: did you mean `{tag}`?")
            }
            (Some(0), None) => "nothing is stored that this means".to_owned(),
            (Some(entries), _) => format!("{} {done}", counted(entries, "entry", "entries")),
            (None, _) => format!("{done}; the volume has too many entries to count them"),
        }
    }
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use eyewall::Options;

    use super::*;
    use crate::args::{Arguments, Verb};

    #[test]
    fn what_takes_too_long_to_count_is_not_counted() {
        let cache = Options::new().heap().unwrap();
        cache.put("key", "value").unwrap();
        let Verb::Purge(purge) = Arguments::try_parse_from(["eyewall", "purge", "--all"]).unwrap().verb else {
            panic!("it is another verb");
        };
        let meant = count(&cache, &purge, Instant::now());
        assert_eq!(meant.entries, None);
        assert_eq!(meant.in_words(Kind::Hard), "purged; the volume has too many entries to count them");
    }
}
