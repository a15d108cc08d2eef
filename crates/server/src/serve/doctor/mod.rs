//! Examines a machine and a configuration before a server runs on them, or when it runs badly, and says what to change.
//!
//! ```text
//! machine   the kernel, limits of this process, memory, the clock
//! volume    the file system and the place for the volume
//! origins   whether each origin answers, and whether its front page can be stored
//! ```
//! It reads files of the kernel, and asks each origin for one page. It changes nothing.

mod machine;
mod origins;
mod volume;

use std::sync::Arc;

use eyewall::Options;
use eyewall_tls::clock::SystemClock;
use serde::Serialize;

use super::shared::Shared;
use crate::config::Config;

/// A finding about one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The thing.
    pub about: String,
    /// How it is.
    pub state: State,
    /// The finding in words.
    pub words: String,
    /// What to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// How a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Good,
    /// It works, and could be better.
    Warning,
    /// The server can't work with it, or not for long.
    Fault,
}

impl Finding {
    fn good(about: &str, words: impl Into<String>) -> Self {
        Self { about: about.to_owned(), state: State::Good, words: words.into(), advice: None }
    }

    fn warning(about: &str, words: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: State::Warning, advice: Some(advice.into()), ..Self::good(about, words) }
    }

    fn fault(about: &str, words: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: State::Fault, ..Self::warning(about, words, advice) }
    }
}

/// Examines this machine, and the places and origins that a configuration names. It takes as long as the slowest origin, at most the
/// timeout of its site.
pub fn examine(config: Config) -> Vec<Finding> {
    let mut findings: Vec<Finding> = config
        .warnings
        .iter()
        .map(|warning| Finding::warning("configuration", warning.to_string(), "change the configuration file"))
        .collect();
    findings.extend(machine::examine(&config));
    findings.extend(volume::examine(&config.cache));
    // Whether folders, tokens and certificates of authorities can be used. The volume isn't touched.
    let shared = Options::new()
        .heap()
        .map_err(super::error::Error::from)
        .and_then(|cache| Shared::new(config, &cache, Arc::new(SystemClock)));
    match shared {
        Ok(shared) => findings.extend(origins::examine(&shared)),
        Err(error) => {
            findings.push(Finding::fault("configuration", error.to_string(), "the server doesn't start like this"));
        }
    }
    findings
}
