//! Lines of the configuration that would help, with what each is expected to gain.

use std::collections::HashMap;
use std::time::Duration;

use super::replay::{Change, Tally, Trial};
use super::{MissShare, Remedy, SizePoint};
use crate::serve::sample::{Record, WITH_LIFETIME};
use crate::serve::shared::Shared;

/// Reasons with a smaller share of the requests get no advice.
const SHARE_MIN: f64 = 0.005;
/// Remedies that gain less aren't shown.
const GAIN_MIN: f64 = 0.002;
/// The lifetime that is proposed where the origin says none.
const DEFAULT_TTL: Duration = Duration::from_mins(1);
/// The least lifetime that is proposed where responses expire too early.
const TTL_MIN: Duration = Duration::from_mins(10);
/// A rule is for a part of the site if so many of the responses are below it.
const PREFIX_SHARE: f64 = 0.9;

/// What to do about one reason of one site.
struct Proposal<'a> {
    configuration: String,
    condition: &'static str,
    effect: Effect<'a>,
}

enum Effect<'a> {
    /// The difference of two replays.
    Change(Change<'a>),
    /// It gains at most all misses of the reason.
    AtMostAll,
}

/// The remedies for these misses, the largest gain first.
pub(super) fn remedies(
    shared: &Shared,
    trial: &Trial<'_>,
    base: &Tally,
    (size, points): (u64, &[(SizePoint, Tally)]),
    misses: &[(MissShare, u8)],
) -> eyewall::Result<Vec<Remedy>> {
    let mut remedies: Vec<Remedy> = Vec::new();
    for (share, site) in misses.iter().filter(|(share, _)| share.request_ratio >= SHARE_MIN) {
        let Some(proposal) = propose(shared, trial, share, *site) else { continue };
        let ((request_gain, error, byte_gain), is_upper_bound) = match proposal.effect {
            Effect::Change(change) => (trial.gain(base, &trial.run(size, change, |_| {})?), false),
            Effect::AtMostAll => ((share.request_ratio, 0.0, share.byte_ratio), true),
        };
        remedies.push(Remedy {
            reason: share.reason.clone(),
            site: share.site.clone(),
            configuration: proposal.configuration,
            condition: proposal.condition.to_owned(),
            request_gain,
            error,
            byte_gain,
            is_upper_bound,
        });
    }
    // The smallest size that gains most of what the largest one does.
    let of_size = |(point, tally): &(SizePoint, Tally)| (point.size_bytes, trial.gain(base, tally));
    let larger: Vec<_> = points.iter().filter(|(point, _)| point.factor > 1.0).map(of_size).collect();
    let most = larger.iter().map(|(_, (gain, ..))| *gain).fold(0.0, f64::max);
    if let Some((bytes, (request_gain, error, byte_gain))) =
        larger.into_iter().find(|(_, (gain, ..))| *gain >= 0.8 * most)
    {
        remedies.push(Remedy {
            reason: "evicted".to_owned(),
            site: String::new(),
            configuration: format!("[cache]\nsize = \"{}\"\n", setting(bytes)),
            condition: "the volume has room on its disk, and most of it in memory".to_owned(),
            request_gain,
            error,
            byte_gain,
            is_upper_bound: false,
        });
    }
    remedies.retain(|remedy| remedy.request_gain >= GAIN_MIN || remedy.byte_gain >= GAIN_MIN);
    remedies.sort_by(|one, other| other.request_gain.total_cmp(&one.request_gain));
    Ok(remedies)
}

