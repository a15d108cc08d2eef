//! A request as the access log sees it, by either path.

use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Version};

use crate::host_name::without_user;
use crate::key::Scheme;
use crate::serve::simple_request::SimpleRequest;
use crate::serve::trace::Ids;

/// The parts of a request that a line may have.
pub(crate) struct LoggedRequest<'a> {
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    /// `None`: it was no request.
    pub(super) version: Option<&'static str>,
    pub(super) scheme: Scheme,
    pub(super) host: Option<&'a [u8]>,
    pub(super) ids: Option<&'a Ids>,
    fields: Fields<'a>,
}

enum Fields<'a> {
    None,
    Map(&'a HeaderMap),
    Simple(&'a SimpleRequest<'a>),
}

impl<'a> LoggedRequest<'a> {
    /// `scheme` is that of the client.
    pub(crate) fn of<B>(request: &'a Request<B>, scheme: Scheme) -> Self {
        let fields = request.headers();
        let authority = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        Self {
            method: request.method().as_str(),
            target: target(request),
            version: Some(version(request.version())),
            scheme,
            host: authority.or_else(|| fields.get(HOST).map(HeaderValue::as_bytes)).map(without_user),
            ids: None,
            fields: Fields::Map(fields),
        }
    }

    pub(crate) fn of_simple(request: &'a SimpleRequest<'a>) -> Self {
        Self {
            method: "GET",
            target: request.target,
            version: Some(version(Version::HTTP_11)),
            scheme: request.scheme,
            host: Some(without_user(request.host)),
            ids: None,
            fields: Fields::Simple(request),
        }
    }

    /// Bytes that were not a request.
    pub(super) fn none() -> Self {
        let (scheme, fields) = (Scheme::Http, Fields::None);
        Self { method: "-", target: "-", version: None, scheme, host: None, ids: None, fields }
    }

    /// The same with its names.
    pub(crate) fn named(self, ids: Option<&'a Ids>) -> Self {
        Self { ids, ..self }
    }

    pub(crate) fn method(&self) -> &'a str {
        self.method
    }

    /// The target at the host, mostly a path and a query.
    pub(crate) fn target(&self) -> &'a str {
        self.target
    }

    /// `None`: it was no request.
    pub(crate) fn version(&self) -> Option<&'static str> {
        self.version
    }

    pub(crate) fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host that the client wants.
    pub(crate) fn host(&self) -> Option<&'a [u8]> {
        self.host
    }

    /// The value of the first field of this name.
    pub(super) fn field(&self, name: &HeaderName) -> Option<&'a [u8]> {
        match self.fields {
            Fields::None => None,
            Fields::Map(fields) => fields.get(name).map(HeaderValue::as_bytes),
            Fields::Simple(request) => request.values(name.as_str()).next(),
        }
    }
}

/// The client's target at the host, mostly a path and a query.
fn target<B>(request: &Request<B>) -> &str {
    let uri = request.uri();
    match (uri.path_and_query(), uri.authority()) {
        (Some(target), _) => target.as_str(),
        (None, Some(authority)) => authority.as_str().rsplit('@').next().unwrap_or_default(),
        (None, None) => "-",
    }
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}
