//! Origins behind a small server that passes everything on: bodies, upgrades, and fields about the client.

mod bodies;
mod forwarded;
mod health_checks;
mod upgrades;
mod without_content;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use eyewall_page_cache::upstream::BoxError;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::forwarded::ClientInfo;
use super::request::{BodyLimits, OriginRequest, RequestBody};
use super::tunnel::{ClientSide, asked_protocol};
use super::{OriginSite, Origins, Settings};
use crate::config::Site;
use crate::key::{KeyRules, Scheme};
use crate::serve::fields;

#[expect(dead_code, reason = "it is shared with tests that use more of it")]
#[path = "../../../../tests/common/client.rs"]
mod client;
#[path = "../../../../tests/common/origin.rs"]
mod scripted;

/// Longer than any test should take.
const PATIENCE: Duration = Duration::from_mins(1);

fn settings<'a>(urls: impl IntoIterator<Item = &'a str>) -> Settings {
    Settings::new(urls.into_iter().map(|url| url.parse().unwrap()).collect(), PATIENCE)
}

/// Starts a server for these origins, on a runtime of one thread, as each worker has. It ends with the process of the tests.
fn front(settings: Settings) -> SocketAddr {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap()).unwrap();
            serve(listener, Arc::new(Origins::new(Arc::new(OriginSite::new(settings, None).unwrap())))).await;
        });
    });
    receiver.recv().unwrap()
}

async fn serve(listener: TcpListener, origins: Arc<Origins>) {
    while let Ok((stream, client)) = listener.accept().await {
        let origins = Arc::clone(&origins);
        let answer = service_fn(move |request| {
            let origins = Arc::clone(&origins);
            async move { Ok::<_, Infallible>(pass(&origins, request, client).await) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer).with_upgrades());
    }
}

async fn pass(
    origins: &Origins,
    mut request: Request<Incoming>,
    client: SocketAddr,
) -> Response<BoxBody<Bytes, BoxError>> {
    let upgrade = asked_protocol(request.headers()).cloned();
    let upgrade = upgrade.map(|protocol| (protocol, ClientSide::of(&mut request)));
    let (mut head, incoming) = request.into_parts();
    fields::receive(&mut head.headers, &KeyRules::of(&Site::default()), false);
    if head.uri.path() == "/limited" {
        head.extensions.insert(BodyLimits { bytes_max: 5, ..BodyLimits::default() });
    }
    let host = head.headers.get(http::header::HOST).cloned();
    let origin_request = OriginRequest {
        method: head.method.clone(),
        target: &head.uri,
        fields: fields::of_forwarded_request(&head.headers, head.version),
        body: RequestBody::streamed(incoming, &head),
        client_info: Some(&ClientInfo {
            address: client.ip(),
            real_client: client.ip(),
            chain: None,
            scheme: Scheme::Http,
            host,
            ids: None,
        }),
        stripped: Vec::new(),
    };
    let answer = match upgrade {
        Some((protocol, client)) => origins.upgrade(origin_request, protocol, client).await,
        None => origins.send(origin_request).await,
    };
    match answer {
        Ok(response) => response.map(BodyExt::boxed),
        Err(error) => {
            let mut response = Response::new(Full::from(error.detail()).map_err(|never| match never {}).boxed());
            *response.status_mut() = error.status();
            response
        }
    }
}