fn propose<'a>(shared: &Shared, trial: &Trial<'_>, share: &'a MissShare, site: u8) -> Option<Proposal<'a>> {
    let of_reason = || {
        let wanted = |record: &&Record| record.site == site && trial.snapshot.name(record.reason) == share.reason;
        trial.snapshot.records.iter().filter(wanted)
    };
    let settings = shared.sites.iter().map(|shared| &shared.site).find(|known| known.label() == share.site)?;
    let stored = |ttl| Effect::Change(Change::Stored { site, reason: &share.reason, ttl });
    Some(match share.reason.as_str() {
        "trackers" => Proposal {
            configuration: "[site.key]\nstrip_trackers = true\n".to_owned(),
            condition: "pages don't depend on the parameters of trackers",
            effect: Effect::Change(Change::WithoutTrackers { site }),
        },
        "set-cookie" => {
            let has_lifetime = of_reason().any(|record| record.flags & WITH_LIFETIME != 0);
            let lifetime = if has_lifetime { "" } else { "default_ttl = \"60s\"\n" };
            Proposal {
                configuration: format!("{}strip_response = [\"Set-Cookie\"]\n{lifetime}", place(trial, of_reason())),
                condition: "these pages are the same for everyone, and their cookies aren't needed",
                effect: stored((!has_lifetime).then_some(DEFAULT_TTL)),
            }
        }
        "no-lifetime" => Proposal {
            configuration: format!("{}default_ttl = \"60s\"\n", place(trial, of_reason())),
            condition: "these pages are the same for everyone, and may be a minute old",
            effect: stored(Some(DEFAULT_TTL)),
        },
        "no-store" | "private" | "no-cache" => Proposal {
            configuration: format!(
                "{}strip_response = [\"Cache-Control\", \"Expires\", \"Pragma\"]\ndefault_ttl = \"60s\"\n",
                place(trial, of_reason())
            ),
            condition: "the origin is wrong: these pages are the same for everyone",
            effect: stored(Some(DEFAULT_TTL)),
        },
        "too-large" => {
            let largest = of_reason().filter_map(|record| record.bytes).max()?;
            Proposal {
                configuration: format!("[site.cache]\nobject_bytes_max = \"{}\"\n", setting(u64::from(largest))),
                condition: "a body may take a quarter of the volume",
                effect: stored(None),
            }
        }
        "expired" => Proposal {
            configuration: "[site.cache]\nttl_min = \"10m\"\n".to_owned(),
            condition: "pages may be ten minutes old, or are purged when they change",
            effect: Effect::Change(Change::TtlMin { site, ttl: TTL_MIN }),
        },
        "vary-miss" => {
            let has = |name: &str| of_reason().any(|record| trial.snapshot.name(record.vary).contains(name));
            let (configuration, condition) = if has("cookie") && settings.settings.key.ignore_analytics != Some(true) {
                ("[site.key]\nignore_analytics = true\n", "pages don't depend on the cookies of analytics")
            } else if has("accept-language") && settings.key.languages().is_empty() {
                ("[site.key]\naccept_language = [\"en\"]\n", "these are the languages of the site; name all of them")
            } else {
                return None;
            };
            Proposal { configuration: configuration.to_owned(), condition, effect: Effect::AtMostAll }
        }
        "request" => Proposal {
            configuration: "[site.cache]\nignore_reload = true\n".to_owned(),
            condition: "clients that reload may get the stored response",
            effect: Effect::AtMostAll,
        },
        _ => return None,
    })
}

/// The table of the setting: that of the site, or a rule for the part of it that has most of these records.
fn place<'r>(trial: &Trial<'_>, records: impl Iterator<Item = &'r Record>) -> String {
    let (mut parts, mut all) = (HashMap::<String, u64>::new(), 0);
    for record in records {
        all += 1;
        let path = trial.snapshot.path(record.unit);
        let path = &path[path.find('/').unwrap_or(path.len())..];
        if let Some(end) = path.get(1..).and_then(|rest| rest.find('/')) {
            *parts.entry(path[..end + 2].to_owned()).or_default() += 1;
        }
    }
    match parts.into_iter().max_by_key(|(_, count)| *count) {
        Some((part, count)) if count as f64 >= PREFIX_SHARE * f64::from(all) => {
            format!("[[site.rule]]\nprefix = [{}]\n", serde_json::Value::String(part))
        }
        _ => "[site.cache]\n".to_owned(),
    }
}

/// A size for the configuration, which has whole numbers: the next one.
fn setting(bytes: u64) -> String {
    match bytes {
        bytes if bytes > 4 << 30 => format!("{}G", bytes.div_ceil(1 << 30)),
        bytes if bytes > 4 << 20 => format!("{}M", bytes.div_ceil(1 << 20)),
        bytes => format!("{}K", bytes.div_ceil(1 << 10)),
    }
}
