//! Whether each origin answers, and whether its front page can be stored.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use eyewall_http::message::{self, Exchange};
use eyewall_http::storing::{self, NotStored};
use http::header::{DATE, HOST};
use http::{HeaderValue, Request, Response, Uri};

use super::Finding;
use crate::config::names::HostPattern;
use crate::key::{CacheKey, RequestHost, Scheme};
use crate::serve::fields;
use crate::serve::origin::{ClientInfo, Origins, ResponseBody};
use crate::serve::proxy::{self, receive};
use crate::serve::shared::{Shared, SharedSite};
use crate::units::duration;

/// A clock that differs by more makes ages and lifetimes wrong.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(5);

pub(super) fn examine(shared: &Shared) -> Vec<Finding> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Vec::new() };
    runtime.block_on(async {
        let mut findings = Vec::new();
        for of_site in &shared.sites {
            let Some(origins) = &of_site.origins else { continue };
            let origins = Origins::new(Arc::clone(origins));
            for number in 0..of_site.site.settings.origins.len() {
                findings.extend(ask(shared, of_site, &origins, number).await);
            }
        }
        findings
    })
}

/// Asks an origin for the front page of its site, as a browser would for the site's first host.
async fn ask(shared: &Shared, of_site: &SharedSite, origins: &Origins, number: usize) -> Vec<Finding> {
    let settings = &of_site.site.settings;
    let url = settings.origins[number].get_ref();
    let about = format!("origin {url}");
    let host = match settings.hosts.first().map(toml::Spanned::get_ref) {
        Some(HostPattern::Name(name)) => name.clone(),
        Some(HostPattern::Below(suffix)) => format!("www{suffix}"),
        Some(HostPattern::Any) | None => "localhost".to_owned(),
    };
    let client = ClientInfo {
        address: Ipv4Addr::LOCALHOST.into(),
        real_client: Ipv4Addr::LOCALHOST.into(),
        chain: None,
        scheme: Scheme::Http,
        host: HeaderValue::from_str(&host).ok(),
        ids: None,
    };
    let asked = (SystemTime::now(), Instant::now());
    match origins.probe(number, &Uri::from_static("/"), &client).await {
        Err(reason) => {
            let advice = "check that the origin runs, that its address is right, and that no firewall is between";
            vec![Finding::fault(&about, format!("gives no response: {reason}"), advice)]
        }
        Ok(mut response) => {
            let took = asked.1.elapsed();
            receive(&mut response);
            let exchange = Exchange { requested: asked.0, received: SystemTime::now() };
            let mut findings = vec![front_page(shared, of_site, &host, &about, &response, took, exchange)];
            findings.extend(clock(&about, &response, exchange.received));
            findings
        }
    }
}

fn front_page(
    shared: &Shared,
    of_site: &SharedSite,
    host: &str,
    about: &str,
    response: &Response<ResponseBody>,
    took: Duration,
    exchange: Exchange,
) -> Finding {
    let site = &of_site.site;
    let status = response.status();
    let words = format!("answers {} in {}", status.as_u16(), duration(took));
    if status.is_server_error() {
        return Finding::fault(about, words, "look into the log of the origin");
    }
    let mut request = Request::new(());
    if let Ok(value) = HeaderValue::from_str(host) {
        request.headers_mut().insert(HOST, value);
    }
    let (mut parts, ()) = request.into_parts();
    fields::receive(&mut parts.headers, &site.key, false);
    let Some(key) =
        RequestHost::parse(host).ok().and_then(|host| CacheKey::of(&site.key, &host, Scheme::Http, &parts).ok())
    else {
        return Finding::good(about, words);
    };
    let decision = site.rules.of_request(&key, &parts);
    if let Some(rule) = decision.bypass {
        return Finding::good(about, format!("{words}; the rule {rule} keeps the front page out of the cache"));
    }
    let mut stripped = response.headers().clone();
    let applied = decision.of_response(status, &stripped);
    for name in applied.stripped() {
        stripped.remove(name);
    }
    if applied.overrides.no_store == Some(true) {
        return Finding::good(about, format!("{words}; a rule keeps the front page out of the cache (no_store)"));
    }
    let policy = proxy::policy_with(&proxy::settings(site, shared).policy, &applied.overrides);
    let asked = message::Request { method: &parts.method, fields: &parts.headers };
    let told = message::Response { status, fields: &stripped };
    match storing::judge(asked, told, exchange, &policy) {
        Ok(storable) => {
            let seconds = storable.terms.lifetime_seconds;
            Finding::good(about, format!("{words}; its front page is stored, and fresh for {seconds} s"))
        }
        Err(why) => {
            Finding::warning(about, format!("{words}; its front page is not stored ({})", why.as_str()), advice(why))
        }
    }
}

/// What helps if a response isn't stored.
fn advice(why: NotStored) -> &'static str {
    match why {
        NotStored::NoLifetime | NotStored::Stale => {
            "let the origin send Cache-Control with s-maxage or max-age, or set `default_ttl`, or choose a `preset`"
        }
        NotStored::NoStore | NotStored::Private | NotStored::NoCache => {
            "the origin forbids it; if the page is the same for all, let the origin allow it, or strip the field by a rule"
        }
        NotStored::SetCookie => {
            "let the origin set no cookie on public pages, or choose a `preset`, or set `store_set_cookie`"
        }
        NotStored::Vary => "the origin says `Vary: *`, so the page suits no other request; let it name fields",
        _ => "look up the reason in docs/operations-server.md",
    }
}

fn clock(about: &str, response: &Response<ResponseBody>, now: SystemTime) -> Option<Finding> {
    let date = response.headers().get(DATE)?.to_str().ok()?;
    let date = httpdate::parse_http_date(date).ok()?;
    let difference = now.duration_since(date).or_else(|_| date.duration_since(now)).ok()?;
    (difference > CLOCK_DIFFERENCE_MAX).then(|| {
        let words = format!("its clock and the one of this machine differ by {}", duration(difference));
        Finding::warning(about, words, "let both follow NTP: ages and lifetimes are computed from both")
    })
}
