//! The HTTP client that talks to an authority.

use std::error::Error as StdError;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::Request;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::AcmeError;
use crate::clock::locked;

/// For one request, from its connection to the end of its answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A chain of certificates has some 10 KB, and all else is shorter.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A client with its connections. Those live in the runtime that it is used in.
#[derive(Clone)]
pub(super) struct Client {
    inner: HyperClient<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>,
    /// What the authority last said of when to come again. The library keeps it to itself where an answer is an error.
    retry_after: Arc<Mutex<Option<Duration>>>,
}

impl Client {
    /// Trusts the certificates in `roots`, and no others; those of the system without such a file.
    pub(super) fn new(roots: Option<&Path>) -> Result<Self, AcmeError> {
        let mut trusted = RootCertStore::empty();
        match roots {
            Some(path) => add_file(&mut trusted, path)?,
            None => add_system(&mut trusted)?,
        }
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http1().build();
        let inner = HyperClient::builder(TokioExecutor::new()).build(connector);
        Ok(Self { inner, retry_after: Arc::default() })
    }

    /// How long the authority wants to be left alone, if it said so since this was asked last.
    pub(super) fn take_retry_after(&self) -> Option<Duration> {
        locked(&self.retry_after).take()
    }
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), AcmeError> {
    let unusable = |reason: String| AcmeError::Roots { path: path.to_owned(), reason };
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error: rustls_pki_types::pem::Error| unusable(error.to_string()))?;
    match roots.add_parsable_certificates(certificates) {
        (0, _) => Err(unusable("it holds no certificate of an authority".to_owned())),
        _ => Ok(()),
    }
}

fn add_system(roots: &mut RootCertStore) -> Result<(), AcmeError> {
    let found = rustls_native_certs::load_native_certs();
    match roots.add_parsable_certificates(found.certs) {
        (0, _) => Err(AcmeError::Roots {
            path: PathBuf::from("/etc/ssl/certs"),
            reason: "this system has no certificates of authorities; install ca-certificates".to_owned(),
        }),
        _ => Ok(()),
    }
}

impl HttpClient for Client {
    fn request(
        &self,
        mut request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        // RFC 8555, section 6.1, wants the program and its library to be named.
        const AGENT: &str = concat!("eyewall/", env!("CARGO_PKG_VERSION"), " instant-acme");
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT));
        let host = request.uri().host().unwrap_or_default().to_owned();
        let (answer, retry_after) = (self.inner.request(request), Arc::clone(&self.retry_after));
        Box::pin(async move {
            let whole = async {
                let (parts, body) = answer.await.map_err(|error| failed(&host, &error))?.into_parts();
                let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
                let body = body.map_err(|error| failed(&host, &*error))?.to_bytes();
                Ok::<_, Error>((parts, body))
            };
            let (parts, body) = tokio::time::timeout(TIMEOUT, whole)
                .await
                .map_err(|_| other(format!("{host} did not answer within {} seconds", TIMEOUT.as_secs())))??;
            if !parts.status.is_success() {
                *locked(&retry_after) = wait(&parts.headers, SystemTime::now());
                if !is_problem(&parts.headers) {
                    return Err(other(format!("{host} answered {}", parts.status)));
                }
            }
            Ok(BytesResponse::from(http::Response::from_parts(parts, Full::new(body))))
        })
    }
}

fn failed(host: &str, error: &dyn StdError) -> Error {
    // The outermost error of the client says no more than that there is one.
    let mut text = format!("can't reach {host}: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    other(text)
}

fn other(text: String) -> Error {
    Error::Other(text.into())
}

/// Whether an answer explains what is wrong (RFC 8555, section 6.7).
fn is_problem(fields: &HeaderMap) -> bool {
    let kind = fields.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/problem+json")
}

/// Retry-After (RFC 9110, section 10.2.3).
fn wait(fields: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = fields.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    httpdate::parse_http_date(value).ok().map(|date| date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_says_when_to_come_again_in_seconds_or_by_a_date() {
        let now = httpdate::parse_http_date("Tue, 24 Nov 2026 12:00:00 GMT").unwrap();
        let wait =
            |value: &'static str| wait(&HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]), now);
        assert_eq!(wait("90"), Some(Duration::from_secs(90)));
        assert_eq!(wait("Tue, 24 Nov 2026 13:00:00 GMT"), Some(Duration::from_hours(1)));
        assert_eq!(wait("Tue, 24 Nov 2026 11:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(wait("soon"), None);
    }

    #[test]
    fn a_file_without_certificates_is_no_roots() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("roots.pem");
        std::fs::write(&path, "none").unwrap();
        let error = Client::new(Some(&path)).err().unwrap().to_string();
        assert!(error.contains("roots.pem") && error.contains("no certificate"), "{error}");
    }
}
