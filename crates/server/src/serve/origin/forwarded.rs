//! `Host`, `X-Forwarded-*` and `Forwarded` (RFC 7239): the fields that tell the origin about the client.

use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{FORWARDED, HOST};
use http::{HeaderMap, HeaderValue};

use crate::config;
use crate::key::Scheme;
use crate::serve::trace::Ids;
use crate::serve::trusted_proxies::{X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO};
use crate::serve::unix_client::is_unix;

/// Room for a usual value of `Forwarded`, and for a separator and an address.
const FORWARDED_BYTES: usize = 96;
const ADDRESS_BYTES: usize = 48;

/// The client, as the origin may know it.
#[derive(Debug, Clone)]
pub(crate) struct ClientInfo {
    pub(crate) address: IpAddr,
    /// The real client, which differs from the client if that is a trusted proxy.
    pub(crate) real_client: IpAddr,
    /// The chain of clients that a trusted proxy has reported: values of `X-Forwarded-For`.
    pub(crate) chain: Option<HeaderValue>,
    /// The scheme of the real client's request.
    pub(crate) scheme: Scheme,
    /// The requested host, with its port if it has one: `Host`, or `:authority`.
    pub(crate) host: Option<HeaderValue>,
    /// The names of the request.
    pub(crate) ids: Option<Arc<Ids>>,
}

/// The `Host` of requests to the origin. A response that depends on it can be stored only if the key has it.
#[derive(Debug, Clone, Default)]
pub(crate) enum HostHeader {
    /// Host and port of the origin's address.
    #[default]
    Origin,
    /// The client's host; the origin's own if there is no client.
    Client,
    /// Always this.
    Fixed(HeaderValue),
}

impl HostHeader {
    /// From the configuration.
    pub(crate) fn of(configured: &config::names::HostHeader) -> Self {
        match configured {
            config::names::HostHeader::Client => Self::Client,
            config::names::HostHeader::Origin => Self::Origin,
            // The configuration has checked that it is a host, which is a valid value.
            config::names::HostHeader::Name(name) => HeaderValue::from_str(name).map_or(Self::Client, Self::Fixed),
        }
    }

    /// `origin` is the origin's own host.
    pub(crate) fn write(&self, fields: &mut HeaderMap, client_info: Option<&ClientInfo>, origin: &str) {
        let host = match self {
            Self::Origin => None,
            Self::Client => client_info.and_then(|client_info| client_info.host.clone()),
            Self::Fixed(name) => Some(name.clone()),
        };
        if let Some(host) = host.or_else(|| HeaderValue::from_str(origin).ok()) {
            fields.insert(HOST, host);
        }
    }
}

/// Adds the fields about the client, if `client_info` is given. Fields that the client itself sent are there only if the key has
/// them (`serve::fields::receive`); they stay.
pub(crate) fn write(fields: &mut HeaderMap, client_info: Option<&ClientInfo>) {
    let Some(client_info) = client_info else { return };
    if let Some(ids) = &client_info.ids {
        ids.write(fields);
    }
    let host = client_info.host.as_ref().filter(|host| host.to_str().is_ok_and(|text| !text.contains(['"', '\\'])));
    // Always valid values, made of parts that are valid in fields.
    let addresses = Some(chain(client_info)).filter(|chain| !chain.is_empty());
    let addresses = addresses.and_then(|chain| HeaderValue::from_maybe_shared(Bytes::from(chain)).ok());
    let forwarded = HeaderValue::from_maybe_shared(Bytes::from(forwarded(client_info, host))).ok();
    let told = [
        (X_FORWARDED_PROTO, Some(HeaderValue::from_static(client_info.scheme.as_str()))),
        (X_FORWARDED_HOST, host.cloned()),
        (X_FORWARDED_FOR, addresses),
        (FORWARDED, forwarded),
    ];
    fields.reserve(told.len());
    for (name, value) in told {
        if let Some(value) = value {
            fields.entry(name).or_insert(value);
        }
    }
}

/// The value of `X-Forwarded-For`: the chain that a trusted proxy has reported, and the client. It may be empty.
fn chain(client_info: &ClientInfo) -> Vec<u8> {
    let reported = client_info.chain.as_ref().map_or(&[][..], HeaderValue::as_bytes);
    let mut text = Vec::with_capacity(reported.len() + ADDRESS_BYTES);
    text.extend(reported);
    if !is_unix(client_info.address) {
        if !text.is_empty() {
            text.extend(b", ");
        }
        // An IPv4-mapped address of an IPv6 socket is an IPv4 address.
        push_address(&mut text, client_info.address.to_canonical());
    }
    text
}

