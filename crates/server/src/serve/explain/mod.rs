//! What would become of a request, and why. It decides nothing: `routing.rs` and `proxy/way.rs` give requests of clients their way, and this one,
//! too, and the page cache judges by one function. Nothing is sent, and nothing leaves a trace in the volume.
//!
//! ```text
//! Question ──> request ──> routing ──> redirect? ──> file? ──> proxy/way ──> the stored responses     each may end it with a verdict
//! ```
//! The rest is for people: `key` says what the key is made of, `stored` has the arithmetic of freshness, `because` the statement that decides, and
//! `past` has earlier requests and purges.

mod because;
mod explanation;
mod key;
mod past;
mod request;
mod stored;

use std::sync::Arc;
use std::time::SystemTime;

use eyewall::Cache;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::policy::Policy;
use eyewall_page_cache::selection::Stored;
use eyewall_page_cache::visit::{Outlook, Prospect, Verdict as Judged};
use eyewall_tls::acme::HTTP_PATH;
use eyewall_tls::clock::SystemClock;
use http::header::LOCATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};

use super::NAME;
use super::arrival::Arrival;
use super::body::Body;
use super::error::Error;
use super::files::{Files, Named};
use super::proxy::way::{self, Way};
use super::proxy::{policy_with, settings};
use super::routing::{self, End, Ended, Sources};
use super::shared::{Shared, SharedSite};
use super::trusted_proxies::{self, Forwarded};
use crate::config::Config;
use crate::key::CacheKey;
use crate::rules::{Decision, Explained};
pub use explanation::{
    ChangedField, ClientOf, Explanation, KeyOf, Past, Piece, PurgeOf, Question, RedirectOf, RequestOf, RuleOf, SiteOf,
    Step, StoredOf, VariantOf, Verdict,
};

