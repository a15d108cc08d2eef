//! Translates errors of serde and the TOML parser into the words of the file: tables, lists and texts, the key, and what to write.

use super::names::listen_address;

/// Names at most this far apart count as the same name, mistyped.
const DISTANCE_MAX: usize = 3;
/// Words that people write for `true` and `false`.
const YES_OR_NO: [(&str, &str); 8] = [
    ("yes", "true"),
    ("on", "true"),
    ("true", "true"),
    ("1", "true"),
    ("no", "false"),
    ("off", "false"),
    ("false", "false"),
    ("0", "false"),
];
/// Tables that people often write as one text, with the key to which that text belongs.
const TEXT_IN_TABLE: [(&str, &str); 6] = [
    ("access_log", "path"),
    ("log", "level"),
    ("admin", "socket"),
    ("cache", "path"),
    ("health", "path"),
    ("tls", "ca_file"),
];
/// Keys that people often write outside their table.
const HOMES: [(&str, &str); 12] = [
    ("rule", "[[site.rule]]"),
    ("hosts", "[[site]]"),
    ("origins", "[[site]]"),
    ("root", "[[site]]"),
    ("preset", "[[site]]"),
    ("key", "[site.key]"),
    ("origin", "[site.origin]"),
    ("listen", "[server]"),
    ("access_log", "[server]"),
    ("admin", "[server.admin]"),
    ("path", "[cache]"),
    ("size", "[cache]"),
];

/// The place of an error: the keys that lead to it, and the text of the file there.
pub(super) struct At<'a> {
    /// From the root of the file.
    pub(super) keys: &'a [String],
    /// The value, or the unknown name.
    pub(super) text: &'a str,
    /// Whether it is an element of the list that the last key names.
    pub(super) is_element: bool,
}

impl At<'_> {
    fn key(&self) -> &str {
        self.keys.last().map_or("the file", String::as_str)
    }

    /// The name of the table or list of tables in brackets.
    fn path(&self) -> String {
        self.keys.join(".")
    }
}

/// The message and the hint. Messages of our own types have their hint after a semicolon.
pub(super) fn in_words(message: &str, at: &At<'_>) -> (String, Option<String>) {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match names.split_first() {
        Some((wrong, known)) if message.starts_with("unknown field") => {
            (format!("unknown key `{wrong}`"), Some(home_or_nearest(wrong, known)))
        }
        Some((wrong, known)) if message.starts_with("unknown variant") => {
            (format!("unknown value `{wrong}`"), Some(nearest(wrong, known)))
        }
        _ => of_type(message, at).unwrap_or_else(|| split(message)),
    }
}

/// The message and the hint for a file that isn't TOML.
pub(super) fn of_syntax(message: &str, text: &str) -> (String, String) {
    let hint = match as_boolean(text) {
        Some(value) => format!("write `{value}`, without quotes"),
        None => "a line is `key = value`, or a table's name in brackets; texts need quotes".to_owned(),
    };
    (format!("this is not TOML: {message}"), hint)
}

fn split(message: &str) -> (String, Option<String>) {
    match message.rsplit_once("; ") {
        Some((message, hint)) => (message.to_owned(), Some(hint.to_owned())),
        None => (message.to_owned(), None),
    }
}

/// The message and the hint for a value of the wrong type.
fn of_type(message: &str, at: &At<'_>) -> Option<(String, Option<String>)> {
    if message.starts_with("invalid socket address") {
        return listen_address(unquoted(at.text)).err().map(|words| split(&words));
    }
    // The value must be one of a few words.
    if message.starts_with("wanted ") {
        return Some((format!("`{}` is text", at.key()), Some("write one of its names, in quotes".to_owned())));
    }
    let (found, wanted) = message.strip_prefix("invalid type: ")?.rsplit_once(", expected ")?;
    let (found, wanted) = (Type::found(found), Wanted::of(wanted));
    let key = at.key();
    let subject = if at.is_element { format!("each element of `{key}`") } else { format!("`{key}`") };
    let message = format!("{subject} is {}, not {}", wanted.in_words(), found.in_words());
    Some((message, hint(&found, &wanted, at)))
}

