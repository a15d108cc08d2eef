//! The fields of a request, from the client and to the origin, and `Via`.

use eyewall_http::field::connection;
use http::header::{CONTENT_LENGTH, COOKIE, EXPECT, HOST, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Version};

use crate::key::{CLIENT_ADDRESSES, KeyRules, NOT_FROM_CLIENTS};

/// The name of this server in `Via`.
pub(crate) const BY: &str = "eyewall";

/// Drops the fields that a client may not send. It runs before any other code reads the fields, so that key, variant and origin
/// see the same ones. It drops
///
/// - fields of the connection, because the origin won't get what `Connection` names;
/// - fields that name another address or another client ([`NOT_FROM_CLIENTS`], `X-Forwarded-For` and the like), unless `key` has
///   them;
/// - fields that name the client's address ([`CLIENT_ADDRESSES`]), unless a trusted proxy sent them;
/// - names with an underscore, which some servers take for the same name with a hyphen.
///
/// It joins `Cookie` fields (RFC 9113, section 8.2.3), drops the cookies that the site ignores, and reduces `Accept-Language` to one of
/// the site's languages. `Connection` and `Upgrade`
/// stay, unless the upgrade is to another version of HTTP, which would bypass this cache.
pub(crate) fn receive(fields: &mut HeaderMap, key: &KeyRules, is_trusted: bool) {
    let is_unasked =
        |name: &&HeaderName| name.as_str().contains('_') || (is_of_sender(name, is_trusted) && !key.has_header(name));
    let upgrades = [UPGRADE, HeaderName::from_static("http2-settings")];
    let leaves_cache = fields.get(UPGRADE).is_some_and(|protocol| is_http(protocol.as_bytes()));
    let named = connection::named(fields).filter(|name| *name != UPGRADE);
    let mut dropped: Vec<HeaderName> = fields.keys().filter(is_unasked).cloned().chain(named).collect();
    dropped.extend(upgrades.into_iter().filter(|_| leaves_cache));
    for name in dropped {
        fields.remove(name);
    }
    let cookies: Vec<&[u8]> = fields.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
    {
        fields.insert(COOKIE, joined);
    }
    key.ignored_cookies().drop_from(fields);
    key.languages().reduce(fields);
}

fn is_of_sender(name: &HeaderName, is_trusted: bool) -> bool {
    let name = name.as_str();
    name.starts_with(['c', 'f', 'p', 't', 'x'])
        && (NOT_FROM_CLIENTS.contains(&name) || !is_trusted && CLIENT_ADDRESSES.contains(&name))
}

/// Whether a protocol is a version of HTTP, or TLS, under which HTTP would go on.
fn is_http(protocols: &[u8]) -> bool {
    let mut names = protocols.split(|byte| *byte == b',').map(|name| name.trim_ascii().to_ascii_lowercase());
    names.any(|name| name.starts_with(b"h2") || name.starts_with(b"http") || name.starts_with(b"tls"))
}

/// The fields of a client's request as the origin gets them.
pub(crate) fn of_forwarded_request(fields: &HeaderMap, version: Version) -> HeaderMap {
    let mut fields = fields.clone();
    connection::drop_hop_by_hop(&mut fields);
    for name in [HOST, EXPECT, CONTENT_LENGTH] {
        fields.remove(name);
    }
    append_via(&mut fields, version);
    fields
}

/// Adds this server to `Via`, with the version by which it received the message.
pub(crate) fn append_via(fields: &mut HeaderMap, received: Version) {
    connection::append_via(fields, received, BY);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The remaining fields of a client, if these fields are in the key.
    fn left(in_key: &str, fields: &[(&'static str, &'static str)]) -> Vec<(String, String)> {
        left_of(in_key, fields, false)
    }

    fn left_of(in_key: &str, fields: &[(&'static str, &'static str)], is_trusted: bool) -> Vec<(String, String)> {
        let config =
            crate::config::parse(&format!("[[site]]\norigins = [\"http://a\"]\n[site.key]\nheaders = [{in_key}]\n"));
        let config = config.unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        receive(&mut map, &KeyRules::of(&config.sites[0]), is_trusted);
        map.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect()
    }

    fn names(left: &[(String, String)]) -> Vec<&str> {
        left.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn a_client_can_not_speak_for_another() {
        for name in
            ["x-forwarded-host", "x-forwarded-for", "forwarded", "x-real-ip", "x_forwarded_host", "x-original-url"]
        {
            assert!(left("", &[(name, "evil.example")]).is_empty(), "{name}");
        }
        let told = [("x-forwarded-proto", "https"), ("x_device", "phone"), ("accept", "*/*")];
        assert_eq!(names(&left("\"X-Forwarded-Proto\"", &told)), ["x-forwarded-proto", "accept"]);
    }

    #[test]
    fn only_trusted_proxies_name_addresses_of_clients() {
        for name in CLIENT_ADDRESSES {
            assert!(left("", &[(name, "192.0.2.7")]).is_empty(), "{name}");
            assert_eq!(names(&left_of("", &[(name, "192.0.2.7")], true)), [name]);
        }
        assert!(left_of("", &[("proxy", "http://evil.example")], true).is_empty());
    }

    #[test]
    fn fields_of_the_connection_do_not_choose_a_variant() {
        let fields = [("connection", "accept-language, cookie"), ("accept-language", "de"), ("cookie", "a=b")];
        assert_eq!(names(&left("", &fields)), ["connection", "cookie"]);
    }

    #[test]
    fn no_upgrade_bypasses_the_cache() {
        let upgrade =
            |protocol| [("connection", "upgrade, http2-settings"), ("upgrade", protocol), ("http2-settings", "x")];
        assert_eq!(names(&left("", &upgrade("websocket"))), ["connection", "upgrade"]);
        for protocol in ["h2c", "websocket, H2C", "HTTP/2.0", "TLS/1.3"] {
            assert_eq!(names(&left("", &upgrade(protocol))), ["connection"], "{protocol}");
        }
    }

    #[test]
    fn ignored_cookies_are_dropped_and_the_others_left_byte_for_byte() {
        let config = "[[site]]\norigins = [\"http://a\"]\nkey = { ignore_cookies = [\"_ga*\", \"x\"] }\n";
        let config = crate::config::parse(config).unwrap();
        for (cookies, expected) in [
            (&["_ga=1"][..], None),
            (&["_ga=1", "_ga_X=2; x="], None),
            (&["_ga=1;"], None),
            (&["_ga=1; a=b"], Some("a=b")),
            (&["a=b; _ga=1; c=d"], Some("a=b; c=d")),
            (&["a=b", "_ga=1", "c=d"], Some("a=b; c=d")),
            (&["a=b;_gat = 1;  c=\"d e\" ;;_g=1;"], Some("a=b;  c=\"d e\" ;;_g=1;")),
            (&["_ga; =_ga; _GA=1; ;X=2"], Some("_ga; =_ga; _GA=1; ;X=2")),
            (&["a=b; _g=_ga=1"], Some("a=b; _g=_ga=1")),
            (&[""], Some("")),
        ] {
            let mut map = HeaderMap::new();
            for value in cookies {
                map.append(COOKIE, HeaderValue::from_static(value));
            }
            receive(&mut map, &KeyRules::of(&config.sites[0]), false);
            assert_eq!(map.get(COOKIE).map(|value| value.to_str().unwrap()), expected, "{cookies:?}");
        }
    }

    #[test]
    fn cookies_are_one_field() {
        assert_eq!(left("", &[("cookie", "a=1"), ("cookie", "b=2")]), [("cookie".to_owned(), "a=1; b=2".to_owned())]);
    }
}
