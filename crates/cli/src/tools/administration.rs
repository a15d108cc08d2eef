//! Requests to the administration of a running server.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::Error;
use crate::args::{RunningServer, ServerPlace};

/// The longest accepted response of a purge; it has a line for each address of the request.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The timeout of a reload and of an upgrade: longer than the server gives its successor.
const ORDER_TIMEOUT: Duration = Duration::from_mins(2);

/// A request: a POST with a body of JSON, or a GET if the body is null.
pub(super) struct Post {
    pub(super) path: &'static str,
    pub(super) body: Value,
}

/// The status of a refusal, and the server's words.
type Refused = (StatusCode, String);

/// Sends all requests, one after the other, until the server refuses one. Returns the bodies of the responses.
pub(super) fn ask(
    server: &ServerPlace,
    token_file: Option<&Path>,
    posts: &[Post],
    timeout: Duration,
) -> Result<Vec<Bytes>, Error> {
    let token = token_file.map(token).transpose()?;
    let no_server = |source: io::Error| Error::NoServer { server: server.to_string(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Watch)?;
    let asked = runtime.block_on(async {
        let asking = exchange_all(server, token.as_ref(), posts);
        tokio::time::timeout(timeout, asking).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    });
    asked.map_err(no_server)?.map_err(|refused| refusal(server, refused))
}

fn refusal(server: &ServerPlace, (status, words): Refused) -> Error {
    let advice = if status == StatusCode::UNAUTHORIZED { "; give the file of the token by --token-file" } else { "" };
    Error::Refused { server: server.to_string(), status: status.as_u16(), words: format!("{words}{advice}") }
}

/// Gives each line of an endless response to `take`, until that breaks, or the server ends.
pub(super) fn follow(
    server: &ServerPlace,
    token_file: Option<&Path>,
    target: &str,
    mut take: impl FnMut(&[u8]) -> Result<ControlFlow<()>, Error>,
) -> Result<(), Error> {
    let token = token_file.map(token).transpose()?;
    let no_server = |source: io::Error| Error::NoServer { server: server.to_string(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Watch)?;
    runtime.block_on(async {
        let mut sender = connect(server).await.map_err(no_server)?;
        let request = request(server, token.as_ref(), target, &Value::Null).map_err(no_server)?;
        let response = sender.send_request(request).await.map_err(io::Error::other).map_err(no_server)?;
        let status = response.status();
        if status != StatusCode::OK {
            let body = whole(response).await.map_err(no_server)?;
            return Err(refusal(server, (status, words_of(&body))));
        }
        let (mut body, mut line) = (response.into_body(), Vec::new());
        loop {
            let frame = body.frame().await.transpose().map_err(io::Error::other).map_err(no_server)?;
            let Some(frame) = frame else { return Ok(()) };
            for piece in frame.data_ref().map_or(&b""[..], |data| data).split_inclusive(|byte| *byte == b'\n') {
                line.extend_from_slice(piece.strip_suffix(b"\n").unwrap_or(piece));
                if piece.ends_with(b"\n") && take(&std::mem::take(&mut line))?.is_break() {
                    return Ok(());
                }
            }
        }
    })
}

/// Sends a request without content, and reads the response.
pub(super) fn order<T: DeserializeOwned>(running: &RunningServer, path: &'static str) -> Result<T, Error> {
    order_with(running, Post { path, body: json!({}) })
}

/// Asks for the state of something.
pub(super) fn look<T: DeserializeOwned>(running: &RunningServer, path: &'static str) -> Result<T, Error> {
    order_with(running, Post { path, body: Value::Null })
}

fn order_with<T: DeserializeOwned>(running: &RunningServer, post: Post) -> Result<T, Error> {
    question(&running.server, running.token_file.as_deref(), post)
}

/// Sends one request, and reads the response.
pub(super) fn question<T: DeserializeOwned>(
    server: &ServerPlace,
    token_file: Option<&Path>,
    post: Post,
) -> Result<T, Error> {
    let bodies = ask(server, token_file, &[post], ORDER_TIMEOUT)?;
    let malformed = |source: serde_json::Error| Error::NoServer { server: server.to_string(), source: source.into() };
    serde_json::from_slice(bodies.concat().as_slice()).map_err(malformed)
}

/// Sends these requests one after the other, and returns the bodies of the responses.
pub(super) fn questions<const N: usize>(
    server: &ServerPlace,
    token_file: Option<&Path>,
    posts: &[Post; N],
) -> Result<[Bytes; N], Error> {
    let bodies = ask(server, token_file, posts, ORDER_TIMEOUT)?;
    // Each request has a response, or there is an error.
    Ok(std::array::from_fn(|at| bodies.get(at).cloned().unwrap_or_default()))
}

fn token(path: &Path) -> Result<HeaderValue, Error> {
    let read = std::fs::read_to_string(path).and_then(|text| {
        HeaderValue::from_str(&format!("Bearer {}", text.trim()))
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the file holds no token"))
    });
    read.map_err(|source| Error::TokenFile { path: path.to_owned(), source })
}

async fn exchange_all(
    server: &ServerPlace,
    token: Option<&HeaderValue>,
    posts: &[Post],
) -> io::Result<Result<Vec<Bytes>, Refused>> {
    let mut sender = connect(server).await?;
    let mut bodies = Vec::new();
    for post in posts {
        let (status, body) = exchange(&mut sender, server, token, post).await?;
        if status != StatusCode::OK {
            return Ok(Err((status, words_of(&body))));
        }
        bodies.push(body);
    }
    Ok(Ok(bodies))
}

/// What a refusal says.
fn words_of(body: &[u8]) -> String {
    let refused = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let other = "its response is not one of the administration; give the address of [server.admin]";
    refused["error"].as_str().unwrap_or(other).to_owned()
}

async fn connect(server: &ServerPlace) -> io::Result<SendRequest<Full<Bytes>>> {
    match server {
        ServerPlace::Socket(path) => talk(UnixStream::connect(path).await?).await,
        ServerPlace::Address(authority) => talk(TcpStream::connect(authority).await?).await,
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
    post: &Post,
) -> io::Result<(StatusCode, Bytes)> {
    let request = request(server, token, post.path, &post.body)?;
    sender.ready().await.map_err(io::Error::other)?;
    let response = sender.send_request(request).await.map_err(io::Error::other)?;
    Ok((response.status(), whole(response).await?))
}

async fn whole(response: Response<Incoming>) -> io::Result<Bytes> {
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(io::Error::other)?;
    Ok(body.to_bytes())
}

/// A POST with a body of JSON, or a GET if the body is null.
fn request(
    server: &ServerPlace,
    token: Option<&HeaderValue>,
    target: &str,
    body: &Value,
) -> io::Result<Request<Full<Bytes>>> {
    let host = match server {
        ServerPlace::Socket(_) => "localhost",
        ServerPlace::Address(authority) => authority,
    };
    let is_get = body.is_null();
    let mut request = Request::new(if is_get { Full::default() } else { Full::from(body.to_string()) });
    *request.method_mut() = if is_get { Method::GET } else { Method::POST };
    *request.uri_mut() = Uri::try_from(target).map_err(io::Error::other)?;
    let fields = request.headers_mut();
    fields.insert(HOST, HeaderValue::from_str(host).map_err(io::Error::other)?);
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    fields.extend(token.map(|token| (AUTHORIZATION, token.clone())));
    Ok(request)
}
