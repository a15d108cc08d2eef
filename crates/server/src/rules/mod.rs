//! The rules of a site, ready to use: which of them match a request and its response, and their effects.
//!
//! ```text
//! request  ── Rules::of_request ──> Decision   bypass? ignore reloads?
//! response ── Decision::of_response ──> Applied   times to live, what to store, fields to strip, tags to add
//! ```
//!
//! Every rule that matches applies, in the order of the file; if two rules set the same, the later one wins. Settings of no
//! rule are as in `[site.cache]`. Settings that are missing there, too, are as in RFC 9111.
//!
//! The matching rules are a set of bits. So a request allocates memory for its rules only if its path or query has escapes, and
//! a rule uses them.
//!
//! # What is absent
//! The decisions of RFC 9111: `eyewall-http` decides whether a response may be stored and how long it is fresh, from
//! [`Overrides`].

mod matcher;
mod rewrite;

use std::time::Duration;

use eyewall_http::coding::Codings;
use http::header::COOKIE;
use http::request::Parts;
use http::{HeaderMap, HeaderName, StatusCode};

use crate::config::names::Glob;
use crate::config::rule::{RULES_MAX, Rule};
use crate::config::site::{Site, SiteCache};
use crate::config::value::{Period, StatusKey, Window};
use crate::key::{CacheKey, CookieNames};
use matcher::{RequestMatcher, RequestView, ResponseMatcher};
use rewrite::Rewrite;

/// All rules of a site.
#[derive(Debug)]
pub(crate) struct Rules {
    compiled: Vec<Compiled>,
    base: Overrides,
    negative_ttl: Vec<(StatusKey, Duration)>,
    strip_response: Vec<HeaderName>,
    inspected: matcher::Inspected,
}

#[derive(Debug)]
struct Compiled {
    name: String,
    request: RequestMatcher,
    response: ResponseMatcher,
    bypass: Option<bool>,
    ignored_cookies: CookieNames,
    overrides: Overrides,
    negative_ttl: Vec<(StatusKey, Duration)>,
    strip_response: Vec<HeaderName>,
    tags: Vec<String>,
    rewrite: Option<Box<Rewrite>>,
}

/// The configuration's settings for storing and times. RFC 9111 alone decides if all are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Overrides {
    /// Don't store.
    pub(crate) no_store: Option<bool>,
    /// Time to live if the origin gives none.
    pub(crate) default_ttl: Option<Duration>,
    /// Time to live, whatever the origin gives. A response that the origin forbids to store stays forbidden.
    pub(crate) force_ttl: Option<Duration>,
    /// The shortest time to live.
    pub(crate) ttl_min: Option<Duration>,
    /// The longest time to live.
    pub(crate) ttl_max: Option<Duration>,
    /// Whether to estimate a time to live from `Last-Modified` (RFC 9111, section 4.2.2).
    pub(crate) heuristic: Option<bool>,
    /// Time to live of this response's status, if the origin gives none; it overrides `default_ttl`.
    pub(crate) negative_ttl: Option<Duration>,
    /// RFC 5861, section 3, if the origin doesn't say.
    pub(crate) stale_while_revalidate: Option<Duration>,
    /// RFC 5861, section 4, if the origin doesn't say.
    pub(crate) stale_if_error: Option<Duration>,
    /// Whether to ignore the client's directives about freshness.
    pub(crate) ignore_reload: Option<bool>,
    /// Whether responses with `Set-Cookie` are stored.
    pub(crate) store_set_cookie: Option<bool>,
    /// The codings in which stored responses are compressed.
    pub(crate) compress: Option<Codings>,
}

impl Overrides {
    /// The settings of `later`, completed by those of this one.
    pub(crate) fn then(self, later: Self) -> Self {
        Self {
            no_store: later.no_store.or(self.no_store),
            default_ttl: later.default_ttl.or(self.default_ttl),
            force_ttl: later.force_ttl.or(self.force_ttl),
            ttl_min: later.ttl_min.or(self.ttl_min),
            ttl_max: later.ttl_max.or(self.ttl_max),
            heuristic: later.heuristic.or(self.heuristic),
            negative_ttl: later.negative_ttl.or(self.negative_ttl),
            stale_while_revalidate: later.stale_while_revalidate.or(self.stale_while_revalidate),
            stale_if_error: later.stale_if_error.or(self.stale_if_error),
            ignore_reload: later.ignore_reload.or(self.ignore_reload),
            store_set_cookie: later.store_set_cookie.or(self.store_set_cookie),
            compress: later.compress.or(self.compress),
        }
    }

    fn of_site(cache: &SiteCache) -> Self {
        Self {
            no_store: None,
            default_ttl: period(cache.default_ttl),
            force_ttl: None,
            ttl_min: period(cache.ttl_min.as_ref().map(|ttl| *ttl.get_ref())),
            ttl_max: period(cache.ttl_max.as_ref().map(|ttl| *ttl.get_ref())),
            heuristic: Some(cache.heuristic),
            negative_ttl: None,
            stale_while_revalidate: window(cache.stale_while_revalidate),
            stale_if_error: window(cache.stale_if_error),
            ignore_reload: Some(cache.ignore_reload),
            store_set_cookie: Some(cache.store_set_cookie),
            compress: None,
        }
    }

