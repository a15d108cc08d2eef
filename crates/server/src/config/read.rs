//! Reads the text of a file into settings, and reports all mistakes of form.
//!
//! serde stops at the first error. So the reader takes the wrong key out of the tree and reads the rest again, until that
//! succeeds. In this way it checks each key, and one mistake doesn't hide the others.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

use super::messages::{self, At};
use super::problem::Fault;
use super::settings::Settings;

/// The reader stops after this many errors.
const FAULTS_MAX: usize = 100;
/// Keys whose value is a table, in whatever table they are.
const TABLES: [&str; 12] =
    ["server", "access_log", "log", "tracing", "limits", "admin", "acme", "cache", "origin", "health", "tls", "key"];

/// Reads the keys without mistakes. The settings are complete if there is no fault.
pub(super) fn settings(text: &str) -> (Settings, Vec<Fault>) {
    let (tree, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // After a broken line, the rest of the file can't be understood.
        return (Settings::default(), errors.iter().map(|error| syntax_fault(error, text)).collect());
    }
    let mut faults = Vec::new();
    let span = tree.span();
    let mut tree = tree.into_inner();
    refuse_lists(&mut tree, false, &mut faults);
    loop {
        match Settings::deserialize(Deserializer::from(Spanned::new(span.clone(), tree.clone()))) {
            Ok(settings) => return (settings, faults),
            Err(error) => {
                let fault = fault(&error, text, &mut tree);
                let is_taken_out = error.span().is_some_and(|span| remove_from_table(&mut tree, &span));
                faults.push(fault);
                if !is_taken_out || faults.len() == FAULTS_MAX {
                    return (Settings::default(), faults);
                }
            }
        }
    }
}

/// Refuses lists in the place of tables: serde would accept a list's elements as the table's keys, in their order. A site may have
/// several certificates.
fn refuse_lists(table: &mut DeTable<'_>, is_site: bool, faults: &mut Vec<Fault>) {
    let mut refused = Vec::new();
    for (key, value) in table.iter_mut() {
        let span = value.span();
        match value.get_mut() {
            DeValue::Table(below) => refuse_lists(below, false, faults),
            DeValue::Array(_) if TABLES.contains(&&**key.get_ref()) && !(is_site && *key.get_ref() == "tls") => {
                let hint = format!(
                    "there can be only one: write `{key} = {{ ... }}`, or single brackets",
                    key = key.get_ref()
                );
                faults.push(Fault::new(span, format!("`{}` is a table, not a list", key.get_ref()), hint));
                refused.push(key.clone());
            }
            DeValue::Array(elements) => {
                for element in elements.iter_mut().filter_map(|element| match element.get_mut() {
                    DeValue::Table(below) => Some(below),
                    _ => None,
                }) {
                    refuse_lists(element, key.get_ref() == "site", faults);
                }
            }
            _ => {}
        }
    }
    for key in refused {
        table.remove(&key);
    }
}

/// Removes the smallest key or element that contains `span`; false if there is none.
fn remove_from_table(table: &mut DeTable<'_>, span: &Range<usize>) -> bool {
    // An unknown name is removed with everything under it.
    let mut found = table.keys().find(|key| covers(&key.span(), span)).cloned();
    if found.is_none() {
        for (key, value) in table.iter_mut() {
            if remove_below(value.get_mut(), span) {
                return true;
            }
            if covers(&value.span(), span) {
                found = Some(key.clone());
            }
        }
    }
    found.is_some_and(|key| table.remove(&key).is_some())
}

fn remove_below(value: &mut DeValue<'_>, span: &Range<usize>) -> bool {
    match value {
        DeValue::Table(table) => remove_from_table(table, span),
        DeValue::Array(array) => {
            if array.iter_mut().any(|element| remove_below(element.get_mut(), span)) {
                return true;
            }
            let before = array.len();
            *array = array.iter().filter(|element| !covers(&element.span(), span)).cloned().collect();
            array.len() < before
        }
        _ => false,
    }
}