/// The answer to a question. A question that is no request is refused with words for its author.
pub(crate) async fn explain(shared: &Shared, question: &Question) -> Result<Explanation, String> {
    let (request, arrival) = request::request_of(question)?;
    let explanation = Explanation {
        method: question.method.clone(),
        url: question.url.clone(),
        verdict: Verdict::Error,
        cache_status: None,
        status: None,
        because: String::new(),
        client: None,
        redirect: None,
        site: None,
        changed_fields: Vec::new(),
        key: None,
        rules: Vec::new(),
        stored: None,
        variants: Vec::new(),
        past: None,
    };
    let mut explainer = Explainer { shared, names_client: question.from.is_some(), explanation };
    explainer.run(request, &arrival).await;
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

struct Explainer<'a> {
    shared: &'a Shared,
    /// Limits of clients count.
    names_client: bool,
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

    /// The server itself answers so, maybe with a redirect.
    fn responded(&mut self, response: &Response<Body>, rule: Option<&str>, because: impl Into<String>) {
        let location = response.headers().get(LOCATION).map(|location| String::from_utf8_lossy(location.as_bytes()));
        let verdict = if location.is_some() { Verdict::Redirect } else { Verdict::Error };
        self.explanation.redirect =
            location.map(|location| RedirectOf { location: location.into_owned(), rule: rule.map(str::to_owned) });
        self.answered(verdict, response.status(), because);
    }

    fn told(&mut self, status: &CacheStatus) {
        self.explanation.cache_status = Some(status.member(NAME));
    }

    async fn run(&mut self, mut request: Request<()>, arrival: &Arrival) {
        let shared = self.shared;
        if let Some(words) = self.refused_connection(arrival) {
            return self.end(Verdict::Error, words);
        }
        let proxies = &shared.config.server.trusted_proxies;
        let believed = || trusted_proxies::believed(proxies, arrival.client, request.headers());
        let believed = if routing::trusts(shared, arrival.client) { believed() } else { Vec::new() };
        let real_client = routing::receive(shared, arrival, &mut request);
        let (mut parts, ()) = request.into_parts();
        if self.names_client || !believed.is_empty() {
            let forwarded = parts.extensions.get::<Forwarded>();
            self.explanation.client = Some(ClientOf {
                address: real_client,
                is_known: forwarded.is_none_or(|forwarded| forwarded.real_client.is_known),
                scheme: forwarded.map_or(arrival.scheme, |forwarded| forwarded.scheme).as_str().to_owned(),
                believed_proxies: believed,
            });
        }
        if parts.uri.path().starts_with(HTTP_PATH)
            && let Some(response) = routing::challenge(shared, &parts, arrival).await
        {
            let words =
                "an authority that makes certificates asks for this, and an order waits for it (RFC 8555, section 8.3)";
            return self.responded(&response, None, words);
        }
        let (before, names_client) = (parts.headers.clone(), self.names_client);
        let asked = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
        let admits = |admission: &super::admission::Admission, client| {
            if names_client { admission.check(client) } else { Ok(()) }
        };
        let routed = match routing::route(shared, &mut parts, arrival, admits) {
            Ok(routed) => routed,
            Err(ended) => return self.ended(*ended, &parts),
        };
        let (of_site, key) = (routed.shared_site, routed.key);
        let site = &of_site.site;
        self.explanation.site = Some(site_of(of_site, routed.number));
        self.explanation.changed_fields = changed(&before, &parts.headers);
        self.explanation.key = Some(key::describe(&key, site, &parts));
        let rules = site.rules.explained(&key, &parts);
        self.explanation.rules = rules
            .map(|Explained { name, unmet, awaits_response }| RuleOf {
                name: name.to_owned(),
                applies: unmet.is_none(),
                unmet: unmet.map(str::to_owned),
                awaits_response: unmet.is_none() && awaits_response,
            })
            .collect();
        let host = before.get(http::header::HOST).map(|host| host.as_bytes().to_vec()).unwrap_or_default();
        self.answer(of_site, parts, &key).await;
        if of_site.origins.is_some() && self.explanation.verdict != Verdict::File {
            self.explanation.past =
                Some(past::of(shared, site, &key, (&host, &asked), self.explanation.stored.as_ref()));
        }
    }

    /// Why the client gets no connection on which it could send the request.
    fn refused_connection(&self, arrival: &Arrival) -> Option<String> {
        let shared = self.shared;
        let may_connect = shared.admission.as_ref().is_none_or(|admission| admission.may_connect(arrival.client));
        if self.names_client && !may_connect {
            return Some(
                "`allow` and `deny` in [server.limits] let this address not connect: the connection is closed"
                    .to_owned(),
            );
        }
        // A trusted proxy may have the TLS of its clients.
        let name = arrival.server_name.as_deref().filter(|_| !routing::trusts(shared, arrival.client))?;
        let group = |number: usize| shared.certificate_groups.get(number).copied().flatten();
        let is_known = if let Some(tls) = &shared.tls {
            tls.knows(name)
        } else {
            // Certificates of a server that doesn't run aren't loaded.
            let of_name = shared.by_host.number_of(name).and_then(group);
            of_name.is_some() || shared.certificate_groups.iter().all(Option::is_none)
        };
        (!is_known).then(|| {
            format!(
                "the server has no certificate for {name}, so it ends the TLS handshake with the alert unrecognized_name: the client \
                 gets no response at all (RFC 6066, section 3)"
            )
        })
    }

    /// The request gets to no source of a site.
    fn ended(&mut self, Ended { site, end }: Ended, parts: &Parts) {
        let of_site = site.and_then(|number| Some((number, self.shared.sites.get(number)?)));
        self.explanation.site = of_site.map(|(number, of_site)| site_of(of_site, number));
        let words = match &end {
            End::ToHttps(response) => {
                let location = response.headers().get(LOCATION).map(HeaderValue::as_bytes).unwrap_or_default();
                format!("the site has redirect_to_https: to {}", String::from_utf8_lossy(location))
            }
            End::NoSite => {
                let host = crate::key::RequestHost::of(parts);
                format!("no site of this server has the host {}", host.as_ref().map_or("", |host| host.name()))
            }
            End::Limited(refusal) => format!("limits refuse it: {}", refusal.words()),
            End::ServerOptions => "the server answers for itself".to_owned(),
            end => end.words(),
        };
        match end.response() {
            Some(response) => self.responded(&response, None, words),
            // A question is no purge.
            None => self.end(Verdict::Error, "it is a purge"),
        }
    }

    /// The part behind the key.
    async fn answer(&mut self, of_site: &SharedSite, mut parts: Parts, key: &CacheKey) {
        let site = &of_site.site;
        let decision = site.rules.of_request(key, &parts);
        if let Some((status, location)) = decision.redirect(key) {
            let rule = decision.redirecting_rule();
            let words = format!(
                "rule {} has a redirect, and is the last one of those that match: to {location}",
                rule.unwrap_or_default()
            );
            self.explanation.redirect = Some(RedirectOf { location, rule: rule.map(str::to_owned) });
            return self.answered(Verdict::Redirect, status, words);
        }
        match (routing::sources(of_site.files.is_some(), of_site.origins.is_some(), &parts.method), &of_site.files) {
            (Sources::Neither, _) => {
                let words = "the site has files only, and they have only GET and HEAD";
                return self.answered(Verdict::Error, StatusCode::METHOD_NOT_ALLOWED, words);
            }
            (sources @ (Sources::Files | Sources::FilesThenOrigins), Some(files)) => {
                if self.named(files, sources == Sources::Files, &parts).await {
                    return;
                }
            }
            (Sources::Origins, _) | (_, None) => {}
        }
        let taken = way::of(self.shared.peers.as_deref(), &parts, false);
        let received = parts.headers.clone();
        let is_other_protocol = super::origin::asked_protocol(&received).is_some();
        let decision = way::apply(&site.rules, key, &mut parts);
        self.explanation.changed_fields.extend(changed(&received, &parts.headers));
        match taken {
            Way::Loop => {
                let words = "its CDN-Loop names this server: an origin leads back to it (RFC 8586)";
                self.responded(&way::of_loop(), None, words);
            }
            Way::Query => self.end(Verdict::Pass, "the content of a QUERY is part of its key"),
            Way::Forward => self.forwarded(&mut parts, is_other_protocol),
            Way::Cache => match decision.bypass {
                Some(rule) => {
                    self.told(&CacheStatus::forwarded(Forward::Bypass).detail(rule));
                    self.end(Verdict::Pass, format!("rule {rule} has bypass = true"));
                }
                None => self.judge(of_site, parts, key, decision).await,
            },
        }
    }

    /// Whether the folder has the answer.
    async fn named(&mut self, files: &Files, is_alone: bool, parts: &Parts) -> bool {
        let root = files.root().display();
        match files.named(parts).await {
            Named::File => self.end(Verdict::File, format!("{root} has this file")),
            Named::Answer(response) if response.headers().contains_key(LOCATION) => {
                let words = format!("{root} has a folder of this name, whose address ends with a slash");
                self.responded(&response, None, words);
            }
            Named::Answer(response) => self.responded(&response, None, "the file can't be read"),
            Named::Nothing if is_alone => {
                let response = files.absent(parts);
                let words = match response.status() {
                    StatusCode::NOT_FOUND => format!("{root} has no such file, and the site has no origins"),
                    _ => "the path is malformed".to_owned(),
                };
                self.responded(&response, None, words);
            }
            Named::Nothing => return false,
        }
        true
    }

    /// An origin answers, or nobody.
    fn forwarded(&mut self, parts: &mut Parts, is_other_protocol: bool) {
        let method = parts.method.clone();
        let why = match way::forwarding(&method, &mut parts.headers) {
            Ok(why) => why,
            Err(response) => {
                let words = "its Max-Forwards is 0, so it goes no further (RFC 9110, section 7.6.2)";
                return self.responded(&response, None, words);
            }
        };
        let words = if is_other_protocol {
            "it asks for another protocol".to_owned()
        } else if method.is_safe() {
            format!("{method} isn't answered from the cache (RFC 9111, section 4)")
        } else {
            format!(
                "{method} isn't answered from the cache; if it succeeds, it purges what is stored for this address (RFC 9111, section 4.4)"
            )
        };
        self.told(&CacheStatus::forwarded(why));
        self.end(Verdict::Pass, words);
    }

    /// The part of the page cache.
    async fn judge(&mut self, of_site: &SharedSite, parts: Parts, key: &CacheKey, decision: Decision<'_>) {
        let (site, shared) = (&of_site.site, self.shared);
        let settings = settings(site, shared);
        let mut prospect = Prospect::new(&settings, key.as_bytes(), parts);
        prospect.directives = way::allowed(&decision, prospect.directives);
        let directives = prospect.directives;
        let outlook = Outlook::of(&shared.pages, &settings, &prospect).await;
        self.told(&outlook.status);
        let selected = match &outlook.verdict {
            Some(Judged::Stored { stored, .. }) => Some(stored.key.clone()),
            _ => None,
        };
        let variants = shared.pages.variants(key.as_bytes(), settings.now()).await;
        let variants = variants.iter().map(|stored| stored::variant(stored, selected.as_deref(), settings.now()));
        self.explanation.variants = variants.collect();
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
        stored::describe(stored, &policy_with(policy, &applied.overrides), SystemTime::now())
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
}

fn site_of(of_site: &SharedSite, number: usize) -> SiteOf {
    let settings = &of_site.site.settings;
    SiteOf {
        hosts: settings.hosts.iter().map(|host| host.get_ref().to_string()).collect(),
        number: number + 1,
        preset: settings.preset.map(|preset| preset.name().to_owned()),
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
