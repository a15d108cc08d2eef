//! Checks of a site that need more than one key, or the disk.

use std::ops::Range;

use http::HeaderName;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, COOKIE, HOST, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, IF_RANGE, RANGE, TE, TRANSFER_ENCODING,
};
use toml::Spanned;

use super::access_log;
use super::check_limits;
use super::check_path::{self, file};
use super::check_rewrite;
use super::compression::SiteCompression;
use super::names::{Glob, HostPattern};
use super::origin::OriginSettings;
use super::problem::Fault;
use super::rule::{RULES_MAX, Rule};
use super::site::Site;
use super::value::{Period, Size};

/// Fields that can't be part of a key, and why.
const NOT_IN_KEYS: [(HeaderName, &str); 13] = [
    (HOST, "every key has the host"),
    (COOKIE, "give the names of the cookies in `cookies`"),
    (AUTHORIZATION, "RFC 9111 says when responses to authenticated requests are stored"),
    (ACCEPT_ENCODING, "`Vary` of a response tells its variants apart"),
    (RANGE, "an entry serves all ranges of its response"),
    (IF_RANGE, "Eyewall evaluates conditions for each request"),
    (IF_NONE_MATCH, "Eyewall evaluates conditions for each request"),
    (IF_MODIFIED_SINCE, "Eyewall evaluates conditions for each request"),
    (CACHE_CONTROL, "Eyewall evaluates a client's directives for each request"),
    (CONNECTION, "it concerns one connection"),
    (TE, "it concerns one connection"),
    (TRANSFER_ENCODING, "it concerns one connection"),
    (CONTENT_LENGTH, "it concerns one message"),
];

pub(super) fn site(found: &Spanned<Site>, faults: &mut Vec<Fault>) {
    let site = found.get_ref();
    if site.origins.is_empty() && site.root.is_none() {
        let hint = "give `origins`, such as [\"http://127.0.0.1:3000\"], or `root`, a folder";
        faults.push(Fault::absence(found.span(), "this site has nothing to serve", hint));
    }
    if site.hosts.is_empty() {
        faults.push(Fault::absence(
            found.span(),
            "`hosts` of this site is empty",
            "remove it to serve all other hosts",
        ));
    }
    aliases(site, faults);
    root(site, faults);
    origins(site, faults);
    compression(site, faults);
    check_limits::site(site, faults);
    if let Some(log) = &site.access_log {
        access_log::check_site(log, faults);
    }
    for field in &site.key.headers {
        if let Some((_, why)) = NOT_IN_KEYS.iter().find(|(name, _)| *name == field.get_ref().0) {
            faults.push(Fault::new(field.span(), format!("`{}` can't be part of a key", field.get_ref()), *why));
        }
    }
    ignored_cookies(found, faults);
    error_pages(site, faults);
    languages(site, faults);
    ttl_order(site.cache.ttl_min.as_ref(), site.cache.ttl_max.as_ref(), faults);
    for rule in site.rule.iter().filter(|rule| !rule.span().is_empty()) {
        check_rule(rule, faults);
        check_rewrite::rewriting(rule, site, faults);
    }
    if let Some(beyond) = site.rule.get(RULES_MAX) {
        let message = format!("this site has {} rules, with those of its preset", site.rule.len());
        faults.push(Fault::new(beyond.span(), message, format!("combine some of them: a site can have {RULES_MAX}")));
    }
}

/// A cookie that is dropped from requests can't tell entries apart.
fn ignored_cookies(found: &Spanned<Site>, faults: &mut Vec<Fault>) {
    let site = found.get_ref();
    let by_rules = site.rule.iter().flat_map(|rule| &rule.get_ref().ignore_cookies).map(Glob::as_str);
    let ignored = Glob::set(site.key.dropped_cookies().chain(by_rules), false);
    for name in site.key.cookies.iter().filter(|name| ignored.is_match(&name.0)) {
        let hint = "remove it from `cookies` or from `ignore_cookies`; with `ignore_analytics = false` only named cookies are ignored";
        faults.push(Fault::absence(
            found.span(),
            format!("the cookie `{name}` is part of the key, but also ignored"),
            hint,
        ));
    }
}

fn error_pages(site: &Site, faults: &mut Vec<Fault>) {
    for (status, path) in site.error_page.iter().filter(|(status, _)| !status.0.is_error()) {
        let message = format!("{status} is not the status of an error");
        faults.push(Fault::new(path.span(), message, "give 400 to 599, 4xx or 5xx"));
    }
    let without = |missing: &str| format!("`intercept_errors` has no effect without `{missing}`");
    if let Some(intercepts) = &site.intercept_errors {
        if site.error_page.is_empty() {
            faults.push(Fault::absence(intercepts.span(), without("error_page"), "give pages, or remove it"));
        } else if site.origins.is_empty() {
            faults.push(Fault::absence(intercepts.span(), without("origins"), "remove it"));
        }
    }
}

fn languages(site: &Site, faults: &mut Vec<Fault>) {
    let Some(found) = &site.accept_language else { return };
    let languages = found.get_ref();
    if languages.is_empty() {
        faults.push(Fault::absence(found.span(), "`accept_language` is empty", "name a language, or remove it"));
    }
    for (index, tag) in languages.iter().enumerate() {
        if languages[..index].iter().any(|before| before.0.eq_ignore_ascii_case(&tag.0)) {
            faults.push(Fault::new(found.span(), format!("`accept_language` has {tag} twice"), "remove one"));
        }
    }
    if site.origins.is_empty() {
        let hint = "remove it: files have no variants by language";
        faults.push(Fault::absence(found.span(), "`accept_language` has no effect without `origins`", hint));
    }
}

