//! The state that all connections of a worker share, and the answer to a request.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use http::{Request, Response, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::time::Instant;

use super::connection_state::BusyGuard;
use super::connections::Connections;
use super::head_bytes::HeadBytes;
use super::limits;
use super::stream_budget::StreamBudget;
use super::tracked_body::TrackedBody;
use crate::config::settings::Limits;
use crate::serve::log::{self, Lines, LoggedRequest};
use crate::serve::service::Service;
use crate::serve::simple_request::SimpleRequest;
use crate::serve::trusted_proxies;

/// The state that all connections of a worker share.
pub(super) struct Common {
    pub(super) service: Service,
    pub(super) limits: Limits,
    pub(super) log: Option<Lines>,
    /// The connections of all workers.
    pub(super) connections: Arc<Connections>,
    /// The memory that responses of all workers over HTTP/2 may hold.
    pub(super) budget: Arc<StreamBudget>,
}

impl Common {
    /// Whether a simple request is within the limits.
    pub(super) fn takes(&self, request: &SimpleRequest<'_>, head_bytes: usize) -> bool {
        head_bytes as u64 <= self.limits.header_bytes.0 && request.field_count() as u64 <= self.limits.header_count.0
    }

    pub(super) async fn answer(
        &self,
        mut request: Request<Incoming>,
        client: IpAddr,
        open: BusyGuard,
    ) -> Response<TrackedBody> {
        let real_client = if self.service.trusts(client) {
            trusted_proxies::apply(self.service.trusted_proxies(), client, &mut request)
        } else {
            client
        };
        let version = request.version();
        let mut entry = self
            .log
            .as_ref()
            .map(|log| log.entry(&LoggedRequest::of(&request), real_client, Instant::now().into_std()));
        // Pinned, because two branches wait for it.
        let head = (version == Version::HTTP_2).then(|| HeadBytes::count(open.connection(), request.headers()));
        let is_over = head.as_ref().is_some_and(|head| head.is_over(self.limits.header_bytes.0));
        let answering = pin!(async {
            let refusal =
                if is_over { Some(limits::too_many_heads()) } else { limits::refuse(&mut request, &self.limits) };
            match refusal {
                None => self.service.answer(request, client).await,
                Some(refusal) => refusal,
            }
        });
        let response = match &mut entry {
            None => answering.await,
            Some(entry) => {
                let (response, origin_time) = log::measured(answering).await;
                entry.answered(&response, origin_time);
                response
            }
        };
        drop(head);
        response.map(|body| {
            let is_counted = version == Version::HTTP_2 && !body.is_end_stream();
            let stream = is_counted.then(|| self.budget.begin(open.connection(), body.backlog()));
            TrackedBody::new(body, open, entry, stream)
        })
    }
}