/// Adds an address as text. For IPv4, which most clients have, it does so without the machinery of formats.
fn push_address(text: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            let mut digits = itoa::Buffer::new();
            for (place, octet) in address.octets().into_iter().enumerate() {
                if place > 0 {
                    text.push(b'.');
                }
                text.extend(digits.format(octet).as_bytes());
            }
        }
        IpAddr::V6(address) => {
            // Writing to memory can't fail.
            let _ = write!(text, "{address}");
        }
    }
}

/// `Forwarded` (RFC 7239): the real client with its scheme and host, then the client if that is another.
fn forwarded(client_info: &ClientInfo, host: Option<&HeaderValue>) -> Vec<u8> {
    let node = |text: &mut Vec<u8>, address: IpAddr| match address.to_canonical() {
        // RFC 7239, section 6.2.
        _ if is_unix(address) => text.extend(b"unknown"),
        IpAddr::V6(address) => {
            text.extend(b"\"[");
            push_address(text, address.into());
            text.extend(b"]\"");
        }
        address @ IpAddr::V4(_) => push_address(text, address),
    };
    let mut text = Vec::with_capacity(FORWARDED_BYTES);
    text.extend(b"for=");
    node(&mut text, client_info.real_client);
    text.extend(b";proto=");
    text.extend(client_info.scheme.as_str().as_bytes());
    if let Some(host) = host {
        text.extend(b";host=\"");
        text.extend(host.as_bytes());
        text.push(b'"');
    }
    if client_info.real_client != client_info.address {
        text.extend(b", for=");
        node(&mut text, client_info.address);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_info(address: &str, host: Option<&'static str>) -> ClientInfo {
        let (address, host) = (address.parse().unwrap(), host.map(HeaderValue::from_static));
        ClientInfo { address, real_client: address, chain: None, scheme: Scheme::Http, host, ids: None }
    }

    #[test]
    fn the_origin_gets_both_forms_of_the_fields_about_the_client() {
        for (client_info, told, forwarded) in [
            (
                client_info("192.0.2.1", Some("a.example:81")),
                "192.0.2.1",
                "for=192.0.2.1;proto=http;host=\"a.example:81\"",
            ),
            (client_info("::ffff:192.0.2.1", None), "192.0.2.1", "for=192.0.2.1;proto=http"),
            (client_info("2001:db8::1", Some("a\"b")), "2001:db8::1", "for=\"[2001:db8::1]\";proto=http"),
            (ClientInfo { scheme: Scheme::Https, ..client_info("::1", None) }, "::1", "for=\"[::1]\";proto=https"),
        ] {
            let mut fields = HeaderMap::new();
            write(&mut fields, Some(&client_info));
            assert_eq!(
                (&fields[X_FORWARDED_FOR], &fields[FORWARDED]),
                (&told.parse().unwrap(), &forwarded.parse().unwrap())
            );
        }
    }

    #[test]
    fn a_trusted_proxy_is_the_last_of_its_chain() {
        let (real_client, chain) = ("2001:db8::7".parse().unwrap(), HeaderValue::from_static("x, 2001:db8::7"));
        let proxy =
            ClientInfo { real_client, chain: Some(chain), scheme: Scheme::Https, ..client_info("10.0.0.1", Some("a")) };
        let mut fields = HeaderMap::new();
        write(&mut fields, Some(&proxy));
        assert_eq!(fields[X_FORWARDED_FOR], "x, 2001:db8::7, 10.0.0.1");
        assert_eq!(fields[X_FORWARDED_PROTO], "https");
        assert_eq!(fields[FORWARDED], "for=\"[2001:db8::7]\";proto=https;host=\"a\", for=10.0.0.1");
    }

    #[test]
    fn fields_of_the_client_that_the_key_has_are_passed_on() {
        let mut fields = HeaderMap::from_iter([(X_FORWARDED_PROTO, HeaderValue::from_static("https"))]);
        write(&mut fields, Some(&client_info("192.0.2.1", Some("a.example"))));
        assert_eq!(
            (&fields[X_FORWARDED_PROTO], &fields[X_FORWARDED_HOST]),
            (&"https".parse().unwrap(), &"a.example".parse().unwrap())
        );
    }

    #[test]
    fn the_origin_gets_its_own_host_the_clients_or_another() {
        let (origin, client) = ("10.0.0.1:3000", client_info("192.0.2.1", Some("a.example")));
        for (header, client, host) in [
            (HostHeader::Origin, Some(&client), "10.0.0.1:3000"),
            (HostHeader::Client, Some(&client), "a.example"),
            (HostHeader::Client, None, "10.0.0.1:3000"),
            (HostHeader::Fixed(HeaderValue::from_static("b.example")), Some(&client), "b.example"),
        ] {
            let mut fields = HeaderMap::new();
            header.write(&mut fields, client, origin);
            assert_eq!(fields[HOST], host, "{header:?}");
        }
    }
}