fn aliases(site: &Site, faults: &mut Vec<Fault>) {
    let has_name = site.hosts.iter().any(|host| matches!(host.get_ref(), HostPattern::Name(_)));
    if let Some(alias) = site.aliases.first().filter(|_| !has_name) {
        let hint = "give a name in `hosts`: requests for an alias count as requests for the first name";
        faults.push(Fault::absence(alias.span(), "this site has an alias, but no host with a name", hint));
    }
}

fn root(site: &Site, faults: &mut Vec<Fault>) {
    if let Some(root) = &site.root {
        let shown = root.get_ref().display();
        match std::fs::read_dir(root.get_ref()) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
                faults.push(Fault::new(root.span(), format!("{shown} is not a folder"), "give the path of a folder"));
            }
            Err(error) => {
                let hint = check_path::hint(&error, "give a folder that this user may read");
                faults.push(Fault::new(root.span(), format!("can't serve {shown}: {error}"), hint));
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
            let message = format!("`{name}` has no effect without `root`");
            faults.push(Fault::absence(span, message, "give `root`, or remove the key"));
        }
    }
    if let Some(index) = &site.index {
        for name in index.get_ref().iter().filter(|name| name.is_empty() || name.contains('/') || name.starts_with('.'))
        {
            let message = format!("`{name}` can't be an index file");
            faults.push(Fault::new(index.span(), message, "give a file name without slashes, such as index.html"));
        }
    }
}

/// Only responses of origins are compressed: the settings of something else have no effect.
fn compression(site: &Site, faults: &mut Vec<Fault>) {
    let compresses = site.compression().is_some();
    if let Some(compress) = site.compress.as_ref().filter(|_| compresses && site.origins.is_empty()) {
        let hint = "remove it; `precompressed = true` serves compressed files that lie beside the plain ones";
        faults.push(Fault::absence(compress.span(), "`compress` has no effect without `origins`", hint));
    }
    let Some(settings) = &site.compression else { return };
    if !compresses {
        let message = "`compression` has no effect without `compress`";
        faults.push(Fault::absence(settings.span(), message, "give `compress = true`, or remove it"));
    }
    let SiteCompression { bytes_min, bytes_max, .. } = settings.get_ref();
    if bytes_min.0 > bytes_max.0 {
        let (least, most) = (Size(bytes_min.0), Size(bytes_max.0));
        let message = format!("`bytes_min` is {least}, and `bytes_max` is {most}: nothing would be compressed");
        faults.push(Fault::new(settings.span(), message, "give a smaller `bytes_min`"));
    }
}

fn origins(site: &Site, faults: &mut Vec<Fault>) {
    for (index, origin) in site.origins.iter().enumerate() {
        if site.origins[..index].iter().any(|before| before.get_ref() == origin.get_ref()) {
            faults.push(Fault::new(origin.span(), format!("`origins` has {} twice", origin.get_ref()), "remove one"));
        }
    }
    let Some(found) = &site.origin else { return };
    let settings: &OriginSettings = found.get_ref();
    if site.origins.is_empty() {
        let hint = "give `origins`, or remove the table";
        faults.push(Fault::absence(found.span(), "[site.origin] has no effect without `origins`", hint));
    }
    if let Some(tls) = &settings.tls {
        if !site.origins.is_empty() && !site.origins.iter().any(|origin| origin.get_ref().is_secure()) {
            let hint = "give an https:// origin, or remove the key";
            faults.push(Fault::absence(tls.span(), "`tls` has no effect: no origin of this site is https", hint));
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
        let effect = if name.starts_with("unless_") { "" } else { "this rule can never match: " };
        let message = format!("{effect}`{name}` is empty");
        faults.push(Fault::absence(span, message, "remove it, or add an element"));
    }
    if !does_anything(rule) {
        let hint = "add an effect, such as bypass = true or default_ttl = \"60s\"";
        faults.push(Fault::absence(span.clone(), "this rule has no effect", hint));
    }
    let response = rule.content_type.as_ref().map(Spanned::span).or(rule.status.as_ref().map(Spanned::span));
    if let Some(at) = response {
        let decided_before = [
            ("bypass", rule.bypass.is_some(), "use `no_store`"),
            ("ignore_cookies", !rule.ignore_cookies.is_empty(), "remove it"),
            ("ignore_reload", rule.ignore_reload.is_some(), "remove it"),
            ("redirect", rule.redirect.is_some(), "remove it"),
            ("set_request_headers", !rule.set_request_headers.is_empty(), "use `set_headers`"),
            ("remove_request_headers", !rule.remove_request_headers.is_empty(), "use `remove_headers`"),
        ];
        for (name, _, instead) in decided_before.into_iter().filter(|(_, is_given, _)| *is_given) {
            let message = format!("`{name}` applies before the response has a type and a status");
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
        || rule.compress.is_some()
        || !rule.strip_response.is_empty()
        || !rule.tags.is_empty()
        || rewrites(rule)
}

fn rewrites(rule: &Rule) -> bool {
    rule.redirect.is_some()
        || !rule.set_headers.is_empty()
        || !rule.add_headers.is_empty()
        || !rule.remove_headers.is_empty()
        || !rule.set_request_headers.is_empty()
        || !rule.remove_request_headers.is_empty()
}

/// Checks paths without wildcards against the other conditions of the rule on the path.
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
        faults.push(Fault::new(span.clone(), message, "all conditions of a rule must hold; make two rules of it"));
    }
}
