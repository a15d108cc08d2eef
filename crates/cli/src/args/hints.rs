//! Advice for wrong command lines: words of other tools and forgotten flags, which clap can't know.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{CommandFactory as _, Parser as _};

use super::Arguments;

/// Verbs of other tools, each with ours.
const VERBS: [(&str, &str); 25] = [
    ("add", "put"),
    ("clear", "purge"),
    ("config", "check"),
    ("del", "rm"),
    ("delete", "rm"),
    ("erase", "rm"),
    ("fetch", "get"),
    ("flush", "purge"),
    ("fsck", "verify"),
    ("info", "stat"),
    ("init", "create"),
    ("list", "ls"),
    ("load", "import"),
    ("new", "create"),
    ("read", "get"),
    ("remove", "rm"),
    ("restore", "import"),
    ("run", "serve"),
    ("server", "serve"),
    ("set", "put"),
    ("start", "serve"),
    ("stats", "stat"),
    ("status", "stat"),
    ("store", "put"),
    ("test", "check"),
];

/// Reads a command line.
///
/// # Errors
/// clap's, with our advice added where we have any.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Arguments, Error> {
    let words: Vec<OsString> = words.into_iter().collect();
    Arguments::try_parse_from(&words).map_err(|error| advised(error, &words))
}

fn advised(mut error: Error, words: &[OsString]) -> Error {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = context(ContextKind::InvalidSubcommand).unwrap_or_default();
            if let Some((_, verb)) = VERBS.iter().find(|(other, _)| *other == word) {
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![(*verb).to_owned()]));
            }
        }
        ErrorKind::UnknownArgument => {
            let word = context(ContextKind::InvalidArg).unwrap_or_default();
            if let Some(advice) = advice(verb(words), &word) {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.into()]));
            }
        }
        _ => {}
    }
    error
}

/// The first word that is a verb.
fn verb(words: &[OsString]) -> &str {
    let command = Arguments::command();
    let is_verb = |word: &&str| command.find_subcommand(word).is_some();
    words.iter().skip(1).filter_map(|word| word.to_str()).find(is_verb).unwrap_or_default()
}

/// What to write instead of a word that the verb doesn't take.
fn advice(verb: &str, word: &str) -> Option<String> {
    if word.starts_with('-') {
        return None;
    }
    match verb {
        "serve" if word.contains("://") => {
            Some(format!("to serve the responses of an origin: eyewall serve --origin {word}"))
        }
        "serve" if std::path::Path::new(word).is_dir() => {
            Some(format!("to serve the files of this folder: eyewall serve --root {word}"))
        }
        "serve" => Some(format!("to serve with this configuration: eyewall serve --config {word}")),
        "purge" => Some(format!(
            "to remove one entry: eyewall rm {word}; to purge all entries whose keys begin with it: eyewall purge --prefix {word}"
        )),
        _ => None,
    }
}
