//! `tidy.toml`: the settings of the checks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

/// The whole of `tidy.toml`. A place is the path of a file, or of a folder with `/` at its end.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Places with other people's text, which isn't checked.
    pub(crate) not_ours: Vec<String>,
    pub(crate) length: Length,
    pub(crate) glossary: Glossary,
    pub(crate) english: English,
    /// The folder of the decision records, with `/` at its end.
    pub(crate) decisions: String,
    /// The folder of the manual, with `/` at its end.
    pub(crate) manual: String,
    /// For each of our crates, those of ours that it may depend on.
    pub(crate) direction: BTreeMap<String, BTreeSet<String>>,
    /// Words of Rust code that are allowed only in some places.
    pub(crate) confined: Vec<Confined>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Length {
    pub(crate) file_lines_max: usize,
    pub(crate) function_lines_max: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Glossary {
    pub(crate) file: String,
    /// Places that describe other systems in their own words.
    pub(crate) exempt: Vec<String>,
    /// Names from the language or a library, which don't count as our words.
    pub(crate) foreign: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct English {
    /// How many words the sentences of a page may have on average.
    pub(crate) sentence_words_max: usize,
    /// Pages that are not checked.
    pub(crate) exempt: Vec<String>,
    /// Places whose comments are not checked.
    pub(crate) comments_exempt: Vec<String>,
    pub(crate) phrases: Vec<NeverSaid>,
}

/// A phrase that nobody writes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NeverSaid {
    /// Words in a row, as `english.rs` reads them.
    pub(crate) never: String,
    /// What to do about them.
    pub(crate) instead: String,
    /// A sentence that has them.
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests hold each phrase against it"))]
    pub(crate) example: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Confined {
    pub(crate) words: BTreeSet<String>,
    /// The places where the words are allowed.
    pub(crate) places: Vec<String>,
    /// What to do about a word in another place.
    pub(crate) instead: String,
}

impl Config {
    pub(crate) fn read(path: &Path) -> Result<Config, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Whether `path` is one of `places`, or inside one.
    pub(crate) fn covers(places: &[String], path: &str) -> bool {
        places.iter().any(|place| path == place || (place.ends_with('/') && path.starts_with(place.as_str())))
    }
}