fn hint(found: &Type, wanted: &Wanted<'_>, at: &At<'_>) -> Option<String> {
    let (key, value) = (at.key(), at.text.lines().next().unwrap_or_default());
    match (wanted, found) {
        (Wanted::List, Type::Table) if matches!(key, "site" | "rule") => {
            Some(format!("there can be several; write [[{}]]", at.path()))
        }
        (Wanted::List, Type::Table | Type::List) => Some(format!("write {key} = [...]")),
        (Wanted::List, _) => Some(format!("put it into brackets: {key} = [{value}]")),
        (Wanted::Boolean, _) => Some(match as_boolean(unquoted(value)) {
            Some(value) => format!("write `{value}`, without quotes"),
            None => "write `true` or `false`, without quotes".to_owned(),
        }),
        (Wanted::Table, Type::Text) if key == "origin" => Some(format!(
            "name the servers by origins = [{value}]; [site.origin] has the settings for requests to them"
        )),
        // That table of the server has no key that such a text could be.
        (Wanted::Table, Type::Text) if key == "tls" && at.keys.first().is_some_and(|first| first == "server") => {
            Some(format!("write its keys under [{}]; certificates belong to a [[site]]", at.path()))
        }
        (Wanted::Table, Type::Text) => Some(match TEXT_IN_TABLE.iter().find(|(table, _)| *table == key) {
            Some((_, name)) => format!("write {key} = {{ {name} = {value} }}"),
            None => format!("write its keys in braces, {key} = {{ ... }}, or under [{}]", at.path()),
        }),
        (Wanted::Table, _) => Some(format!("write its keys in braces, {key} = {{ ... }}, or under [{}]", at.path())),
        (Wanted::Number, Type::Text) => Some(format!("write it without quotes: {key} = {}", unquoted(value))),
        (Wanted::Text, Type::Number | Type::Boolean | Type::Date) => {
            Some(format!("write it in quotes: {key} = \"{value}\""))
        }
        _ => None,
    }
}

/// The type of a value in the file.
enum Type {
    Text,
    Number,
    Boolean,
    Date,
    List,
    Table,
    Other(String),
}

impl Type {
    /// serde's words, such as "integer `5`".
    fn found(words: &str) -> Self {
        match words.split(' ').next().unwrap_or_default() {
            "string" => Self::Text,
            "integer" | "floating" => Self::Number,
            "boolean" => Self::Boolean,
            "datetime" => Self::Date,
            "sequence" => Self::List,
            "map" => Self::Table,
            _ => Self::Other(words.to_owned()),
        }
    }

    fn in_words(&self) -> &str {
        match self {
            Self::Text => "text",
            Self::Number => "a number",
            Self::Boolean => "`true` or `false`",
            Self::Date => "a date",
            Self::List => "a list",
            Self::Table => "a table",
            Self::Other(words) => words,
        }
    }
}

/// The type that a key takes.
enum Wanted<'a> {
    Text,
    Number,
    Boolean,
    List,
    Table,
    /// A type of our own, with its description.
    Own(&'a str),
}

impl<'a> Wanted<'a> {
    fn of(words: &'a str) -> Self {
        match words {
            "a sequence" => Self::List,
            "a boolean" => Self::Boolean,
            "a map" => Self::Table,
            "i64" | "u64" => Self::Number,
            "a string" | "path string" => Self::Text,
            _ if words.starts_with("struct ") => Self::Table,
            _ => Self::Own(words),
        }
    }

    fn in_words(&self) -> &'a str {
        match self {
            Self::Text => "text",
            Self::Number => "a whole number",
            Self::Boolean => "`true` or `false`",
            Self::List => "a list",
            Self::Table => "a table",
            Self::Own(words) => words,
        }
    }
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '\''])
}

fn as_boolean(text: &str) -> Option<&'static str> {
    YES_OR_NO.iter().find(|(word, _)| text.trim().eq_ignore_ascii_case(word)).map(|(_, value)| *value)
}

/// At the root of the file, a key may belong to another table.
fn home_or_nearest(wrong: &str, known: &[&str]) -> String {
    let home = HOMES.iter().find(|(name, _)| *name == wrong).filter(|_| known.contains(&"site"));
    match home {
        Some((_, table @ "[[site.rule]]")) => format!("a rule belongs to a site; write {table}"),
        Some((_, table)) => format!("write it under {table}"),
        None => nearest(wrong, known),
    }
}

fn nearest(wrong: &str, known: &[&str]) -> String {
    let distance = |name: &str| strsim::damerau_levenshtein(wrong, name);
    match known.iter().min_by_key(|name| distance(name)) {
        Some(name) if distance(name) <= DISTANCE_MAX.min(wrong.len() / 2) => format!("did you mean `{name}`?"),
        _ => format!("known are {}", known.join(", ")),
    }
}
