//! `docs/configuration.md` has every key, no other, and the current presets.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;

use super::access_log::{AccessLog, SiteAccessLog};
use super::compression::SiteCompression;
use super::fleet::Fleet;
use super::log::Log;
use super::origin::{Health, OriginSettings, Tls};
use super::presets::{ANALYTICS, Preset, TRACKERS};
use super::rule::{RULE_KEYS, Rule};
use super::second_level::SecondLevel;
use super::settings::{Admin, Limits, Server, Settings, Volume};
use super::site::{Key, Site, SiteCache};
use super::site_limits::SiteLimits;
use super::tls::{Acme, CertificateFiles, ServerTls};
use super::trace::Tracing;

const DOCUMENT: &str = include_str!("../../../../docs/configuration.md");

/// The names of a struct's fields, as an error: serde passes them to the deserializer of a struct.
struct Names;

#[derive(Debug)]
struct Asked(Vec<&'static str>);

impl fmt::Display for Asked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.0)
    }
}

impl std::error::Error for Asked {}

impl Error for Asked {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(Vec::new())
    }
}

impl<'de> Deserializer<'de> for Names {
    type Error = Asked;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Asked> {
        Err(Asked(Vec::new()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Asked> {
        Err(Asked(fields.to_vec()))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

fn keys_of<'de, T: Deserialize<'de>>() -> Vec<&'static str> {
    T::deserialize(Names).err().map(|asked| asked.0).unwrap_or_default()
}

/// The keys of each table, by its heading; keys that are tables have a heading of their own.
fn keys() -> BTreeSet<(String, String)> {
    let tables = [
        ("[server]", keys_of::<Server>()),
        ("[server.access_log]", keys_of::<AccessLog>()),
        ("[server.log]", keys_of::<Log>()),
        ("[server.tracing]", keys_of::<Tracing>()),
        ("[server.limits]", keys_of::<Limits>()),
        ("[server.admin]", keys_of::<Admin>()),
        ("[server.tls]", keys_of::<ServerTls>()),
        ("[server.acme]", keys_of::<Acme>()),
        ("[cache]", keys_of::<Volume>()),
        ("[fleet]", keys_of::<Fleet>()),
        ("[fleet.second_level]", keys_of::<SecondLevel>()),
        ("[[site]]", keys_of::<Site>()),
        ("[site.tls]", keys_of::<CertificateFiles>()),
        ("[site.origin]", keys_of::<OriginSettings>()),
        ("[site.origin.health]", keys_of::<Health>()),
        ("[site.origin.tls]", keys_of::<Tls>()),
        ("[site.key]", keys_of::<Key>()),
        ("[site.compression]", keys_of::<SiteCompression>()),
        ("[site.cache]", keys_of::<SiteCache>()),
        ("[site.limits]", keys_of::<SiteLimits>()),
        ("[site.access_log]", keys_of::<SiteAccessLog>()),
        ("[[site.rule]]", keys_of::<Rule>()),
    ];
    let below: BTreeSet<&str> = tables.iter().map(|(table, _)| *table).collect();
    let mut keys = BTreeSet::new();
    for (table, names) in &tables {
        assert!(!names.is_empty(), "{table}");
        for name in names {
            let path = format!("{}.{name}", table.trim_matches(['[', ']']));
            if !below.contains(format!("[{path}]").as_str()) && !below.contains(format!("[[{path}]]").as_str()) {
                keys.insert(((*table).to_owned(), (*name).to_owned()));
            }
        }
    }
    keys
}

/// The same of the document: a heading "## `[table]`", and rows that begin with a key.
fn documented() -> BTreeSet<(String, String)> {
    let mut table = String::new();
    let mut keys = BTreeSet::new();
    for line in DOCUMENT.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            table = heading.trim_matches('`').to_owned();
        } else if let Some((key, _)) = line.strip_prefix("| `").and_then(|row| row.split_once('`')) {
            keys.insert((table.clone(), key.to_owned()));
        }
    }
    keys
}

#[test]
fn each_key_is_documented_and_no_other() {
    let (keys, documented) = (keys(), documented());
    let missing: Vec<_> = keys.difference(&documented).collect();
    let unknown: Vec<_> = documented.difference(&keys).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "not documented: {missing:?}; no keys: {unknown:?}");
    assert_eq!(keys_of::<Settings>(), ["server", "cache", "fleet", "site"]);
}

#[test]
fn each_example_of_a_key_can_be_read() {
    let mut table = "";
    let mut count = 0;
    for line in DOCUMENT.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            table = heading.trim_matches('`');
        } else if let Some((key, row)) = line.strip_prefix("| `").and_then(|row| row.split_once('`')) {
            let example = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default().trim_matches('`');
            let site = if table.contains("site.") { "[[site]]\n" } else { "" };
            let text = format!("{site}{table}\n{key} = {example}\n");
            assert!(toml::from_str::<Settings>(&text).is_ok(), "{text}");
            count += 1;
        }
    }
    assert_eq!(count, keys().len());
}

#[test]
fn rules_are_shown_with_all_of_their_keys() {
    assert_eq!(keys_of::<Rule>(), RULE_KEYS);
}

#[test]
fn presets_and_trackers_are_documented_as_they_are() {
    for preset in Preset::ALL {
        assert!(DOCUMENT.contains(&format!("```toml\n{}```", preset.text())), "{}", preset.name());
    }
    for name in TRACKERS.iter().chain(&ANALYTICS) {
        assert!(DOCUMENT.contains(&format!("`{name}`")), "{name}");
    }
}

/// For any value of any key, the message speaks of texts, numbers, lists and tables, never of our types or serde's.
#[test]
fn messages_about_wrong_types_have_no_words_of_the_program() {
    let values = [
        "true",
        "5",
        "1.5",
        "\"x\"",
        "[]",
        "[5]",
        "[\"x\"]",
        "[[]]",
        "[{}]",
        "{}",
        "{ a = 1 }",
        "{ 404 = 5 }",
        "1979-05-27",
        "07:32:00",
    ];
    let foreign = [
        "struct",
        "enum",
        "sequence",
        "invalid",
        "variant",
        "i64",
        "u64",
        "integer",
        "boolean",
        "map",
        "Settings",
        "string",
        "unexpected",
        "datetime",
        "char",
    ];
    let mut all: Vec<(String, String)> =
        ["server", "cache", "fleet", "site"].map(|name| (String::new(), name.to_owned())).into_iter().collect();
    all.extend(keys().into_iter().map(|(table, name)| (format!("{table}\n"), name)));
    for name in ["access_log", "log", "tracing", "limits", "admin", "tls", "acme"] {
        all.push(("[server]\n".to_owned(), name.to_owned()));
    }
    for name in ["origin", "key", "cache", "limits", "access_log", "rule", "tls"] {
        all.push(("[[site]]\n".to_owned(), name.to_owned()));
    }
    for name in ["health", "tls"] {
        all.push(("[site.origin]\n".to_owned(), name.to_owned()));
    }
    let mut wrong = Vec::new();
    for (table, name) in all {
        for value in values {
            let site = if table.starts_with("[site.") || table.starts_with("[[site.") { "[[site]]\n" } else { "" };
            let text = format!("{site}{table}{name} = {value}\n");
            for problem in super::parse(&text).err().unwrap_or_default() {
                let told = format!("{} {}", problem.message, problem.hint.unwrap_or_default());
                let words: Vec<&str> = told.split(|sign: char| !sign.is_alphanumeric() && sign != '_').collect();
                if foreign.iter().any(|word| words.contains(word)) {
                    wrong.push(format!("{text}{told}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
