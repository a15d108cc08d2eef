//! Log lines that are JSON objects. Servers name their fields differently: this knows the names of nginx's
//! variables, of Caddy's log, and the usual plain ones.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::line::{Line, judge, method_and_target, number};

/// The first of these in a line counts.
const TARGETS: [&str; 7] = ["request_uri", "uri", "target", "url", "path", "request_path", "key"];
const BYTES: [&str; 7] =
    ["body_bytes_sent", "bytes_sent", "bytes", "size", "response_size", "response_bytes", "content_length"];
const METHODS: [&str; 3] = ["method", "request_method", "http_method"];
const STATUSES: [&str; 3] = ["status", "status_code", "response_status"];
const HOSTS: [&str; 3] = ["host", "http_host", "vhost"];

/// Parses a line. A line without a method counts as a GET, one without a status as a 200.
pub(crate) fn parse<'a>(line: &'a [u8], scratch: &'a mut Vec<u8>) -> Line<'a> {
    let Ok(Value::Object(fields)) = serde_json::from_slice::<Value<'_>>(line) else { return Line::Bad };
    let mut method = fields.method.map(|(_, method)| method);
    let mut target = fields.target.map(|(_, target)| target);
    if let Some(request) = &fields.request
        && let Some((verb, path)) = method_and_target(request.as_bytes())
    {
        method = method.or_else(|| Some(String::from_utf8_lossy(verb)));
        target = target.or_else(|| Some(String::from_utf8_lossy(path)));
    }
    let Some(target) = target else { return Line::Bad };
    scratch.clear();
    if let Some((_, host)) = &fields.host {
        scratch.extend_from_slice(host.as_bytes());
    }
    scratch.extend_from_slice(target.as_bytes());
    let method = method.as_deref().unwrap_or("GET");
    let status = fields.status.map_or(200, |(_, status)| status);
    judge(method.as_bytes(), status, scratch, fields.bytes.map_or(0, |(_, bytes)| bytes))
}

/// The values of a line, each with the rank of its name.
#[derive(Default)]
struct Fields<'a> {
    method: Option<(usize, Cow<'a, str>)>,
    target: Option<(usize, Cow<'a, str>)>,
    host: Option<(usize, Cow<'a, str>)>,
    status: Option<(usize, u64)>,
    bytes: Option<(usize, u64)>,
    /// The whole request line.
    request: Option<Cow<'a, str>>,
}

impl<'a> Fields<'a> {
    fn take(&mut self, name: &str, value: Value<'a>) {
        let rank = |names: &[&str]| names.iter().position(|known| *known == name);
        if name == "request" {
            match value {
                Value::Text(text) => self.request = Some(text),
                Value::Object(inner) => self.absorb(*inner),
                _ => {}
            }
        } else if let Some(rank) = rank(&TARGETS) {
            prefer(&mut self.target, rank, value.text());
        } else if let Some(rank) = rank(&BYTES) {
            prefer(&mut self.bytes, rank, value.number());
        } else if let Some(rank) = rank(&METHODS) {
            prefer(&mut self.method, rank, value.text());
        } else if let Some(rank) = rank(&STATUSES) {
            prefer(&mut self.status, rank, value.number());
        } else if let Some(rank) = rank(&HOSTS) {
            prefer(&mut self.host, rank, value.text());
        }
    }

    /// Caddy has an object with method, host and target.
    fn absorb(&mut self, inner: Self) {
        self.method = self.method.take().or(inner.method);
        self.target = self.target.take().or(inner.target);
        self.host = self.host.take().or(inner.host);
    }
}

fn prefer<T>(kept: &mut Option<(usize, T)>, rank: usize, value: Option<T>) {
    if let Some(value) = value
        && kept.as_ref().is_none_or(|(best, _)| rank < *best)
    {
        *kept = Some((rank, value));
    }
}

/// A JSON value, as far as this needs it.
enum Value<'a> {
    Text(Cow<'a, str>),
    Number(u64),
    Object(Box<Fields<'a>>),
    Other,
}

impl<'a> Value<'a> {
    fn text(self) -> Option<Cow<'a, str>> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// nginx quotes numbers, and writes `-` or nothing for a missing one.
    fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Text(text) => number(text.as_bytes()),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Value::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Value::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Value::Other)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut fields = Fields::default();
        while let Some(name) = object.next_key::<Name<'de>>()? {
            if name.is_known() {
                let value = object.next_value()?;
                fields.take(&name.0, value);
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Value::Object(Box::new(fields)))
    }
}

/// The name of a field, borrowed unless it has escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl Name<'_> {
    fn is_known(&self) -> bool {
        self.0 == "request"
            || [&TARGETS[..], &BYTES, &METHODS, &STATUSES, &HOSTS].iter().any(|names| names.contains(&&*self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Option<(String, u64)> {
        match parse(line.as_bytes(), &mut Vec::new()) {
            Line::Request { key, bytes } => Some((String::from_utf8_lossy(key).into_owned(), bytes)),
            _ => None,
        }
    }

    #[test]
    fn the_fields_of_well_known_servers_are_found() {
        let nginx = r#"{"uri":"/a","request_uri":"/a?b","status":"200","body_bytes_sent":"12","x":[1,{"status":5}]}"#;
        assert_eq!(request(nginx), Some(("/a?b".into(), 12)));
        let caddy = r#"{"request":{"method":"GET","host":"a.org","uri":"/","headers":{}},"status":200,"size":7}"#;
        assert_eq!(request(caddy), Some(("a.org/".into(), 7)));
        let line = r#"{"request":"GET \/x HTTP/1.1","status":304,"bytes":"-"}"#;
        assert_eq!(request(line), Some(("/x".into(), 0)));
        assert_eq!(request(r#"{"key":"k","size":3}"#), Some(("k".into(), 3)));
    }

    #[test]
    fn what_does_not_count_is_told_from_what_is_broken() {
        let parse = |line: &'static str| match parse(line.as_bytes(), &mut Vec::new()) {
            Line::OtherMethod => "method",
            Line::OtherStatus => "status",
            Line::Bad => "bad",
            Line::Request { .. } => "request",
        };
        assert_eq!(parse(r#"{"method":"POST","uri":"/","status":200}"#), "method");
        assert_eq!(parse(r#"{"method":"GET","uri":"/","status":502}"#), "status");
        for broken in ["{", "[]", "5", "{}", r#"{"uri":7}"#, r#"{"uri":"/"} x"#, "{\"uri\":\"\\ud800\"}"] {
            assert_eq!(parse(broken), "bad", "{broken}");
        }
        assert_eq!(parse(r#"{"uri":"/","size":-3.5,"host":{"name":"x"},"status":null}"#), "request");
    }
}