    fn of_rule(rule: &Rule) -> Self {
        Self {
            no_store: rule.no_store,
            default_ttl: period(rule.default_ttl),
            force_ttl: period(rule.force_ttl),
            ttl_min: period(rule.ttl_min.as_ref().map(|ttl| *ttl.get_ref())),
            ttl_max: period(rule.ttl_max.as_ref().map(|ttl| *ttl.get_ref())),
            heuristic: rule.heuristic,
            negative_ttl: None,
            stale_while_revalidate: window(rule.stale_while_revalidate),
            stale_if_error: window(rule.stale_if_error),
            ignore_reload: rule.ignore_reload.as_ref().map(|yes| *yes.get_ref()),
            store_set_cookie: rule.store_set_cookie,
            compress: rule.compress.as_ref().map(|compress| compress.get_ref().0),
        }
    }
}

fn period(period: Option<Period>) -> Option<Duration> {
    period.map(|period| period.0)
}

fn window(window: Option<Window>) -> Option<Duration> {
    window.map(|window| window.0)
}

/// A rule and a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Explained<'a> {
    pub(crate) name: &'a str,
    /// A condition that the request doesn't meet. `None`: the rule matches it.
    pub(crate) unmet: Option<&'static str>,
    /// Whether the rule has conditions on the response, too.
    pub(crate) awaits_response: bool,
}

/// Which rules of a site match a request, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuleSet(u128);

impl RuleSet {
    fn insert(&mut self, number: usize) {
        self.0 |= 1 << number;
    }

    fn contains(self, number: usize) -> bool {
        self.0 >> number & 1 == 1
    }
}

impl Rules {
    /// The rules of a site, with its `[site.cache]` as defaults. Rules beyond [`RULES_MAX`] are ignored.
    pub(crate) fn of(site: &Site) -> Self {
        let cache = &site.cache;
        let compile = |(index, rule): (usize, &Rule)| Compiled {
            name: rule.name.as_ref().map_or_else(|| format!("rule-{}", index + 1), ToString::to_string),
            request: RequestMatcher::of(rule),
            response: ResponseMatcher::of(rule),
            bypass: rule.bypass.as_ref().map(|yes| *yes.get_ref()),
            ignored_cookies: CookieNames::of(rule.ignore_cookies.iter().map(Glob::as_str)),
            overrides: Overrides::of_rule(rule),
            negative_ttl: rule.negative_ttl.iter().map(|(status, ttl)| (*status, ttl.0)).collect(),
            strip_response: rule.strip_response.iter().map(|name| name.0.clone()).collect(),
            tags: rule.tags.iter().map(|tag| tag.0.clone()).collect(),
            rewrite: Rewrite::of(rule).map(Box::new),
        };
        let compiled: Vec<Compiled> =
            site.rule.iter().map(toml::Spanned::get_ref).take(RULES_MAX).enumerate().map(compile).collect();
        Self {
            base: Overrides::of_site(cache),
            negative_ttl: cache.negative_ttl.iter().map(|(status, ttl)| (*status, ttl.0)).collect(),
            strip_response: cache.strip_response.iter().map(|name| name.0.clone()).collect(),
            inspected: matcher::Inspected::of(compiled.iter().map(|rule| &rule.request)),
            compiled,
        }
    }

    /// Whether any of them redirects, or changes fields on their way.
    pub(crate) fn rewrite(&self) -> bool {
        self.compiled.iter().any(|rule| rule.rewrite.is_some())
    }

    /// The fields of requests that they use. One may come twice.
    pub(crate) fn looked_at(&self) -> impl Iterator<Item = &HeaderName> {
        let of_rule = |rule: &Compiled| (!rule.ignored_cookies.is_empty()).then_some(&COOKIE);
        self.compiled.iter().flat_map(move |rule| rule.request.looked_at().chain(of_rule(rule)))
    }

