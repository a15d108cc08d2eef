//! The form of a line in the access log: a ready one, or a text with the names of values, as nginx has them.
//!
//! The text is read once, with the configuration. A line then walks through the pieces.

use std::fmt;
use std::str::FromStr;

use http::HeaderName;

use super::value::written_as_text;

/// The form of a line in the access log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// NCSA combined; the cache status and the time taken follow at the end.
    #[default]
    Combined,
    /// One JSON object a line.
    Json,
    /// A text with names such as `$status`.
    Custom(Template),
}

/// A text with the names of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// As it was written.
    text: String,
    pieces: Vec<Piece>,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(Box<str>),
    Value(Variable),
}

/// A value of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Variable {
    RemoteAddress,
    RemoteUser,
    TimeLocal,
    TimeIso,
    TimeSeconds,
    Request,
    Method,
    Target,
    Path,
    Query,
    Protocol,
    Scheme,
    Host,
    RequestId,
    TraceId,
    /// A field of the request.
    RequestField(HeaderName),
    /// A field of the response.
    ResponseField(HeaderName),
    Site,
    /// What the cache did, in nginx's words.
    CacheStatus,
    /// The same in Eyewall's, with the reason.
    Cache,
    OriginSeconds,
    OriginMicros,
    FirstByteSeconds,
    FirstByteMicros,
    Status,
    BodyBytes,
    RequestSeconds,
    RequestMicros,
}

/// The names of values, apart from fields. The first name of a value is the one that is shown.
const NAMES: [(&str, Variable); 30] = [
    ("remote_addr", Variable::RemoteAddress),
    ("remote_user", Variable::RemoteUser),
    ("time_local", Variable::TimeLocal),
    ("time_iso8601", Variable::TimeIso),
    ("msec", Variable::TimeSeconds),
    ("request", Variable::Request),
    ("request_method", Variable::Method),
    ("request_uri", Variable::Target),
    ("uri", Variable::Path),
    ("args", Variable::Query),
    ("query_string", Variable::Query),
    ("server_protocol", Variable::Protocol),
    ("scheme", Variable::Scheme),
    ("host", Variable::Host),
    ("request_id", Variable::RequestId),
    ("trace_id", Variable::TraceId),
    ("site", Variable::Site),
    ("server_name", Variable::Site),
    ("upstream_cache_status", Variable::CacheStatus),
    ("cache", Variable::Cache),
    ("upstream_response_time", Variable::OriginSeconds),
    ("origin_us", Variable::OriginMicros),
    ("first_byte_time", Variable::FirstByteSeconds),
    ("first_byte_us", Variable::FirstByteMicros),
    ("status", Variable::Status),
    ("body_bytes_sent", Variable::BodyBytes),
    ("bytes_sent", Variable::BodyBytes),
    ("request_time", Variable::RequestSeconds),
    ("total_us", Variable::RequestMicros),
    ("request_time_us", Variable::RequestMicros),
];

/// Parts of the names of fields that carry secrets of clients.
const SECRET: [&str; 11] =
    ["cookie", "auth", "token", "secret", "passw", "api-key", "apikey", "session", "signature", "credential", "jwt"];
/// A name at most this far from a known one is probably a mistyped one.
const DISTANCE_MAX: usize = 3;

impl Template {
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Whether the line is JSON, so that values are escaped as parts of JSON strings.
    pub(crate) fn is_json(&self) -> bool {
        self.text.trim_start().starts_with('{')
    }
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "combined" => Ok(Self::Combined),
            "json" => Ok(Self::Json),
            text if text.contains('$') => text.parse().map(Self::Custom),
            text => Err(format!(
                "`{text}` is no format of the access log; give \"combined\", \"json\", or a text with names such as $status"
            )),
        }
    }
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains(|letter: char| letter.is_control() && letter != '\t') {
            return Err("the format of the access log has a control character; write one line".to_owned());
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            if at > 0 {
                pieces.push(Piece::Text(rest[..at].into()));
            }
            let (name, behind) = name_at(&rest[at + 1..])?;
            pieces.push(Piece::Value(Variable::named(name)?));
            rest = behind;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.into()));
        }
        Ok(Self { text: text.to_owned(), pieces })
    }
}

