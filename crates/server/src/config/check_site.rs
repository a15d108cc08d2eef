//! What more than one key, or a look at the disk, is needed to judge of a site.

use std::ops::Range;

use http::HeaderName;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, COOKIE, HOST, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, IF_RANGE, RANGE, TE, TRANSFER_ENCODING,
};
use toml::Spanned;

use super::check::file;
use super::names::{Glob, HostPattern};
use super::origin::OriginSettings;
use super::problem::Fault;
use super::rule::Rule;
use super::site::Site;
use super::value::Period;
use crate::key::{CookieNames, KeyRules};
use crate::rules::RULES_MAX;

/// Fields that are no part of a key, and why.
const NOT_IN_KEYS: [(HeaderName, &str); 13] = [
    (HOST, "the host is in every key"),
    (COOKIE, "name the cookies that count, by `cookies`"),
    (AUTHORIZATION, "answers to who is known by it are stored as RFC 9111 has it"),
    (ACCEPT_ENCODING, "answers that vary by it are told apart by `Vary`"),
    (RANGE, "parts of an answer are parts of one entry"),
    (IF_RANGE, "conditions are judged for each request"),
    (IF_NONE_MATCH, "conditions are judged for each request"),
    (IF_MODIFIED_SINCE, "conditions are judged for each request"),
    (CACHE_CONTROL, "what clients demand of freshness is judged for each request"),
    (CONNECTION, "it is about one connection"),
    (TE, "it is about one connection"),
    (TRANSFER_ENCODING, "it is about one connection"),
    (CONTENT_LENGTH, "it is about one message"),
];

pub(super) fn site(found: &Spanned<Site>, faults: &mut Vec<Fault>) {
    let site = found.get_ref();
    if site.origins.is_empty() && site.root.is_none() {
        let hint = "give `origins`, such as [\"http://127.0.0.1:3000\"], or `root`, a folder";
        faults.push(Fault::absence(found.span(), "this site has nothing to serve", hint));
    }
    if site.hosts.is_empty() {
        faults.push(Fault::absence(found.span(), "`hosts` of this site is empty", "leave it out for all other hosts"));
    }
    aliases(site, faults);
    root(site, faults);
    origins(site, faults);
    for field in &site.key.headers {
        if let Some((_, why)) = NOT_IN_KEYS.iter().find(|(name, _)| *name == field.get_ref().0) {
            faults.push(Fault::new(field.span(), format!("`{}` can't be a part of keys", field.get_ref()), *why));
        }
    }
    ignored_cookies(found, faults);
    ttl_order(site.cache.ttl_min.as_ref(), site.cache.ttl_max.as_ref(), faults);
    for rule in site.rule.iter().filter(|rule| !rule.span().is_empty()) {
        check_rule(rule, faults);
    }
    if let Some(beyond) = site.rule.get(RULES_MAX) {
        let message = format!("this site has {} rules, those of its preset included", site.rule.len());
        faults.push(Fault::new(beyond.span(), message, format!("bring them together: there can be {RULES_MAX}")));
    }
}

/// A cookie that is dropped from requests can't tell entries apart.
fn ignored_cookies(found: &Spanned<Site>, faults: &mut Vec<Fault>) {
    let site = found.get_ref();
    let by_rules = CookieNames::of(site.rule.iter().flat_map(|rule| &rule.get_ref().ignore_cookies).map(Glob::as_str));
    let rules = KeyRules::of(&site.key);
    let is_ignored = |name: &[u8]| rules.ignored_cookies().contains(name) || by_rules.contains(name);
    for name in site.key.cookies.iter().filter(|name| is_ignored(name.0.as_bytes())) {
        let hint = "take it out of `cookies`, or out of `ignore_cookies`; `ignore_analytics = false` ignores those only that are named";
        faults.push(Fault::absence(found.span(), format!("the cookie `{name}` is in keys, but ignored"), hint));
    }
}

