//! What would become of a request, and why. It takes the steps of `service.rs`, by the same functions, without sending anything, and
//! leaves no trace in the volume.
//!
//! ```text
//! Question ──> site ──> fields ──> key ──> redirect? ──> file? ──> pass? ──> the stored responses     each may end it with a verdict
//! ```

mod because;
mod explanation;
mod stored;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use eyewall::Cache;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::field::connection::{self, Way};
use eyewall_http::policy::Policy;
use eyewall_http::reuse;
use eyewall_page_cache::selection::Stored;
use eyewall_page_cache::visit::{Outlook, Prospect, Verdict as Judged};
use eyewall_tls::clock::SystemClock;
use http::header::{AUTHORIZATION, HOST, LOCATION};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};

use super::error::Error;
use super::files::Named;
use super::origin::asked_protocol;
use super::purge::method::is_purge;
use super::shared::{Shared, SharedSite};
use super::tls::policy;
use super::{NAME, fields, proxy};
use crate::config::Config;
use crate::key::{CacheKey, RequestHost, Scheme};
use crate::rules::{Decision, Explained};
pub use explanation::{ChangedField, Explanation, KeyOf, Question, RuleOf, SiteOf, Step, StoredOf, Verdict};

/// The answer to a question. A question that is no request is refused with words for its author.
pub(crate) async fn explain(shared: &Shared, question: &Question) -> Result<Explanation, String> {
    let (parts, scheme) = request_of(question)?;
    let explanation = Explanation {
        method: question.method.clone(),
        url: question.url.clone(),
        verdict: Verdict::Error,
        cache_status: None,
        status: None,
        because: String::new(),
        site: None,
        changed_fields: Vec::new(),
        key: None,
        rules: Vec::new(),
        stored: None,
    };
    let mut explainer = Explainer { shared, explanation };
    explainer.run(parts, scheme).await;
    Ok(explainer.explanation)
}

/// The same for a server with this configuration that isn't running, and its volume.
///
/// # Errors
/// [`Error::Question`], and those of a server that starts with this configuration.
pub fn of_volume(config: Config, cache: &Cache, question: &Question) -> Result<Explanation, Error> {
    let shared = Shared::new(config, cache, Arc::new(SystemClock))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(Error::Start)?;
    runtime.block_on(explain(&shared, question)).map_err(Error::Question)
}

/// The head of the request, as it would arrive over HTTP/1.1.
fn request_of(question: &Question) -> Result<(Parts, Scheme), String> {
    const EXAMPLE: &str = "give an address such as http://example.org/page";
    let uri: Uri = question.url.parse().map_err(|error| format!("{}: {error}; {EXAMPLE}", question.url))?;
    let scheme = match uri.scheme_str() {
        Some("http") => Scheme::Http,
        Some("https") => Scheme::Https,
        _ => return Err(format!("{} has no scheme; {EXAMPLE}", question.url)),
    };
    let authority = uri.authority().ok_or_else(|| format!("{} has no host; {EXAMPLE}", question.url))?;
    let method = Method::from_bytes(question.method.as_bytes())
        .map_err(|_| format!("{:?} is no method; give one such as GET or HEAD", question.method))?;
    if is_purge(&method) {
        return Err("a purge is no request for a page; `eyewall purge --server` purges".to_owned());
    }
    if authority.as_str().contains('@') {
        return Err("clients send a user and a password in Authorization; give that field in place of them".to_owned());
    }
    if let Some((name, _)) = question
        .headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding"))
    {
        return Err(format!("requests with content can't be explained; leave out {name}"));
    }
    if method == Method::QUERY {
        return Err("the content of a QUERY is part of its key; no QUERY can be explained".to_owned());
    }
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = target(&uri).parse().map_err(|_| EXAMPLE)?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_str(authority.as_str()).map_err(|_| EXAMPLE)?);
    for (name, value) in &question.headers {
        let named = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("{name:?} is no name of a field"))?;
        let told = HeaderValue::from_str(value)
            .map_err(|_| format!("{name}: the value has characters that no field can have"))?;
        if named == HOST {
            headers.insert(HOST, told);
        } else {
            headers.append(named, told);
        }
    }
    Ok((request.into_parts().0, scheme))
}

