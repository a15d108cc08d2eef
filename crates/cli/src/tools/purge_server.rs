//! `eyewall purge --server`: asks a running server to purge.

use std::io::{self, Write as _};
use std::time::Duration;

use bytes::Bytes;
use eyewall_server::units::counted;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::purge::warn_of_overflows;
use crate::args::{Purge, ServerPlace};
use crate::{Error, Outcome, output};

/// The timeout of all purge requests together: the server may have to sweep its volume.
const TIMEOUT: Duration = Duration::from_mins(2);
/// The longest accepted response; it has a line for each address of the request.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The response of the server.
#[derive(Serialize, Deserialize)]
struct Report {
    kind: String,
    purged: Vec<Value>,
    purge_overflows: u64,
}

pub(crate) fn run(server: &ServerPlace, purge: &Purge) -> Result<Outcome, Error> {
    let token = purge.token_file.as_ref().map(|path| {
        let read = std::fs::read_to_string(path).and_then(|text| {
            HeaderValue::from_str(&format!("Bearer {}", text.trim()))
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the file holds no token"))
        });
        read.map_err(|source| Error::TokenFile { path: path.clone(), source })
    });
    let token = token.transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Watch)?;
    let report = runtime.block_on(ask(server, token.as_ref(), &purge_requests(purge)))?;
    warn_of_overflows(report.purge_overflows);
    if purge.json {
        output::json_to_stdout(&report)?;
    } else {
        output::text_to_stdout(|stdout| {
            report.purged.iter().try_for_each(|purged| writeln!(stdout, "{}", in_words(purged, purge.soft)))
        })?;
    }
    Ok(Outcome::Done)
}

/// The result of one purge target.
fn in_words(purged: &Value, is_soft: bool) -> String {
    let text = |name: &str| purged[name].as_str().unwrap_or_default();
    let subject = match (text("what"), text("host")) {
        ("url", _) => text("name").to_owned(),
        ("everything", _) => "everything".to_owned(),
        (what, "") => format!("{what} {}", text("name")),
        (what, host) => format!("{what} {} of {host}", text("name")),
    };
    let done = if is_soft { "made stale" } else { "purged" };
    match (text("result"), purged["entries"].as_u64()) {
        ("absent", _) | (_, Some(0)) => format!("{subject}: no stored entry matches"),
        (_, Some(entries)) => format!("{subject}: {} {done}", counted(entries, "entry", "entries")),
        ("found", None) => format!("{subject}: {done}"),
        (_, None) => format!("{subject}: {done}; the volume has too many entries to count them"),
    }
}

/// The bodies of the purge requests, one for each kind of target.
fn purge_requests(purge: &Purge) -> Vec<Value> {
    let soft = purge.soft;
    let mut requests = Vec::new();
    if !purge.url.is_empty() {
        requests.push(json!({ "url": purge.url, "soft": soft, "count": true }));
    }
    if !purge.tag.is_empty() {
        // A missing host becomes null, which the server ignores.
        requests.push(json!({ "tag": purge.tag, "host": purge.host, "soft": soft, "count": true }));
    } else if let Some(host) = &purge.host {
        requests.push(json!({ "host": host, "soft": soft, "count": true }));
    }
    if !purge.prefix.is_empty() {
        // The server refuses a prefix that is not text, because it is not an address.
        let prefixes: Vec<_> = purge.prefix.iter().map(|prefix| prefix.to_string_lossy()).collect();
        requests.push(json!({ "prefix": prefixes, "soft": soft, "count": true }));
    }
    if purge.all {
        requests.push(json!({ "everything": true, "soft": soft, "count": true }));
    }
    requests
}

/// Sends all purge requests, one after the other, until the server refuses one.
async fn ask(server: &ServerPlace, token: Option<&HeaderValue>, purge_requests: &[Value]) -> Result<Report, Error> {
    let no_server = |source: io::Error| Error::NoServer { server: server.to_string(), source };
    let asking = async {
        let mut sender = match server {
            ServerPlace::Socket(path) => talk(UnixStream::connect(path).await?).await?,
            ServerPlace::Address(authority) => talk(TcpStream::connect(authority).await?).await?,
        };
        let mut whole = Report { kind: String::new(), purged: Vec::new(), purge_overflows: 0 };
        for purge_request in purge_requests {
            let (status, body) = exchange(&mut sender, server, token, purge_request).await?;
            if status != StatusCode::OK {
                let refused = serde_json::from_slice::<Value>(&body).unwrap_or_default();
                let words = refused["error"]
                    .as_str()
                    .unwrap_or("its response is not one of the administration; give the address of [server.admin]");
                return Ok(Err((status, words.to_owned())));
            }
            let report: Report = serde_json::from_slice(&body)?;
            whole.kind = report.kind;
            whole.purged.extend(report.purged);
            whole.purge_overflows += report.purge_overflows;
        }
        Ok(Ok(whole))
    };
    let asked: io::Result<_> = match tokio::time::timeout(TIMEOUT, asking).await {
        Ok(asked) => asked,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    };
    match asked.map_err(no_server)? {
        Ok(report) => Ok(report),
        Err((status, words)) => {
            let advice =
                if status == StatusCode::UNAUTHORIZED { "; give the file of the token by --token-file" } else { "" };
            let (server, status) = (server.to_string(), status.as_u16());
            Err(Error::Refused { server, status, words: format!("{words}{advice}") })
        }
    }
}

async fn talk(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> io::Result<SendRequest<Full<Bytes>>> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // If the connection fails, the exchange returns the error.
    tokio::spawn(connection);
    Ok(sender)
}

async fn exchange(
    sender: &mut SendRequest<Full<Bytes>>,
    server: &ServerPlace,
    token: Option<&HeaderValue>,
    purge_request: &Value,
) -> io::Result<(StatusCode, Bytes)> {
    let host = match server {
        ServerPlace::Socket(_) => "localhost",
        ServerPlace::Address(authority) => authority,
    };
    let mut request = Request::new(Full::from(purge_request.to_string()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = http::Uri::from_static("/purge");
    let fields = request.headers_mut();
    fields.insert(HOST, HeaderValue::from_str(host).map_err(io::Error::other)?);
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    fields.extend(token.map(|token| (AUTHORIZATION, token.clone())));
    sender.ready().await.map_err(io::Error::other)?;
    let response = sender.send_request(request).await.map_err(io::Error::other)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(io::Error::other)?;
    Ok((status, body.to_bytes()))
}