/// The name at the beginning, `name` or `{name}`, and the rest.
fn name_at(text: &str) -> Result<(&str, &str), String> {
    if let Some(inside) = text.strip_prefix('{') {
        return inside.split_once('}').ok_or_else(|| "`${` has no end; write `${status}` or `$status`".to_owned());
    }
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len());
    if end == 0 {
        return Err("`$` has no name behind it; write a name such as `$status`".to_owned());
    }
    Ok(text.split_at(end))
}

impl Variable {
    /// A field of the response wins: `sent_http_` ends like the other.
    fn named(name: &str) -> Result<Self, String> {
        if let Some(field) = name.strip_prefix("sent_http_") {
            return field_of(name, field).map(Self::ResponseField);
        }
        if let Some(field) = name.strip_prefix("http_") {
            return field_of(name, field).map(Self::RequestField);
        }
        if name.starts_with("cookie_") {
            return Err(secret(name));
        }
        let known = NAMES.iter().find(|(known, _)| *known == name);
        known.map(|(_, variable)| variable.clone()).ok_or_else(|| unknown(name))
    }
}

fn field_of(name: &str, field: &str) -> Result<HeaderName, String> {
    let field = field.to_ascii_lowercase().replace('_', "-");
    if SECRET.iter().any(|part| field.contains(part)) {
        return Err(secret(name));
    }
    field.parse().map_err(|_| format!("`${name}` names no field; write one such as `$http_user_agent`"))
}

fn secret(name: &str) -> String {
    format!("`${name}` would write secrets of clients to the access log; remove it")
}

fn unknown(name: &str) -> String {
    let nearest = NAMES
        .iter()
        .map(|(known, _)| (strsim::damerau_levenshtein(name, known), *known))
        .min_by_key(|(distance, _)| *distance);
    let hint = match nearest {
        Some((distance, known)) if distance <= DISTANCE_MAX.min(name.len() / 2) => format!("did you mean `${known}`?"),
        _ => "docs/operations-server.md lists the names".to_owned(),
    };
    format!("`${name}` is no value of the access log; {hint}")
}

impl fmt::Display for LogFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Combined => "combined",
            Self::Json => "json",
            Self::Custom(template) => &template.text,
        })
    }
}

written_as_text! {
    LogFormat: "\"combined\", \"json\", or a text with names such as $status",
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = include_str!("../../../../docs/operations-server.md");

    fn refused(text: &str) -> String {
        text.parse::<LogFormat>().unwrap_err()
    }

    #[test]
    fn a_text_has_constant_parts_and_values() {
        let format: LogFormat = r#"$remote_addr "${status}x$http_user_agent""#.parse().unwrap();
        let LogFormat::Custom(template) = &format else { panic!("it is another format") };
        let expected = [
            Piece::Value(Variable::RemoteAddress),
            Piece::Text(" \"".into()),
            Piece::Value(Variable::Status),
            Piece::Text("x".into()),
            Piece::Value(Variable::RequestField(HeaderName::from_static("user-agent"))),
            Piece::Text("\"".into()),
        ];
        assert_eq!(template.pieces(), expected);
        assert!(!template.is_json() && format.to_string() == r#"$remote_addr "${status}x$http_user_agent""#);
        assert_eq!("json".parse(), Ok(LogFormat::Json));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest_one() {
        assert!(refused("$staus").ends_with("; did you mean `$status`?"), "{}", refused("$staus"));
        assert!(refused("$elephant").contains("lists the names"));
        for wrong in ["combine", "a $", "$-", "${status", "$status\n$uri", "$http_"] {
            assert!(!refused(wrong).is_empty());
        }
    }

    #[test]
    fn no_secret_can_be_named() {
        for name in [
            "http_cookie",
            "http_x_auth_key",
            "http_cf_access_jwt_assertion",
            "http_Authorization",
            "http_proxy_authorization",
            "sent_http_set_cookie",
            "cookie_session",
            "http_x_csrf_token",
            "http_x_api_key",
        ] {
            assert!(refused(&format!("${name}")).contains("secrets of clients"), "{name}");
        }
    }

    #[test]
    fn each_name_is_documented() {
        for (name, _) in NAMES {
            assert!(DOCUMENT.contains(&format!("`${name}`")), "{name}");
        }
    }
}
