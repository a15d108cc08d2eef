//! The form of a line, ready to be written: constant parts, and values that are known at different times.

use crate::config::log_format::{LogFormat, Piece, Variable};
use crate::serve::log::escape::Escape;

/// The form of `combined`.
const COMBINED: &str = "$remote_addr - - [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\" \
                        \"$host\" $cache $first_byte_us $total_us $origin_us";

/// A form of lines.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) parts: Vec<Part>,
    pub(super) escape: Escape,
}

/// A part of a line.
#[derive(Debug)]
pub(super) enum Part {
    Text(Box<str>),
    /// A value, or `-` if it is absent; nothing in JSON.
    Value(Variable),
    /// A member of a JSON object that begins with this text, and is left out if its value is absent.
    Member(&'static str, Variable),
}

/// When a value is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// With the request.
    Request,
    /// With the head of the response.
    Response,
    /// With the last byte.
    End,
}

impl Form {
    pub(super) fn of(format: &LogFormat) -> Self {
        match format {
            LogFormat::Combined => Self::of_pieces(&pieces_of(COMBINED), Escape::Quoted),
            LogFormat::Json => Self::json(),
            LogFormat::Custom(template) => {
                let escape = if template.is_json() { Escape::Json } else { Escape::Quoted };
                Self::of_pieces(template.pieces(), escape)
            }
        }
    }

    fn of_pieces(pieces: &[Piece], escape: Escape) -> Self {
        let parts = pieces.iter().map(|piece| match piece {
            Piece::Text(text) => Part::Text(text.clone()),
            Piece::Value(variable) => Part::Value(variable.clone()),
        });
        Self { parts: parts.chain([Part::Text("\n".into())]).collect(), escape }
    }

    fn json() -> Self {
        use http::header::{REFERER, USER_AGENT};
        let mut parts =
            vec![Part::Text("{\"time\":\"".into()), Part::Value(Variable::TimeIso), Part::Text("\"".into())];
        for (start, variable) in [
            (",\"client\":\"", Variable::RemoteAddress),
            (",\"method\":\"", Variable::Method),
            (",\"target\":\"", Variable::Target),
            (",\"protocol\":\"", Variable::Protocol),
            (",\"scheme\":\"", Variable::Scheme),
            (",\"host\":\"", Variable::Host),
            (",\"referer\":\"", Variable::RequestField(REFERER)),
            (",\"user_agent\":\"", Variable::RequestField(USER_AGENT)),
            (",\"request_id\":\"", Variable::RequestId),
            (",\"trace_id\":\"", Variable::TraceId),
            (",\"status\":", Variable::Status),
            (",\"bytes\":", Variable::BodyBytes),
            (",\"cache\":\"", Variable::Cache),
            (",\"first_byte_us\":", Variable::FirstByteMicros),
            (",\"origin_us\":", Variable::OriginMicros),
            (",\"total_us\":", Variable::RequestMicros),
        ] {
            parts.push(Part::Member(start, variable));
        }
        parts.push(Part::Text("}\n".into()));
        Self { parts, escape: Escape::Json }
    }

    /// The values of a phase, in the order of the line.
    pub(super) fn values(&self, phase: Phase) -> impl Iterator<Item = &Variable> {
        let values = self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Value(variable) | Part::Member(_, variable) => Some(variable),
        });
        values.filter(move |variable| Phase::of(variable) == phase)
    }
}

/// The pieces of a text that is right.
fn pieces_of(text: &str) -> Vec<Piece> {
    match text.parse() {
        Ok(LogFormat::Custom(template)) => template.pieces().to_vec(),
        _ => Vec::new(),
    }
}

impl Phase {
    pub(super) fn of(variable: &Variable) -> Self {
        match variable {
            Variable::ResponseField(_) | Variable::Site | Variable::CacheStatus | Variable::Cache => Self::Response,
            Variable::OriginSeconds
            | Variable::OriginMicros
            | Variable::FirstByteSeconds
            | Variable::FirstByteMicros
            | Variable::Status
            | Variable::BodyBytes
            | Variable::RequestSeconds
            | Variable::RequestMicros => Self::End,
            _ => Self::Request,
        }
    }
}