fn covers(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn syntax_fault(error: &Error, text: &str) -> Fault {
    // The error may be at the end of the file, which has no bytes.
    let at = error.span().unwrap_or(0..1);
    let (message, hint) = messages::of_syntax(error.message(), text.get(at.clone()).unwrap_or_default());
    Fault {
        span: at.start..at.end.max(at.start + 1),
        message,
        hint: Some(hint),
        is_absence: false,
        is_warning: false,
        is_logged: false,
    }
}

/// `tree` is the parsed `text`, in which the error is.
fn fault(error: &Error, text: &str, tree: &mut DeTable<'_>) -> Fault {
    let span = error.span().unwrap_or(0..1);
    let mut keys = Vec::new();
    let is_element = find_keys(tree, &span, &mut keys);
    let at = At { keys: &keys, text: text.get(span.clone()).unwrap_or_default(), is_element };
    let (message, hint) = messages::in_words(error.message(), &at);
    Fault { span, message, hint, is_absence: false, is_warning: false, is_logged: false }
}

/// Finds the keys that lead to `span`; true if `span` is an element of the last key's list.
fn find_keys(table: &mut DeTable<'_>, span: &Range<usize>, keys: &mut Vec<String>) -> bool {
    // A table may be spread over several parts of the file, so only the deepest key is sure to cover its values.
    let depth = keys.len();
    for (key, value) in table.iter_mut() {
        keys.push(key.get_ref().to_string());
        let is_here = covers(&value.span(), span);
        let found = match value.get_mut() {
            DeValue::Table(below) => is_below(below, span, keys),
            DeValue::Array(elements) => elements.iter_mut().find_map(|element| {
                let is_element = covers(&element.span(), span);
                match element.get_mut() {
                    DeValue::Table(below) => is_below(below, span, keys),
                    _ => None,
                }
                .or(is_element.then_some(true))
            }),
            _ => None,
        };
        if let Some(is_element) = found.or(is_here.then_some(false)) {
            return is_element;
        }
        keys.truncate(depth);
    }
    false
}

fn is_below(table: &mut DeTable<'_>, span: &Range<usize>, keys: &mut Vec<String>) -> Option<bool> {
    let depth = keys.len();
    let is_element = find_keys(table, span, keys);
    (keys.len() > depth).then_some(is_element)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, String)> {
        let (_, faults) = settings(text);
        faults.into_iter().map(|fault| (text[fault.span].to_owned(), fault.message)).collect()
    }

    #[test]
    fn every_wrong_key_is_reported_at_once() {
        let text = r#"
            [server]
            lisen = ["127.0.0.1:80"]
            listen = ["127.0.0.1:80", "nowhere"]
            limits = { head_timeout = 5, header_count = 7 }
            [cache]
            size = "1X"
            [[site]]
            origins = ["http://a", "ftp://b", "https://c/?d"]
            [site.key]
            sort_query = "yes"
            [[site.rule]]
            bypas = true
            status = [99, "4xx", 700]
        "#;
        let places: Vec<String> = found(text).into_iter().map(|(place, _)| place).collect();
        let mut sorted = places.clone();
        sorted.sort_unstable();
        let mut expected = [
            "lisen",
            "\"nowhere\"",
            "5",
            "7",
            "\"1X\"",
            "\"ftp://b\"",
            "\"https://c/?d\"",
            "\"yes\"",
            "bypas",
            "99",
            "700",
        ];
        expected.sort_unstable();
        assert_eq!(sorted, expected);
    }

    #[test]
    fn the_other_keys_are_read() {
        let (settings, faults) = settings("[server]\nworkers = 0\nlisten = []\n[cache]\nsize = \"1M\"\n");
        assert_eq!((faults.len(), settings.server.http_addresses().len()), (1, 0));
        assert_eq!(settings.cache.size.map(|size| size.0), Some(1 << 20));
    }

    #[test]
    fn a_mistyped_name_gets_the_nearest_known_one_as_a_hint() {
        let (_, faults) = settings("[[site]]\norigns = []\nelephant = 1\npreset = \"wordpres\"\n");
        let hints: Vec<&str> = faults.iter().filter_map(|fault| fault.hint.as_deref()).collect();
        assert!(
            hints.contains(&"did you mean `origins`?") && hints.contains(&"did you mean `wordpress`?"),
            "{hints:?}"
        );
        assert!(hints.iter().any(|hint| hint.starts_with("known are hosts, aliases")), "{hints:?}");
    }

    #[test]
    fn broken_toml_is_reported_with_its_place() {
        let found = found("[server]\nlisten = [\"a\n\n[cache]\nsize =\nsize = 1\n");
        assert!(
            found.len() >= 2 && found.iter().all(|(_, message)| message.starts_with("this is not TOML")),
            "{found:?}"
        );
    }

    #[test]
    fn a_table_of_the_wrong_kind_is_reported() {
        for text in ["site = 5", "server = []", "[site]\nhosts = []", "cache = \"x\"", "[[server]]"] {
            assert_eq!(found(text).len(), 1, "{text}");
        }
    }
}
