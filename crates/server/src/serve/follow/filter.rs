//! Which requests a follower wants.

use std::time::Duration;

use globset::{GlobBuilder, GlobMatcher};
use percent_encoding::percent_decode_str;

use super::seen::Seen;
use crate::serve::outcome::Verdict;
use crate::units::parse_duration;

/// The most values of all parameters together.
const VALUES_MAX: usize = 64;

/// A request is wanted if it meets every kind of condition; of several conditions of one kind, one is enough.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    sites: Vec<Box<str>>,
    verdicts: Vec<Verdict>,
    slower: Option<Duration>,
    statuses: Vec<Statuses>,
    paths: Vec<Path>,
    methods: Vec<Box<str>>,
}

/// A status, or a class of statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Statuses {
    One(u16),
    Class(u16),
}

#[derive(Debug)]
enum Path {
    Prefix(Box<str>),
    Glob(GlobMatcher),
}

impl Filter {
    /// The filter of a query such as `site=example.org&verdict=miss&verdict=pass&slower=100ms&status=5xx&path=/shop/&method=GET`.
    ///
    /// # Errors
    /// The words to tell the client.
    pub(crate) fn of_query(query: &str) -> Result<Self, String> {
        let mut filter = Self::default();
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        for (number, pair) in pairs.enumerate() {
            if number >= VALUES_MAX {
                return Err(format!("a filter has at most {VALUES_MAX} conditions"));
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8().map_err(|_| format!("`{name}` isn't UTF-8"))?;
            filter.add(name, &value)?;
        }
        Ok(filter)
    }

    fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "site" => self.sites.push(value.to_ascii_lowercase().into()),
            "verdict" => self.verdicts.push(verdict(value)?),
            "slower" => self.slower = Some(parse_duration(value)?),
            "status" => self.statuses.push(Statuses::read(value)?),
            "path" => self.paths.push(Path::read(value)?),
            "method" => self.methods.push(value.to_ascii_uppercase().into()),
            _ => {
                return Err(format!(
                    "there is no condition `{name}`; use site, verdict, slower, status, path and method"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn wants(&self, seen: &Seen) -> bool {
        // An address of IPv6 has colons, too, in brackets.
        let host = || match seen.host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => name,
            _ => &*seen.host,
        };
        let path = || seen.target.split_once('?').map_or(&*seen.target, |(path, _)| path);
        let is_of = |site: &str| *site == *seen.site || site.eq_ignore_ascii_case(host());
        (self.sites.is_empty() || self.sites.iter().any(|site| is_of(site)))
            && (self.verdicts.is_empty() || self.verdicts.contains(&seen.verdict))
            && (self.statuses.is_empty() || self.statuses.iter().any(|statuses| statuses.have(seen.status)))
            && (self.methods.is_empty() || self.methods.contains(&seen.method))
            // A client may not have waited for the response.
            && self.slower.is_none_or(|least| seen.first_byte.unwrap_or_else(|| seen.started.elapsed()) >= least)
            && (self.paths.is_empty() || self.paths.iter().any(|wanted| wanted.matches(path())))
    }
}

fn verdict(word: &str) -> Result<Verdict, String> {
    Verdict::ALL.into_iter().find(|verdict| verdict.label() == word).ok_or_else(|| {
        let words = Verdict::ALL.map(Verdict::label).join(", ");
        format!("there is no verdict `{word}`; the verdicts are {words}")
    })
}

impl Statuses {
    fn read(word: &str) -> Result<Self, String> {
        let read = match word.strip_suffix("xx") {
            Some(class) => class.parse().ok().filter(|class| (1..=5).contains(class)).map(Self::Class),
            None => word.parse().ok().filter(|status| (100..600).contains(status)).map(Self::One),
        };
        read.ok_or_else(|| format!("`{word}` is no status; give one such as 404, or a class such as 5xx"))
    }

    fn have(self, status: u16) -> bool {
        match self {
            Self::One(one) => status == one,
            Self::Class(class) => status / 100 == class,
        }
    }
}

impl Path {
    fn read(word: &str) -> Result<Self, String> {
        if !word.starts_with(['/', '*']) {
            return Err(format!("`{word}` is no path; give a beginning such as /shop/, or a pattern such as /*.png"));
        }
        if !word.contains(['*', '?', '[', '{']) {
            return Ok(Self::Prefix(word.into()));
        }
        let glob = GlobBuilder::new(word).literal_separator(false).build();
        glob.map(|glob| Self::Glob(glob.compile_matcher())).map_err(|error| error.to_string())
    }

    fn matches(&self, path: &str) -> bool {
        match self {
            Self::Prefix(prefix) => path.starts_with(&**prefix),
            Self::Glob(glob) => glob.is_match(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;
    use std::time::Instant;

    use http::StatusCode;

    use super::super::{Followers, SeenRequest};
    use super::*;
    use crate::key::Scheme;

    fn seen(host: &str, target: &str, status: u16, time: Duration) -> Seen {
        let followers = Arc::new(Followers::default());
        let request = SeenRequest { method: "GET", target, host: host.as_bytes(), scheme: Scheme::Http };
        let mut seen = Seen::new(&followers, request, IpAddr::from([127, 0, 0, 1]), Instant::now());
        seen.belongs_to(&"shop.example".into());
        seen.answered_by_hit(StatusCode::from_u16(status).unwrap(), time);
        seen
    }

    #[test]
    fn a_request_has_to_meet_each_kind_of_condition() {
        let seen = seen("www.Shop.example:8080", "/shop/a.png?q=/b", 404, Duration::from_millis(30));
        for (query, is_wanted) in [
            ("", true),
            ("site=shop.example", true),
            ("site=www.shop.example", true),
            ("site=example", false),
            ("verdict=hit&verdict=miss", true),
            ("verdict=miss", false),
            ("slower=30ms", true),
            ("slower=31ms", false),
            ("status=404", true),
            ("status=4xx&status=500", true),
            ("status=5xx", false),
            ("path=/shop/", true),
            ("path=%2Fshop%2F", true),
            ("path=/b", false),
            ("path=*.png", true),
            ("path=/shop/*.jpg", false),
            ("method=get", true),
            ("method=POST", false),
            ("site=shop.example&status=5xx", false),
        ] {
            assert_eq!(Filter::of_query(query).unwrap().wants(&seen), is_wanted, "{query}");
        }
    }

    #[test]
    fn an_address_with_colons_is_a_host_and_a_wait_without_a_response_counts() {
        for host in ["[::1]", "[::1]:8080"] {
            assert!(Filter::of_query("site=[::1]").unwrap().wants(&seen(host, "/", 200, Duration::ZERO)), "{host}");
        }
        let mut gone = seen("a", "/", 499, Duration::ZERO);
        gone.first_byte = None;
        gone.started = Instant::now().checked_sub(Duration::from_secs(9)).unwrap();
        let slower = |time: &str| Filter::of_query(&format!("slower={time}")).unwrap().wants(&gone);
        assert_eq!((slower("8s"), slower("1h")), (true, false));
    }

    #[test]
    fn a_wrong_condition_is_explained() {
        let many = "path=/a&".repeat(VALUES_MAX + 1);
        for (query, words) in [
            ("sites=a", "there is no condition `sites`"),
            ("verdict=missed", "the verdicts are hit, stale"),
            ("slower=fast", "a duration is"),
            ("status=6xx", "no status"),
            ("status=99", "no status"),
            ("path=shop", "no path"),
            ("path=/[", "/["),
            ("path=%ff", "UTF-8"),
            (&*many, "at most"),
        ] {
            let error = Filter::of_query(query).unwrap_err();
            assert!(error.contains(words), "{query}: {error}");
        }
    }
}
