//! The address of a collector of spans.

use std::fmt;
use std::str::FromStr;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

use super::value::written_as_text;
use crate::host_name::is_host;

/// The path of traces at a collector (OTLP/HTTP).
const TRACES: &str = "/v1/traces";

/// The address of a collector: `http://` or `https://` with a host, a port if it isn't the scheme's, and perhaps a path before `/v1/traces`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectorUrl {
    scheme: Scheme,
    authority: Authority,
    /// Without `/v1/traces`, and without a slash at its end.
    prefix: String,
}

impl CollectorUrl {
    /// Where spans go.
    pub(crate) fn traces(&self) -> Uri {
        let path = format!("{}{TRACES}", self.prefix);
        let uri = Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone()).path_and_query(path);
        // Its parts were read from an address.
        uri.build().unwrap_or_default()
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }
}

impl FromStr for CollectorUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXAMPLE: &str = "give an address such as http://127.0.0.1:4318";
        let parts = text.parse::<Uri>().map_err(|_| format!("`{text}` is not an address; {EXAMPLE}"))?.into_parts();
        let scheme = match parts.scheme {
            Some(scheme) if scheme == Scheme::HTTP || scheme == Scheme::HTTPS => scheme,
            Some(scheme) => return Err(format!("the scheme {scheme} is not supported; {EXAMPLE}")),
            None => return Err(format!("`{text}` has no scheme; {EXAMPLE}")),
        };
        let authority = parts.authority.ok_or_else(|| format!("`{text}` has no host; {EXAMPLE}"))?;
        if authority.as_str().contains('@') {
            let hint = "write it as `Authorization: Basic ...` into the file of `otlp_headers_file`";
            return Err(format!("the address of a collector can't have a user name; {hint}"));
        }
        let after_host = &authority.as_str()[authority.host().len()..];
        if !after_host.is_empty() && authority.port_u16().is_none_or(|port| port == 0) {
            return Err(format!("`{text}` has an impossible port; give 1 to 65535"));
        }
        if !is_host(&authority.host().to_ascii_lowercase()) {
            return Err(format!("`{}` is not a host; {EXAMPLE}", authority.host()));
        }
        let path = parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/"));
        if path.query().is_some() {
            return Err("the address of a collector can't have a query; remove it".to_owned());
        }
        let path = path.path().trim_end_matches('/');
        let prefix = path.strip_suffix(TRACES).unwrap_or(path).to_owned();
        Ok(Self { scheme, authority, prefix })
    }
}

impl fmt::Display for CollectorUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}{}", self.scheme, self.authority, self.prefix)
    }
}

written_as_text! {
    CollectorUrl: "an address such as \"http://127.0.0.1:4318\"",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_traces_is_added_once() {
        for (text, traces) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            ("https://otel.example/shop/", "https://otel.example/shop/v1/traces"),
            ("http://[::1]:4318/v1/traces", "http://[::1]:4318/v1/traces"),
        ] {
            let url: CollectorUrl = text.parse().unwrap();
            assert_eq!((url.traces().to_string().as_str(), url.is_secure()), (traces, text.starts_with("https")));
            assert_eq!(url.to_string().parse::<CollectorUrl>().unwrap(), url);
        }
    }

    #[test]
    fn a_wrong_address_is_refused_with_the_reason() {
        for (wrong, words) in [
            ("", "not an address"),
            ("127.0.0.1:4318", "no scheme"),
            ("grpc://a:4317", "scheme grpc"),
            ("http://u:p@a", "user name"),
            ("http://a:0", "impossible port"),
            ("http://a..b", "not a host"),
            ("http://a/?token=x", "query"),
        ] {
            let error = wrong.parse::<CollectorUrl>().unwrap_err();
            assert!(error.contains(words), "{wrong}: {error}");
        }
    }
}
