//! The settings of the access log: `[server.access_log]` and `[site.access_log]`.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Spanned;

use super::check_path::has_folder;
use super::log_format::LogFormat;
use super::problem::Fault;
use super::value::written_as_text;

/// `[server.access_log]`
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessLog {
    /// The file to log to. `"-"` is standard output. `"syslog:/dev/log"` and `"syslog:127.0.0.1:514"` are a log of the system: a Unix
    /// datagram socket, or an address for UDP.
    ///
    /// Example: `"/var/log/eyewall.log"`
    pub path: LogTarget,
    /// `"combined"` is the NCSA format; what the cache did and how long it took follow at the end. `"json"` is one object a
    /// line. Otherwise it is a text with [names of values](operations-server.md#a-format-of-your-own), as in nginx.
    ///
    /// Example: `"json"`
    pub format: LogFormat,
    /// Share of the requests that are logged. Those whose status is 500 or more always are.
    ///
    /// Example: `0.01`
    pub sample: Share,
}

/// `[site.access_log]`: what differs from the log of the server.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SiteAccessLog {
    /// Don't log the requests of this site.
    ///
    /// Example: `true`
    pub off: bool,
    /// Where to log them.
    ///
    /// Default: that of `[server.access_log]`
    ///
    /// Example: `"/var/log/example.log"`
    pub path: Option<LogTarget>,
    /// The form of their lines.
    ///
    /// Default: that of `[server.access_log]`
    ///
    /// Example: `"$remote_addr $request_uri $status $cache"`
    pub format: Option<LogFormat>,
    /// Share of them that is logged.
    ///
    /// Default: that of `[server.access_log]`
    ///
    /// Example: `0.1`
    pub sample: Option<Share>,
}

/// The destination of lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum LogTarget {
    /// Standard output.
    #[default]
    Stdout,
    /// This file.
    File(PathBuf),
    /// A log of the system.
    Syslog(SyslogPlace),
}

/// Where a log of the system takes datagrams.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SyslogPlace {
    /// At a Unix socket.
    Socket(PathBuf),
    /// Over UDP.
    Address(SocketAddr),
}

/// A part of a whole: 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(pub f64);

impl SiteAccessLog {
    /// The log of a site, if it has one. `server` is that of the server.
    pub(crate) fn of_site(site: Option<&Spanned<Self>>, server: Option<&AccessLog>) -> Option<AccessLog> {
        let Some(site) = site.map(Spanned::get_ref) else { return server.cloned() };
        let AccessLog { path, format, sample } = server.cloned().unwrap_or_default();
        (!site.off).then(|| AccessLog {
            path: site.path.clone().unwrap_or(path),
            format: site.format.clone().unwrap_or(format),
            sample: site.sample.unwrap_or(sample),
        })
    }
}

/// Checks the log of a site.
pub(super) fn check_site(log: &Spanned<SiteAccessLog>, faults: &mut Vec<Fault>) {
    let SiteAccessLog { off, path, format, sample } = log.get_ref();
    if *off && (path.is_some() || format.is_some() || sample.is_some()) {
        let hint = "remove them, or `off`";
        faults.push(Fault::new(log.span(), "other keys of [site.access_log] have no effect with `off`", hint));
    }
    if let Some(path) = path {
        check(log.span(), path, faults);
    }
}

/// Checks that a file can be made.
pub(super) fn check(span: std::ops::Range<usize>, target: &LogTarget, faults: &mut Vec<Fault>) {
    let Some(path) = target.file().filter(|path| !has_folder(path)) else { return };
    let message = format!("the folder of the access log {} doesn't exist", path.display());
    let hint = "create it first, or give `-` for standard output; systemd creates the folders of a unit when it starts the unit";
    faults.push(Fault::new(span, message, hint));
}

impl LogTarget {
    /// The path of the file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stdout | Self::Syslog(_) => None,
        }
    }
}

impl Default for Share {
    fn default() -> Self {
        Self(1.0)
    }
}

impl FromStr for LogTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(place) = text.strip_prefix("syslog:") else {
            return match text {
                "" => Err("an empty path is no place for the access log; give a file, or \"-\"".to_owned()),
                "-" => Ok(Self::Stdout),
                path => Ok(Self::File(PathBuf::from(path))),
            };
        };
        if place.starts_with('/') {
            return Ok(Self::Syslog(SyslogPlace::Socket(PathBuf::from(place))));
        }
        place.parse().map(|address| Self::Syslog(SyslogPlace::Address(address))).map_err(|_| {
            format!(
                "`{text}` is no place for the access log; give the path of a socket such as \"syslog:/dev/log\", or an address with a \
                 port such as \"syslog:127.0.0.1:514\""
            )
        })
    }
}

impl fmt::Display for LogTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => formatter.write_str("-"),
            Self::File(path) => path.display().fmt(formatter),
            Self::Syslog(SyslogPlace::Socket(path)) => write!(formatter, "syslog:{}", path.display()),
            Self::Syslog(SyslogPlace::Address(address)) => write!(formatter, "syslog:{address}"),
        }
    }
}

written_as_text! {
    LogTarget: "a path, \"-\" or \"syslog:/dev/log\"",
}

/// Reads a share.
struct ShareVisitor;

impl Visitor<'_> for ShareVisitor {
    type Value = Share;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number from 0 to 1, such as 0.01")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Share, E> {
        if (0.0..=1.0).contains(&number) {
            Ok(Share(number))
        } else {
            Err(E::custom(format!("{number} is no share; give a number from 0 to 1, such as 0.01")))
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Share, E> {
        self.visit_f64(number as f64)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Share, E> {
        self.visit_f64(number as f64)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShareVisitor)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_file_standard_output_or_a_log_of_the_system() {
        for text in ["-", "/var/log/a", "a.log", "syslog:/dev/log", "syslog:127.0.0.1:514", "syslog:[::1]:514"] {
            assert_eq!(text.parse::<LogTarget>().unwrap().to_string(), text);
        }
        assert_eq!("syslog:/dev/log".parse::<LogTarget>().unwrap().file(), None);
        for wrong in ["", "syslog:", "syslog:localhost:514", "syslog:127.0.0.1"] {
            assert!(wrong.parse::<LogTarget>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_site_has_the_log_of_the_server_its_own_or_none() {
        let of = |site: &str, server: Option<&AccessLog>| {
            let site = Spanned::new(0..0, toml::from_str::<SiteAccessLog>(site).unwrap());
            SiteAccessLog::of_site(Some(&site), server)
        };
        let server: AccessLog = toml::from_str("path = \"/a\"\nformat = \"json\"\nsample = 0.5\n").unwrap();
        let own = of("path = \"/b\"\n", Some(&server)).unwrap();
        assert_eq!((own.path.to_string(), own.format, own.sample), ("/b".to_owned(), LogFormat::Json, Share(0.5)));
        assert!(of("off = true", Some(&server)).is_none());
        assert_eq!(of("", None).unwrap().path, LogTarget::Stdout);
        assert!(SiteAccessLog::of_site(None, None).is_none());
        assert_eq!(SiteAccessLog::of_site(None, Some(&server)).unwrap().sample, Share(0.5));
    }
}
