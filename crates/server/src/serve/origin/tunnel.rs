//! Upgrades, such as to WebSocket (RFC 9110, section 7.8): after 101, Eyewall copies bytes between both sides.

use std::sync::Arc;
use std::time::Instant;

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use super::error::{Failure, ProxyError};
use super::origins::Origins;
use super::request::OriginRequest;
use super::response_body::ResponseBody;
use crate::serve::listen::Held;

/// The client's side of a tunnel.
pub(crate) struct ClientSide {
    upgrading: OnUpgrade,
    /// What its connection holds, as long as the tunnel exists.
    held: Option<Arc<Held>>,
}

impl ClientSide {
    pub(crate) fn of<B>(request: &mut Request<B>) -> Self {
        let held = request.extensions_mut().remove();
        Self { upgrading: hyper::upgrade::on(request), held }
    }
}

/// The protocols that a request wants to upgrade to, if `Connection` names its field `Upgrade`. None if HTTP/2 is among them: its
/// requests would reach the origin past the rules, the limits and the cache of the site.
pub(crate) fn asked_protocol(fields: &HeaderMap) -> Option<&HeaderValue> {
    let mut options =
        fields.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let protocols =
        options.any(|option| option.trim().eq_ignore_ascii_case("upgrade")).then(|| fields.get(UPGRADE))??;
    let is_http2 = |name: &[u8]| name.trim_ascii().eq_ignore_ascii_case(b"h2c");
    let all = fields.get_all(UPGRADE).iter();
    let is_hidden = all.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).any(is_http2);
    (!is_hidden).then_some(protocols)
}

impl Origins {
    /// Asks for a change of protocol.
    ///
    /// If the origin agrees by 101, both connections are joined as soon as the client has its response, until one side closes.
    /// Silence has no timeout. The client gets the response with all its fields, including `Connection` and `Upgrade`, and without
    /// a body. Any other response is as from [`Self::send`].
    pub(crate) async fn upgrade(
        &self,
        mut origin_request: OriginRequest<'_>,
        protocol: HeaderValue,
        client: ClientSide,
    ) -> Result<Response<ResponseBody>, ProxyError> {
        let origin = self.choose(None);
        origin_request.fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        origin_request.fields.insert(UPGRADE, protocol);
        let asked = Instant::now();
        let answer = match self.request(origin, origin_request) {
            Ok(request) => self.attempt(origin, request, self.timeouts().head).await,
            Err(failure) => Err(failure),
        };
        let answer = answer.and_then(|response| {
            let is_switching = response.status() == StatusCode::SWITCHING_PROTOCOLS;
            if is_switching && !response.headers().contains_key(UPGRADE) {
                return Err(Failure::new(ProxyError::Broken, "101 without a protocol"));
            }
            if is_switching { Ok(response) } else { super::origins::sound(response) }
        });
        let mut response = self.note(origin, self.count(origin, asked, answer))?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            tokio::spawn(join(client, hyper::upgrade::on(&mut response)));
        }
        Ok(response)
    }
}

async fn join(ClientSide { upgrading: client, held }: ClientSide, origin: OnUpgrade) {
    let joined = async {
        let (client, origin) = tokio::try_join!(client, origin).map_err(std::io::Error::other)?;
        if let Some(held) = &held {
            held.begin_tunnel();
        }
        copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(origin)).await
    };
    match joined.await {
        Ok((from_client, from_origin)) => tracing::debug!(from_client, from_origin, "an upgraded connection ended"),
        Err(error) => tracing::debug!(%error, "an upgraded connection failed"),
    }
}