    /// The decision before there is a response. `key` is the request's key, whose path and query the origin would get.
    pub(crate) fn of_request<'a>(&'a self, key: &CacheKey, request: &Parts) -> Decision<'a> {
        let view = RequestView::of(self.inspected, key, request);
        let mut matched = RuleSet(0);
        for (number, _) in self.compiled.iter().enumerate().filter(|(_, rule)| rule.request.matches(&view)) {
            matched.insert(number);
        }
        self.decision(matched)
    }

    /// Each rule, and whether it matches the request.
    pub(crate) fn explained<'a>(
        &'a self,
        key: &'a CacheKey,
        request: &'a Parts,
    ) -> impl Iterator<Item = Explained<'a>> {
        let view = RequestView::of(self.inspected, key, request);
        self.compiled.iter().map(move |rule| Explained {
            name: &rule.name,
            unmet: rule.request.unmet(&view),
            awaits_response: !rule.response.is_any(),
        })
    }

    /// The effects of these rules on a request that they match.
    pub(crate) fn decision(&self, matched: RuleSet) -> Decision<'_> {
        let mut decision = Decision {
            rules: self,
            matched,
            bypass: None,
            ignore_reload: false,
            redirect: None,
            rewrites_response: false,
        };
        let mut overrides = self.base;
        for rule in self.among(matched) {
            if let Some(bypass) = rule.bypass {
                decision.bypass = bypass.then_some(rule.name.as_str());
            }
            if let Some(rewrite) = rule.rewrite.as_deref() {
                rewrite.note(&mut decision);
            }
            // A rule with conditions on the response may not match; the checks refuse such a rule with a bypass.
            if rule.response.is_any() {
                overrides = overrides.then(rule.overrides);
            }
        }
        decision.ignore_reload = overrides.ignore_reload.unwrap_or_default();
        decision
    }

    /// The rules of a set, in order.
    fn among(&self, set: RuleSet) -> impl Iterator<Item = &Compiled> {
        self.compiled.iter().enumerate().filter(move |(number, _)| set.contains(*number)).map(|(_, rule)| rule)
    }
}

/// The rules' decision about a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decision<'a> {
    rules: &'a Rules,
    matched: RuleSet,
    /// The rule that forbids to answer the request from the cache and to store its response.
    pub(crate) bypass: Option<&'a str>,
    /// Whether to ignore the client's directives about freshness.
    pub(crate) ignore_reload: bool,
    redirect: Option<&'a Rewrite>,
    /// Whether a rule may change fields of the response.
    rewrites_response: bool,
}

impl<'a> Decision<'a> {
    /// The rules that match the request.
    pub(crate) fn matched(&self) -> RuleSet {
        self.matched
    }

    /// Drops from the request's fields the cookies that these rules ignore.
    pub(crate) fn drop_ignored_cookies(&self, fields: &mut HeaderMap) {
        for rule in self.rules.among(self.matched) {
            rule.ignored_cookies.drop_from(fields);
        }
    }

    /// Fields to strip from interim responses: all fields that a rule would strip from a response of any status and type, because
    /// interim responses have neither. One may come twice.
    pub(crate) fn strippable(&self) -> impl Iterator<Item = &'a HeaderName> + use<'a> {
        self.rules.strip_response.iter().chain(self.rules.among(self.matched).flat_map(|rule| &rule.strip_response))
    }

    /// Their effects on the response to it, which may be a stored one.
    pub(crate) fn of_response(&self, status: StatusCode, fields: &HeaderMap) -> Applied<'a> {
        let rules = self.rules;
        let mut matched = RuleSet(0);
        let mut overrides = rules.base;
        overrides.negative_ttl = of_status(&rules.negative_ttl, status);
        let of_request = rules.compiled.iter().enumerate().filter(|(number, _)| self.matched.contains(*number));
        for (number, rule) in of_request.filter(|(_, rule)| rule.response.matches(status, fields)) {
            matched.insert(number);
            overrides = overrides.then(rule.overrides);
            overrides.negative_ttl = of_status(&rule.negative_ttl, status).or(overrides.negative_ttl);
        }
        Applied { rules, matched, overrides }
    }
}

/// The time of a status, which takes precedence over the time of its class.
fn of_status(times: &[(StatusKey, Duration)], status: StatusCode) -> Option<Duration> {
    let means = |single: bool| times.iter().find(|(key, _)| key.0.is_single() == single && key.0.contains(status));
    means(true).or_else(|| means(false)).map(|(_, ttl)| *ttl)
}

/// The rules' effects on a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Applied<'a> {
    rules: &'a Rules,
    matched: RuleSet,
    /// Settings for storing and times, of all rules together.
    pub(crate) overrides: Overrides,
}

impl<'a> Applied<'a> {
    /// Fields that are neither stored nor passed on. One may come twice.
    pub(crate) fn stripped(&self) -> impl Iterator<Item = &'a HeaderName> + use<'a> {
        self.rules.strip_response.iter().chain(self.matching().flat_map(|rule| &rule.strip_response))
    }

    /// Tags of the stored response besides the origin's. One may come twice.
    pub(crate) fn tags(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.matching().flat_map(|rule| &rule.tags).map(String::as_str)
    }

    /// Whether the rule of this number applies, in the order of the file.
    pub(crate) fn has(&self, number: usize) -> bool {
        self.matched.contains(number)
    }

    /// Names of the rules that apply, in order.
    #[cfg(test)]
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.matching().map(|rule| rule.name.as_str())
    }

    fn matching(&self) -> impl Iterator<Item = &'a Compiled> + use<'a> {
        self.rules.among(self.matched)
    }
}

#[cfg(test)]
mod tests;