fn aliases(site: &Site, faults: &mut Vec<Fault>) {
    let has_name = site.hosts.iter().any(|host| matches!(host.get_ref(), HostPattern::Name(_)));
    if let Some(alias) = site.aliases.first().filter(|_| !has_name) {
        let hint = "give `hosts` a name: requests for aliases are taken for the first of them";
        faults.push(Fault::absence(alias.span(), "an alias of what? This site has no host by name", hint));
    }
}

fn root(site: &Site, faults: &mut Vec<Fault>) {
    if let Some(root) = &site.root {
        let shown = root.get_ref().display();
        match std::fs::read_dir(root.get_ref()) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
                faults.push(Fault::new(root.span(), format!("{shown} is no folder"), "name the folder of the files"));
            }
            Err(error) => {
                let hint = "name a folder that this user may read";
                faults.push(Fault::new(root.span(), format!("{shown} can't be served: {error}"), hint));
            }
        }
    } else {
        let spans = [
            ("index", site.index.as_ref().map(Spanned::span)),
            ("symlinks", site.symlinks.as_ref().map(Spanned::span)),
            ("dotfiles", site.dotfiles.as_ref().map(Spanned::span)),
            ("precompressed", site.precompressed.as_ref().map(Spanned::span)),
        ];
        for (name, span) in spans.into_iter().filter_map(|(name, span)| Some((name, span?))) {
            let message = format!("`{name}` is about files, and this site has none");
            faults.push(Fault::absence(span, message, "give `root`, or leave it out"));
        }
    }
    if let Some(index) = &site.index {
        for name in index.get_ref().iter().filter(|name| name.is_empty() || name.contains('/') || name.starts_with('.'))
        {
            let message = format!("`{name}` can't stand for a folder");
            faults.push(Fault::new(index.span(), message, "give names of files, without slashes, such as index.html"));
        }
    }
}

fn origins(site: &Site, faults: &mut Vec<Fault>) {
    for (index, origin) in site.origins.iter().enumerate() {
        if site.origins[..index].iter().any(|before| before.get_ref() == origin.get_ref()) {
            faults.push(Fault::new(origin.span(), format!("{} is named twice", origin.get_ref()), "leave one out"));
        }
    }
    let Some(found) = &site.origin else { return };
    let settings: &OriginSettings = found.get_ref();
    if site.origins.is_empty() {
        let hint = "give `origins`, or leave the table out";
        faults.push(Fault::absence(found.span(), "[site.origin] is about origins, and this site has none", hint));
    }
    if let Some(tls) = &settings.tls {
        if !site.origins.is_empty() && !site.origins.iter().any(|origin| origin.get_ref().is_secure()) {
            let hint = "give an https:// origin, or leave it out";
            faults.push(Fault::absence(tls.span(), "`tls` does nothing: no origin of this site is https", hint));
        }
        if let Some(ca_file) = &tls.get_ref().ca_file {
            file(ca_file, "the certificates", faults);
        }
    }
}

fn ttl_order(min: Option<&Spanned<Period>>, max: Option<&Spanned<Period>>, faults: &mut Vec<Fault>) {
    if let (Some(min), Some(max)) = (min, max)
        && min.get_ref() > max.get_ref()
    {
        let message = format!("`ttl_min` is longer than `ttl_max`, {}", max.get_ref());
        faults.push(Fault::new(min.span(), message, "lower it, or raise `ttl_max`"));
    }
}

