//! A client's request to a site: how its origins are asked, and how the site's rules apply to the answers.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use eyewall_http::field::connection;
use eyewall_page_cache::carried::Giver;
use eyewall_page_cache::settings::Settings;
use eyewall_page_cache::upstream::{Failure, Question, Rules, Upstream};
use http::header::{AGE, CONTENT_LENGTH, DATE, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE};
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri, Version};

use super::{Proxy, error_page, policy, tags, way};
use crate::key::{CLIENT_ADDRESSES, CacheKey};
use crate::rules::{Decision, Overrides, RuleSet};
use crate::serve::fields;
use crate::serve::origin::{BUSY, ClientInfo, OriginRequest, ProxyError, RequestBody, ResponseBody, framing};
use crate::serve::second_level::{Level, Wanted};
use crate::serve::trusted_proxies::Forwarded;

/// The client's request, the key of its response, and the site's rules that apply to it.
pub(super) struct Inbound {
    pub(super) proxy: Arc<Proxy>,
    pub(super) key: CacheKey,
    // The rules matched by cookies, some of which have been dropped since.
    rules: RuleSet,
    pub(super) client: IpAddr,
    /// The fields of the request before the rules. `None`: no other node is asked.
    pub(super) received: Option<Box<HeaderMap>>,
    /// The answer is to be kept as an error page.
    is_error_page: bool,
}

impl Inbound {
    /// Applies the site's rules to the fields of the request.
    pub(super) fn new(proxy: &Arc<Proxy>, parts: &mut Parts, key: CacheKey, client: IpAddr) -> Self {
        let rules = way::apply(&proxy.site.rules, &key, parts).matched();
        Self { proxy: Arc::clone(proxy), key, rules, client, received: None, is_error_page: false }
    }

    /// The same for a request of this server for an error page.
    pub(super) fn of_error_page(proxy: &Arc<Proxy>, parts: &mut Parts, key: CacheKey, client: IpAddr) -> Self {
        Self { is_error_page: true, ..Self::new(proxy, parts, key, client) }
    }

    /// The decision of the site's rules.
    pub(super) fn decision(&self) -> Decision<'_> {
        self.proxy.site.rules.decision(self.rules)
    }

    /// The client as the origin sees it. The host is that of the key.
    pub(super) fn client_info(&self, parts: &Parts) -> ClientInfo {
        let forwarded = parts.extensions.get::<Forwarded>();
        ClientInfo {
            address: self.client,
            real_client: forwarded.map_or(self.client, |forwarded| forwarded.real_client.address),
            chain: forwarded.and_then(|forwarded| forwarded.chain.clone()),
            scheme: self.key.scheme(),
            host: HeaderValue::from_str(self.key.authority()).ok(),
            ids: parts.extensions.get().cloned(),
        }
    }

    /// Asks the second level, if it may have the response, and then an origin.
    pub(super) async fn ask_origin(&self, question: Question<'_>) -> Result<Response<ResponseBody>, ProxyError> {
        let second_level = self.second_level(&question);
        if let Some(level) = second_level
            && let Some(response) = Box::pin(self.ask_second_level(level, question.client)).await
        {
            return Ok(response);
        }
        let asked = Instant::now();
        let Question { client, method, fields, content, .. } = question;
        // The key's target is a valid target in normal form. If it can't be parsed, the origin gets the client's own.
        let target: Uri = self.key.forwarded_target().parse().unwrap_or_else(|_| client.uri.clone());
        let client_info = self.client_info(client);
        let body = content.map_or_else(RequestBody::empty, |content| RequestBody::whole(content.clone()));
        let stripped = self.stripped();
        let origin_request =
            OriginRequest { method, target: &target, fields, body, client_info: Some(&client_info), stripped };
        let mut response = self.proxy.origins.send(origin_request).await?;
        if let Some(level) = second_level {
            level.origin_took(asked.elapsed());
        }
        receive(&mut response);
        Ok(response)
    }

    /// The second level, if it may have the response to this question. It has none for clients that demand the origin's own, and is no
    /// help to validate a stored one, or to complete it.
    fn second_level(&self, question: &Question<'_>) -> Option<&Level> {
        let Question { fields, content, is_for_all, .. } = question;
        let is_conditional = [IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_RANGE].iter().any(|name| fields.contains_key(name));
        let may_have = *is_for_all && content.is_none() && !is_conditional && !self.is_error_page;
        self.proxy.second_level.as_deref().filter(|_| may_have)
    }

    async fn ask_second_level(&self, level: &Level, client: &Parts) -> Option<Response<ResponseBody>> {
        let wanted = Wanted { key: self.key.as_bytes(), address: self.key.address(), fields: &client.headers };
        let (carried, body) = level.ask(wanted).await?;
        let mut response = Response::new(ResponseBody::from(body));
        *response.status_mut() = carried.status;
        response.headers_mut().clone_from(&carried.fields);
        if let Some(length) = carried.length {
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        response.headers_mut().insert(AGE, HeaderValue::from(carried.age_seconds(SystemTime::now())));
        response.extensions_mut().insert(Giver("second-level"));
        response.extensions_mut().insert(carried);
        Some(response)
    }

    /// Fields of interim responses that are removed for the client.
    pub(super) fn stripped(&self) -> Vec<HeaderName> {
        self.decision().strippable().cloned().collect()
    }
}

