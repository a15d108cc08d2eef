//! Requests to origins without a client: active health checks, and probes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, Response, Uri};
use tokio::time::{MissedTickBehavior, interval};

use super::forwarded::ClientInfo;
use super::health::HealthCheck;
use super::origins::Origins;
use super::request::{OriginRequest, RequestBody};
use super::response_body::ResponseBody;

impl Origins {
    /// Checks all origins in a task, until the site is retired. One worker does it, and all share the results.
    pub(crate) fn start_checking(self: &Arc<Self>) {
        if !self.site().begins_checking() {
            return;
        }
        let origins = Arc::clone(self);
        tokio::spawn(async move {
            tokio::select! {
                () = origins.keep_checking() => {}
                () = origins.site().is_retired() => {}
            }
        });
    }

    /// Checks all origins, at once and then periodically; returns if the site has no check.
    pub(super) async fn keep_checking(&self) {
        let Some(check) = &self.site().settings.check else { return };
        let mut ticks = interval(check.interval.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.check(check).await;
        }
    }

    /// One round, with all checks at the same time.
    pub(crate) async fn check(&self, check: &HealthCheck) {
        let target = Uri::from(check.path.clone());
        let mut running = Vec::new();
        for origin in 0..self.site().settings.urls.len() {
            running.push(Box::pin(self.check_one(origin, check, &target)));
        }
        join_all(running).await;
    }

    /// Asks one origin for a page, whatever is known of its health. An error is a text for people.
    pub(crate) async fn probe(
        &self,
        origin: usize,
        target: &Uri,
        client: &ClientInfo,
    ) -> Result<Response<ResponseBody>, String> {
        let (fields, body) = (HeaderMap::new(), RequestBody::empty());
        let origin_request = OriginRequest {
            method: Method::GET,
            target,
            fields,
            body,
            client_info: Some(client),
            stripped: Vec::new(),
        };
        let request = self.request(origin, origin_request).map_err(|failure| failure.reason)?;
        self.attempt(origin, request, self.timeouts().head).await.map_err(|failure| failure.reason)
    }

    async fn check_one(&self, origin: usize, check: &HealthCheck, target: &Uri) {
        let (fields, body) = (HeaderMap::new(), RequestBody::empty());
        let origin_request =
            OriginRequest { method: Method::GET, target, fields, body, client_info: None, stripped: Vec::new() };
        let answer = match self.request(origin, origin_request) {
            Ok(request) => self.attempt(origin, request, check.timeout).await,
            Err(failure) => Err(failure),
        };
        let (is_well, found) = match answer {
            Ok(response) => {
                let status = response.status();
                (check.statuses.iter().any(|statuses| statuses.contains(status)), status.to_string())
            }
            Err(failure) => (false, failure.reason),
        };
        if self.site().health.checked(origin, is_well, Instant::now()) {
            let origin = &self.site().settings.urls[origin];
            if is_well {
                tracing::warn!(%origin, "the origin passes its health check again");
            } else {
                tracing::warn!(%origin, found, "the origin fails its health checks; requests go to other origins");
            }
        }
    }
}

/// Drives all of them to completion, on this task.
async fn join_all<F: Future<Output = ()> + Unpin>(mut running: Vec<F>) {
    std::future::poll_fn(|context| {
        running.retain_mut(|future| std::pin::Pin::new(future).poll(context).is_pending());
        if running.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
