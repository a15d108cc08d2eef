//! A request that came in for a site.

use std::net::IpAddr;

use bytes::Bytes;
use eyewall_http::field::cache_control::RequestDirectives;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use crate::config::Site;
use crate::key::CacheKey;
use crate::rules::{Decision, RuleSet};
use crate::serve::fields;
use crate::serve::origin::{ClientInfo, OriginRequest, RequestBody};
use crate::serve::trusted_proxies::Forwarded;

/// What came, under which key its answer is, and what the site's rules say of it.
#[derive(Clone, Copy)]
pub(super) struct Inbound<'a> {
    pub(super) parts: &'a Parts,
    pub(super) key: &'a CacheKey,
    pub(super) decision: Decision<'a>,
    pub(super) client: IpAddr,
    /// What is asked about, of a QUERY.
    pub(super) content: Option<&'a Bytes>,
}

/// The same without what it was lent, for what goes on when the request is answered.
pub(super) struct Kept {
    parts: Parts,
    key: CacheKey,
    // The rules saw cookies that were dropped since then.
    rules: RuleSet,
    client: IpAddr,
    content: Option<Bytes>,
}

impl Kept {
    pub(super) fn inbound<'a>(&'a self, site: &'a Site) -> Inbound<'a> {
        let decision = site.rules.decision(self.rules);
        Inbound { parts: &self.parts, key: &self.key, decision, client: self.client, content: self.content.as_ref() }
    }
}

impl<'a> Inbound<'a> {
    /// What the site's rules say of it is done to its fields.
    pub(super) fn new(site: &'a Site, parts: &'a mut Parts, key: &'a CacheKey, client: IpAddr) -> Self {
        let decision = site.rules.of_request(key, parts);
        decision.drop_ignored_cookies(&mut parts.headers);
        Self { parts, key, decision, client, content: None }
    }

    pub(super) fn kept(&self) -> Kept {
        let content = self.content.cloned();
        let rules = self.decision.matched();
        Kept { parts: self.parts.clone(), key: self.key.clone(), rules, client: self.client, content }
    }

    pub(super) fn fields(&self) -> &'a HeaderMap {
        &self.parts.headers
    }

    /// What the client demands of the cache, as far as the rules let it.
    pub(super) fn directives(&self) -> RequestDirectives {
        let directives = RequestDirectives::of(&self.parts.headers);
        if self.decision.ignore_reload { directives.without_reloads() } else { directives }
    }

    /// What the origin is asked for: exactly what the key says.
    pub(super) fn target(&self) -> Uri {
        // The key's target is that of a valid one in its normal form; what can't be read back is asked for as it came.
        self.key.forwarded_target().parse().unwrap_or_else(|_| self.parts.uri.clone())
    }

    /// The client as the origin is told of it: by the host that the key has.
    pub(super) fn client_info(&self) -> ClientInfo {
        let forwarded = self.parts.extensions.get::<Forwarded>();
        ClientInfo {
            address: self.client,
            real_client: forwarded.map_or(self.client, |forwarded| forwarded.real_client.address),
            chain: forwarded.and_then(|forwarded| forwarded.chain.clone()),
            scheme: self.key.scheme(),
            host: HeaderValue::from_str(self.key.authority()).ok(),
        }
    }

    /// The method by which the origin is asked for what may be stored.
    pub(super) fn method(&self) -> Method {
        if self.content.is_some() { Method::QUERY } else { Method::GET }
    }

    /// The request by which the origin is asked for it, with these fields.
    pub(super) fn origin_request<'o>(
        &self,
        target: &'o Uri,
        fields: HeaderMap,
        client_info: &'o ClientInfo,
    ) -> OriginRequest<'o> {
        let body = self.content.map_or_else(RequestBody::empty, |content| RequestBody::whole(content.clone()));
        OriginRequest {
            method: self.method(),
            target,
            fields,
            body,
            client_info: Some(client_info),
            stripped: self.stripped(),
        }
    }

    /// Fields of interim responses that the client doesn't get.
    pub(super) fn stripped(&self) -> Vec<HeaderName> {
        self.decision.strippable().cloned().collect()
    }

    /// The fields as the origin gets them.
    pub(super) fn forwarded_fields(&self) -> HeaderMap {
        fields::of_forwarded_request(&self.parts.headers, self.parts.version)
    }
}
