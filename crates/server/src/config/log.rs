//! The settings of the server's own log: `[server.log]`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::value::written_as_text;

/// `[server.log]`
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// The least level that is logged: `"off"`, `"error"`, `"warn"`, `"info"`, `"debug"` or `"trace"`; and those of
    /// [parts of the server](operations/monitoring.md#the-servers-own-log).
    ///
    /// Default: `"warn"`, or `"debug"` with `-v`
    ///
    /// Example: `"warn,origin=debug"`
    pub level: Option<LogLevels>,
    /// The form of the lines: `"text"` or `"json"`. It changes at a restart.
    ///
    /// Example: `"json"`
    pub format: LogForm,
}

/// The form of the lines of the server's own log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogForm {
    /// Time, level, part and message.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The levels, the least serious one last.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The parts of the server, and the modules of each.
const PARTS: [(&str, &[&str]); 13] = [
    ("access-log", &["eyewall_server::serve::log"]),
    ("admin", &["eyewall_server::serve::admin", "eyewall_server::serve::small_http"]),
    ("cache", &["eyewall_page_cache", "eyewall_server::serve::proxy", "eyewall_server::serve::purge"]),
    ("files", &["eyewall_server::serve::files", "eyewall_files"]),
    ("fleet", &["eyewall_server::serve::fleet", "eyewall_fleet"]),
    ("listen", &["eyewall_server::serve::listen"]),
    ("origin", &["eyewall_server::serve::origin"]),
    ("peers", &["eyewall_server::serve::peers"]),
    ("reload", &["eyewall_server::serve::reload", "eyewall_server::serve::upgrade"]),
    ("second-level", &["eyewall_server::serve::second_level", "eyewall_second_level"]),
    ("tls", &["eyewall_server::serve::tls", "eyewall_tls"]),
    ("traces", &["eyewall_server::serve::spans", "eyewall_server::serve::trace"]),
    ("volume", &["eyewall_region", "eyewall_server::serve::volume", "eyewall_server::serve::upkeep"]),
];

/// Which events are logged, by their part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLevels {
    /// Of all parts that are not named.
    level: &'static str,
    parts: Vec<(&'static str, &'static str)>,
}

impl Default for LogLevels {
    fn default() -> Self {
        Self { level: "warn", parts: Vec::new() }
    }
}

impl LogLevels {
    /// This level for all parts.
    ///
    /// # Errors
    /// It is none.
    pub fn of_all(level: &str) -> Result<Self, String> {
        level_of(level).map(|level| Self { level, parts: Vec::new() })
    }

    /// The level of all modules of Eyewall whose names [`LogLevels::modules`] doesn't have.
    pub fn level(&self) -> &'static str {
        self.level
    }

    /// The beginnings of the names of modules, and their levels.
    pub fn modules(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.parts.iter().flat_map(|(part, level)| {
            let modules = PARTS.iter().find(|(name, _)| name == part).map_or(&[][..], |(_, modules)| modules);
            modules.iter().map(|module| (*module, *level))
        })
    }
}

impl FromStr for LogLevels {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut levels = Self::default();
        let mut has_level = false;
        for word in text.split(',').map(str::trim) {
            match word.split_once('=') {
                None if has_level => return Err(format!("`{text}` has two levels for all parts; remove one")),
                None => (levels.level, has_level) = (level_of(word)?, true),
                Some((part, level)) => levels.parts.push((part_of(part.trim())?, level_of(level.trim())?)),
            }
        }
        Ok(levels)
    }
}

fn level_of(word: &str) -> Result<&'static str, String> {
    let known = LEVELS.into_iter().find(|level| *level == word);
    known.ok_or_else(|| format!("`{word}` is no level; give one of {}", LEVELS.join(", ")))
}

fn part_of(word: &str) -> Result<&'static str, String> {
    let known = PARTS.iter().map(|(name, _)| *name);
    known.clone().find(|name| *name == word).ok_or_else(|| {
        let names: Vec<_> = known.clone().collect();
        let near = known.min_by_key(|name| strsim::damerau_levenshtein(word, name));
        match near.filter(|name| strsim::damerau_levenshtein(word, name) <= 2) {
            Some(name) => format!("`{word}` is no part of the server; did you mean `{name}`?"),
            None => format!("`{word}` is no part of the server; give one of {}", names.join(", ")),
        }
    })
}

impl fmt::Display for LogLevels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.level)?;
        self.parts.iter().try_for_each(|(part, level)| write!(formatter, ",{part}={level}"))
    }
}

written_as_text! {
    LogLevels: "text such as \"warn,origin=debug\"",
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = include_str!("../../../../docs/operations/monitoring.md");

    #[test]
    fn levels_are_for_all_parts_or_for_some() {
        for (text, shown) in
            [("info", "info"), ("origin=debug", "warn,origin=debug"), ("tls=off, error", "error,tls=off")]
        {
            assert_eq!(text.parse::<LogLevels>().unwrap().to_string(), shown);
        }
        let levels: LogLevels = "info,tls=trace".parse().unwrap();
        let modules: Vec<_> = levels.modules().collect();
        assert_eq!(modules, [("eyewall_server::serve::tls", "trace"), ("eyewall_tls", "trace")]);
        for wrong in ["", "loud", "info,debug", "origin=loud", "origin", "orign=debug", "elephant=info"] {
            assert!(wrong.parse::<LogLevels>().is_err(), "{wrong}");
        }
        assert!("orign=debug".parse::<LogLevels>().unwrap_err().contains("did you mean `origin`?"));
    }

    #[test]
    fn each_part_is_documented() {
        for (part, _) in PARTS {
            assert!(DOCUMENT.contains(&format!("`{part}`")), "{part}");
        }
    }
}
