//! Error pages of the origin, which the cache keeps for the time when the origin gives none.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use eyewall_page_cache::settings::Settings;
use eyewall_page_cache::visit::Visit;
use http::header::CACHE_CONTROL;
use http::{HeaderValue, Request, Response, Uri};

use super::inbound::Inbound;
use super::{Proxy, response_of, tags};
use crate::error_pages::ErrorPages;
use crate::key::{CacheKey, RequestHost, Scheme};
use crate::serve::body::Body;

/// How long an error page is fresh, whatever the origin says.
pub(super) const TTL: Duration = Duration::from_secs(30);
/// How long it is kept.
const KEPT: Duration = Duration::from_hours(3650 * 24);

/// The settings of a site's cache for error pages.
pub(super) fn settings(settings: &Settings) -> Settings {
    let mut settings = Settings { when_unreachable: KEPT, compression: None, ..settings.clone() };
    settings.policy.stale_if_unreachable = Some(KEPT);
    settings
}

impl Proxy {
    /// The error pages of the site.
    pub(crate) fn error_pages(&self) -> &ErrorPages {
        &self.site.error_pages
    }

    /// The stored page at this target, of any age. The origin is not asked.
    pub(crate) async fn stored_error_page(self: &Arc<Self>, target: Uri) -> Option<Response<Body>> {
        if self.pages.store.has_failed() {
            return None;
        }
        self.error_page(target, Some("only-if-cached, max-stale")).await
    }

    /// The page at this target. The origin is asked if the stored page isn't fresh.
    pub(crate) async fn fetch_error_page(self: &Arc<Self>, target: Uri) -> Option<Response<Body>> {
        self.error_page(target, None).await
    }

    async fn error_page(self: &Arc<Self>, target: Uri, directives: Option<&'static str>) -> Option<Response<Body>> {
        let (mut parts, ()) = Request::get(target).body(()).ok()?.into_parts();
        parts.headers.extend(directives.map(|directives| (CACHE_CONTROL, HeaderValue::from_static(directives))));
        // Origins that redirect to https answer such a request with the page.
        let key = CacheKey::of(&self.site.key, &self.own_host()?, Scheme::Https, &parts).ok()?;
        let key = key.of_error_page().ok()?;
        let (address, key_bytes) = (key.address().to_owned(), key.as_bytes().to_vec());
        let address_tag = tags::address(&self.site, &key);
        let inbound = Inbound::of_error_page(self, &mut parts, key, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let visit = Visit::new((&self.pages, &self.error_page_settings), inbound, parts, address);
        let visit = Arc::new(Visit { key: key_bytes, address_tag, ..visit });
        Some(response_of(visit.answer().await))
    }

    /// The host of the site; that of the first origin if the site has none by name.
    fn own_host(&self) -> Option<RequestHost> {
        let of_origin = || self.site.settings.origins.first().map(|origin| origin.get_ref().host());
        let host = self.site.name().or_else(of_origin)?;
        RequestHost::parse(host).ok()
    }
}