/// The target of a request for an address, which may have a query without a path.
fn target(address: &Uri) -> String {
    let target = address.path_and_query().map_or("/", |target| target.as_str());
    if target.starts_with('/') { target.to_owned() } else { format!("/{target}") }
}

struct Explainer<'a> {
    shared: &'a Shared,
    explanation: Explanation,
}

impl Explainer<'_> {
    fn end(&mut self, verdict: Verdict, because: impl Into<String>) {
        self.explanation.verdict = verdict;
        self.explanation.because = because.into();
    }

    /// The server itself answers with this status.
    fn answered(&mut self, verdict: Verdict, status: StatusCode, because: impl Into<String>) {
        self.explanation.status = Some(status.as_u16());
        self.end(verdict, because);
    }

    fn told(&mut self, status: &CacheStatus) {
        self.explanation.cache_status = Some(status.member(NAME));
    }

    async fn run(&mut self, mut parts: Parts, scheme: Scheme) {
        let shared = self.shared;
        if parts.method == Method::CONNECT {
            return self.answered(
                Verdict::Error,
                StatusCode::METHOD_NOT_ALLOWED,
                "this server does not support CONNECT",
            );
        }
        let host = match RequestHost::of(&parts) {
            Ok(host) => host,
            Err(error) => return self.answered(Verdict::Error, error.status(), error.to_string()),
        };
        let found = shared.by_host.number_of(host.name());
        let Some((number, of_site)) = found.and_then(|number| Some((number, shared.sites.get(number)?))) else {
            let words = format!("no site of this server has the host {}", host.name());
            return self.answered(Verdict::Error, StatusCode::MISDIRECTED_REQUEST, words);
        };
        let site = &of_site.site;
        self.explanation.site = Some(SiteOf {
            hosts: site.settings.hosts.iter().map(|host| host.get_ref().to_string()).collect(),
            number: number + 1,
            preset: site.settings.preset.map(|preset| preset.name().to_owned()),
        });
        if site.settings.redirects_to_https() && scheme == Scheme::Http {
            let response = policy::redirect(&parts, &host, shared.https_port);
            let words = "the site has redirect_to_https";
            return self.redirected(response.status(), response.headers().get(LOCATION), words);
        }
        let before = parts.headers.clone();
        if shared.purge_token.as_ref().is_some_and(|token| token.is_shown_by(&parts.headers)) {
            parts.headers.remove(AUTHORIZATION);
        }
        fields::receive(&mut parts.headers, &site.key, false);
        self.explanation.changed_fields = changed(&before, &parts.headers);
        let key = match CacheKey::of(&site.key, &host, scheme, &parts) {
            Ok(key) => key,
            Err(error) => return self.answered(Verdict::Error, error.status(), error.to_string()),
        };
        self.explanation.key = Some(key_of(&key, &parts, |piece| site.key.strips(piece)));
        let rules = site.rules.explained(&key, &parts);
        self.explanation.rules = rules
            .map(|Explained { name, unmet, awaits_response }| RuleOf {
                name: name.to_owned(),
                applies: unmet.is_none(),
                unmet: unmet.map(str::to_owned),
                awaits_response: unmet.is_none() && awaits_response,
            })
            .collect();
        self.answer(of_site, parts, &key).await;
    }

    /// The part behind the key.
    async fn answer(&mut self, of_site: &SharedSite, mut parts: Parts, key: &CacheKey) {
        let site = &of_site.site;
        let decision = site.rules.of_request(key, &parts);
        if let Some((status, location)) = decision.redirect(key) {
            let location = HeaderValue::from_str(&location).ok();
            return self.redirected(status, location.as_ref(), "the last rule with a redirect that matches");
        }
        let is_answerable = reuse::is_answerable(&parts.method);
        if let Some(files) = of_site.files.as_ref().filter(|_| is_answerable) {
            match files.named(&parts).await {
                Named::File => return self.end(Verdict::File, format!("{} has this file", files.root().display())),
                Named::Folder => {
                    let words = format!(
                        "{} has a folder of this name, whose address ends with a slash",
                        files.root().display()
                    );
                    return self.answered(Verdict::Redirect, StatusCode::MOVED_PERMANENTLY, words);
                }
                Named::Unreadable(status) => {
                    return self.answered(Verdict::Error, status, "the file can't be read");
                }
                Named::Nothing | Named::Malformed if of_site.origins.is_some() => {}
                Named::Nothing => {
                    let words = format!("{} has no such file, and the site has no origins", files.root().display());
                    return self.answered(Verdict::Error, StatusCode::NOT_FOUND, words);
                }
                Named::Malformed => {
                    return self.answered(Verdict::Error, StatusCode::BAD_REQUEST, "the path is malformed");
                }
            }
        }
        if of_site.origins.is_none() {
            let words = "the site has files only, and they have only GET and HEAD";
            return self.answered(Verdict::Error, StatusCode::METHOD_NOT_ALLOWED, words);
        }
        if !is_answerable || asked_protocol(&parts.headers).is_some() {
            let is_get = parts.method == Method::GET;
            if connection::step(&parts.method, &mut parts.headers) == Way::EndsHere {
                let status = if parts.method == Method::OPTIONS {
                    StatusCode::NO_CONTENT
                } else {
                    StatusCode::METHOD_NOT_ALLOWED
                };
                let words = "its Max-Forwards is 0, so it goes no further (RFC 9110, section 7.6.2)";
                return self.answered(Verdict::Error, status, words);
            }
            let method = &parts.method;
            let words = if is_answerable {
                "it asks for another protocol".to_owned()
            } else if method.is_safe() {
                format!("{method} isn't answered from the cache (RFC 9111, section 4)")
            } else {
                format!(
                    "{method} isn't answered from the cache; if it succeeds, it purges what is stored for this address (RFC 9111, \
                     section 4.4)"
                )
            };
            self.told(&CacheStatus::forwarded(if is_get { Forward::Bypass } else { Forward::Method }));
            return self.end(Verdict::Pass, words);
        }
        let before = parts.headers.clone();
        decision.drop_ignored_cookies(&mut parts.headers);
        decision.rewrite_request(&mut parts.headers);
        self.explanation.changed_fields.extend(changed(&before, &parts.headers));
        if let Some(rule) = decision.bypass {
            self.told(&CacheStatus::forwarded(Forward::Bypass).detail(rule));
            return self.end(Verdict::Pass, format!("rule {rule} has bypass = true"));
        }
        self.judge(of_site, parts, key, decision).await;
    }

    /// The part of the page cache.
    async fn judge(&mut self, of_site: &SharedSite, parts: Parts, key: &CacheKey, decision: Decision<'_>) {
        let (site, shared) = (&of_site.site, self.shared);
        let settings = proxy::settings(site, shared);
        let mut prospect = Prospect::new(&settings, key.as_bytes(), parts);
        if decision.ignore_reload {
            prospect.directives = prospect.directives.without_reloads();
        }
        let directives = prospect.directives;
        let outlook = Outlook::of(&shared.pages, &settings, &prospect).await;
        self.told(&outlook.status);
        let unstorable = if outlook.is_unstorable { "; the last response to it could not be stored" } else { "" };
        match outlook.verdict {
            None => self.end(Verdict::Pass, "the volume has failed: it has lost bytes, or its file was replaced"),
            Some(Judged::Stored { stored, reuse, .. }) => {
                let now = settings.now();
                self.explanation.stored = Some(self.describe(&stored, &settings.policy, decision));
                let (verdict, words) = because::of_reuse(reuse, &stored, &directives, now);
                let (verdict, words) = match verdict {
                    Verdict::Hit | Verdict::Stale if outlook.is_partial => {
                        (Verdict::Partial, format!("{words}, but parts of it were evicted"))
                    }
                    _ => (verdict, words),
                };
                if verdict == Verdict::Error {
                    return self.answered(verdict, StatusCode::GATEWAY_TIMEOUT, words);
                }
                self.end(verdict, words);
            }
            Some(Judged::Failure(status, left)) => {
                let words =
                    format!("an error with this status is remembered, for {} s more (negative_ttl)", left.as_secs());
                self.answered(Verdict::Hit, status, words);
            }
            Some(Judged::Timeout) => {
                let words = "nothing is stored that may be sent, and the client wants nothing else (only-if-cached; RFC 9111, section 5.2.1.7)";
                self.answered(Verdict::Error, StatusCode::GATEWAY_TIMEOUT, words);
            }
            Some(Judged::OtherVariants(names)) => {
                self.missed(outlook.passed_as, &format!("{}{unstorable}", because::of_other_variants(&names)));
            }
            Some(Judged::Nothing) => {
                self.missed(outlook.passed_as, &format!("nothing is stored under this key{unstorable}"));
            }
        }
    }

    /// Describes the stored response. Its rules are those that match request and response.
    fn describe(&mut self, stored: &Stored, policy: &Policy, decision: Decision<'_>) -> StoredOf {
        let head = &stored.found.head;
        let applied = decision.of_response(head.status, &head.fields);
        for (number, rule) in self.explanation.rules.iter_mut().enumerate().filter(|(_, rule)| rule.awaits_response) {
            rule.awaits_response = false;
            if !applied.has(number) {
                (rule.applies, rule.unmet) = (false, Some("content_type or status".to_owned()));
            }
        }
        stored::describe(stored, &proxy::policy_with(policy, &applied.overrides), SystemTime::now())
    }

    /// A request for which nothing is stored that it could use.
    fn missed(&mut self, passed_as: Option<&str>, words: &str) {
        let (verdict, why) = match passed_as {
            Some("head") => (Verdict::Pass, "; a HEAD is passed on then, and its response isn't stored"),
            Some(_) => (Verdict::Pass, "; ranges like these are passed on then"),
            None => (Verdict::Miss, ""),
        };
        self.end(verdict, format!("{words}{why}"));
    }

    fn redirected(&mut self, status: StatusCode, location: Option<&HeaderValue>, because: &str) {
        let location = location.map_or(Cow::Borrowed(""), |location| String::from_utf8_lossy(location.as_bytes()));
        self.answered(Verdict::Redirect, status, format!("{because}: to {location}"));
    }
}

/// What differs between the fields of a request before and after.
fn changed(before: &HeaderMap, after: &HeaderMap) -> Vec<ChangedField> {
    let of = |fields: &HeaderMap, name: &HeaderName| -> Vec<String> {
        fields.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let mut names: Vec<&HeaderName> = before.keys().chain(after.keys()).collect();
    names.sort_unstable_by_key(|name| name.as_str());
    names.dedup();
    let differing = names.into_iter().map(|name| (name, of(before, name), of(after, name)));
    differing
        .filter(|(_, before, after)| before != after)
        .map(|(name, _, after)| {
            let value = (!after.is_empty()).then(|| after.join(", "));
            ChangedField { name: name.to_string(), value }
        })
        .collect()
}

fn key_of(key: &CacheKey, parts: &Parts, strips: impl Fn(&str) -> bool) -> KeyOf {
    let text = key.text().to_owned();
    let query = parts.uri.query().unwrap_or_default();
    KeyOf {
        address: key.address().to_owned(),
        parts: text[key.address().len()..].trim_start().to_owned(),
        stripped_parameters: query.split('&').filter(|piece| strips(piece)).map(str::to_owned).collect(),
        text,
    }
}
