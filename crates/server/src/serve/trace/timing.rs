//! `Server-Timing` (W3C): where the time of a response went, for those who may know.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use toml::Spanned;

use crate::config::names::Network;
use crate::config::trace as settings;
use crate::serve::error::Error;
use crate::serve::outcome::{Outcome, Verdict};
use crate::serve::simple_request::SimpleRequest;
use crate::serve::token::Token;

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
/// The field of a request that shows the token.
const SERVER_TIMING_TOKEN: HeaderName = HeaderName::from_static("server-timing-token");

/// The clients that get the field.
pub(super) struct Timing {
    networks: Vec<Network>,
    token: Option<Token>,
}

impl Timing {
    /// # Errors
    /// [`Error::TokenFile`].
    pub(super) fn of(settings: &settings::Tracing) -> Result<Option<Self>, Error> {
        let networks = settings.server_timing_from.clone();
        let token = settings.server_timing_token_file.as_ref().map(Spanned::get_ref);
        let read = |path: &PathBuf| Token::read(path).map_err(|source| Error::TokenFile { path: path.clone(), source });
        let token = token.map(read).transpose()?;
        Ok((!networks.is_empty() || token.is_some()).then_some(Self { networks, token }))
    }

    /// Whether a request gets the field. The token is not passed on.
    pub(super) fn is_for(&self, client: IpAddr, fields: &mut HeaderMap) -> bool {
        let shown =
            self.token.as_ref().and_then(|token| Some(token.is(fields.remove(SERVER_TIMING_TOKEN)?.as_bytes())));
        shown == Some(true) || Network::any_has(&self.networks, client)
    }

    /// Whether the full path has to look at a simple request.
    pub(super) fn concerns(&self, client: IpAddr, request: &SimpleRequest<'_>) -> bool {
        let shows = self.token.is_some() && request.last_field(SERVER_TIMING_TOKEN.as_str()).is_some();
        shows || Network::any_has(&self.networks, client)
    }
}

/// Adds the field to a response whose head took so long, and waited so long for origins.
pub(super) fn write(
    fields: &mut HeaderMap,
    (word, reason): (&str, Option<&str>),
    origin: Option<Duration>,
    total: Duration,
) {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let reason = reason.map(|reason| {
        let is_plain = |letter: &char| matches!(letter, ' '..='~') && !matches!(letter, '"' | '\\');
        format!(":{}", reason.chars().filter(is_plain).collect::<String>())
    });
    let mut text = format!("cache;desc=\"{word}{}\"", reason.unwrap_or_default());
    if let Some(origin) = origin {
        let _ = write!(text, ", origin;dur={:.3}", milliseconds(origin));
    }
    // Never fails on a string.
    let _ = write!(text, ", total;dur={:.3}", milliseconds(total));
    // Text of ASCII without control characters is a value.
    if let Ok(value) = HeaderValue::try_from(text) {
        fields.append(SERVER_TIMING, value);
    }
}

/// The words of a response.
pub(super) fn words<'a>(outcome: &Outcome<'a>) -> (&'static str, Option<&'a str>) {
    let verdict = if outcome.verdict == Verdict::Error { Verdict::Pass } else { outcome.verdict };
    (verdict.label(), outcome.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_names_verdict_reason_and_times() {
        let mut fields = HeaderMap::new();
        let total = Duration::from_micros(2500);
        write(&mut fields, ("pass", Some("a \"b\"\\")), Some(Duration::from_millis(2)), total);
        write(&mut fields, ("hit", None), None, total);
        let values: Vec<_> = fields.get_all(SERVER_TIMING).iter().collect();
        assert_eq!(
            values,
            ["cache;desc=\"pass:a b\", origin;dur=2.000, total;dur=2.500", "cache;desc=\"hit\", total;dur=2.500"]
        );
    }
}