fn check_rule(found: &Spanned<Rule>, faults: &mut Vec<Fault>) {
    let rule = found.get_ref();
    let span = found.span();
    for (name, span) in empty_lists(rule) {
        let so = if name.starts_with("unless_") { "" } else { "this rule can never match: " };
        let message = format!("{so}`{name}` names nothing");
        faults.push(Fault::absence(span, message, "leave it out, or name something"));
    }
    if !does_anything(rule) {
        let hint = "say what to do, such as bypass = true or default_ttl = \"60s\"";
        faults.push(Fault::absence(span.clone(), "this rule does nothing", hint));
    }
    let response = rule.content_type.as_ref().map(Spanned::span).or(rule.status.as_ref().map(Spanned::span));
    if let Some(at) = response {
        let decided_before = [
            ("bypass", rule.bypass.is_some(), "use `no_store`"),
            ("ignore_cookies", !rule.ignore_cookies.is_empty(), "leave it out"),
            ("ignore_reload", rule.ignore_reload.is_some(), "leave it out"),
        ];
        for (name, _, instead) in decided_before.into_iter().filter(|(_, is_given, _)| *is_given) {
            let message =
                format!("`{name}` is decided before there is a response, whose type and status nobody knows then");
            faults.push(Fault::new(
                at.clone(),
                message,
                format!("{instead}, or match by path, method, query, cookie or header"),
            ));
        }
    }
    never_matches(rule, &span, faults);
    ttl_order(rule.ttl_min.as_ref(), rule.ttl_max.as_ref(), faults);
}

fn empty_lists(rule: &Rule) -> impl Iterator<Item = (&'static str, Range<usize>)> {
    fn empty<T>(list: Option<&Spanned<Vec<T>>>) -> Option<Range<usize>> {
        list.filter(|list| list.get_ref().is_empty()).map(Spanned::span)
    }
    let lists = [
        ("path", empty(rule.path.as_ref())),
        ("prefix", empty(rule.prefix.as_ref())),
        ("extension", empty(rule.extension.as_ref())),
        ("query", empty(rule.query.as_ref())),
        ("method", empty(rule.method.as_ref())),
        ("cookie", empty(rule.cookie.as_ref())),
        ("unless_path", empty(rule.unless_path.as_ref())),
        ("unless_query", empty(rule.unless_query.as_ref())),
        ("unless_cookie", empty(rule.unless_cookie.as_ref())),
        ("content_type", empty(rule.content_type.as_ref())),
        ("status", empty(rule.status.as_ref())),
        ("header", rule.header.as_ref().filter(|all| all.get_ref().is_empty()).map(Spanned::span)),
    ];
    lists.into_iter().filter_map(|(name, span)| Some((name, span?)))
}

fn does_anything(rule: &Rule) -> bool {
    rule.bypass.is_some()
        || !rule.ignore_cookies.is_empty()
        || rule.no_store.is_some()
        || rule.default_ttl.is_some()
        || rule.force_ttl.is_some()
        || rule.ttl_min.is_some()
        || rule.ttl_max.is_some()
        || rule.heuristic.is_some()
        || rule.stale_while_revalidate.is_some()
        || rule.stale_if_error.is_some()
        || !rule.negative_ttl.is_empty()
        || rule.ignore_reload.is_some()
        || rule.store_set_cookie.is_some()
        || !rule.strip_response.is_empty()
        || !rule.tags.is_empty()
}

/// Paths that are given as they are can be held against what else the rule asks of the path.
fn never_matches(rule: &Rule, span: &Range<usize>, faults: &mut Vec<Fault>) {
    let Some(paths) = rule.path.as_ref().filter(|paths| !paths.get_ref().is_empty()) else { return };
    if paths.get_ref().iter().any(|path| !path.0.is_literal()) {
        return;
    }
    let mut literals = paths.get_ref().iter().map(|path| path.0.as_str());
    let has_prefix = |path: &str| {
        rule.prefix.as_ref().is_none_or(|all| all.get_ref().iter().any(|prefix| path.starts_with(&prefix.0)))
    };
    let has_extension = |path: &str| {
        let end = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, end)| end);
        rule.extension.as_ref().is_none_or(|all| {
            end.is_some_and(|end| all.get_ref().iter().any(|wanted| wanted.0.eq_ignore_ascii_case(end)))
        })
    };
    if !literals.any(|path| has_prefix(path) && has_extension(path)) {
        let message = "this rule can never match: none of its paths has one of its prefixes and extensions";
        faults.push(Fault::new(span.clone(), message, "all that a rule asks for has to hold; make two rules of it"));
    }
}