impl Upstream for Inbound {
    type Body = ResponseBody;
    type Error = ProxyError;

    async fn ask(&self, question: Question<'_>) -> Result<Response<ResponseBody>, ProxyError> {
        // Most requests have no such part, and futures of both parts together would be larger.
        match self.received {
            Some(_) if question.is_for_all => Box::pin(self.ask_for_all(question)).await,
            _ => self.ask_origin(question).await,
        }
    }

    fn failure(&self, error: &ProxyError) -> Failure {
        Failure { status: error.status(), detail: error.detail(), words: error.to_string() }
    }

    fn failure_ttl(&self, failure: &Failure) -> Option<Duration> {
        // The next request may find a place.
        if failure.detail == BUSY {
            return None;
        }
        let overrides = self.decision().of_response(failure.status, &HeaderMap::new()).overrides;
        overrides.negative_ttl.filter(|_| overrides.no_store != Some(true))
    }

    fn fields(&self, client: &Parts) -> HeaderMap {
        let mut fields = fields::of_forwarded_request(&client.headers, client.version);
        if let Some(peers) = &self.proxy.peers {
            peers.append_loop(&mut fields);
        }
        fields
    }

    fn rules<'a>(
        &'a self,
        settings: &'a Settings,
        status: StatusCode,
        fields: &mut HeaderMap,
        extensions: &mut Extensions,
    ) -> Rules<'a> {
        let site = &self.proxy.site;
        let mut applied = self.decision().of_response(status, fields);
        if self.is_error_page {
            let no_store = applied.overrides.no_store == Some(true) || status != StatusCode::OK;
            let (no_store, force_ttl) = (Some(no_store), Some(error_page::TTL));
            applied.overrides = Overrides { no_store, force_ttl, ..applied.overrides };
        }
        tags::strip(applied.stripped(), fields, extensions);
        Rules {
            policy: Cow::Owned(policy::with(&settings.policy, &applied.overrides)),
            is_refused: applied.overrides.no_store == Some(true),
            is_opaque: framing::is_coded(extensions),
            codings: applied.overrides.compress.unwrap_or_else(|| site.settings.codings()),
            tags: tags::of_response(site, &self.key, &applied, fields, extensions),
            carried: None,
        }
    }

    fn is_hidden(&self, field: &HeaderName) -> bool {
        let told = ["forwarded", "x-forwarded-for", "x-real-ip"];
        let is_told = told.contains(&field.as_str()) || CLIENT_ADDRESSES.contains(&field.as_str());
        is_told && !self.proxy.site.key.has_header(field)
    }

    fn sign(&self, fields: &mut HeaderMap, received: Version) {
        fields::append_via(fields, received);
    }
}

/// Removes the fields of the connection, and adds a date.
pub(crate) fn receive<B>(response: &mut Response<B>) {
    let mut fields = std::mem::take(response.headers_mut());
    framing::note_coding(&fields, response.extensions_mut());
    connection::drop_hop_by_hop(&mut fields);
    if !fields.contains_key(DATE)
        && let Ok(now) = HeaderValue::from_str(&httpdate::fmt_http_date(SystemTime::now()))
    {
        fields.insert(DATE, now);
    }
    *response.headers_mut() = fields;
}
