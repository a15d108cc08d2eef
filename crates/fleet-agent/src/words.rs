//! A purge as a line of the log: JSON with its subjects. Each node finds its own entries for them.

use eyewall::{Purge as Kind, PurgeOf};
use serde::{Deserialize, Serialize};

/// What to purge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// An address, with all of its variants and further key parts.
    Url(String),
    /// A tag of the site of this host, and the cache group of this name of the host; or a tag of all sites.
    Tag {
        /// The tag, as an origin sends it.
        tag: String,
        /// The host of the site.
        host: Option<String>,
    },
    /// Addresses that begin with this.
    Prefix(String),
    /// A host; without a port, the host at all ports.
    Host(String),
    /// Everything in the volume.
    Everything,
    /// A tag as entries have it.
    #[serde(rename = "entry_tag")]
    EntryTag(String),
    /// The beginning of the keys of entries.
    #[serde(rename = "entry_prefix")]
    EntryPrefix(#[serde(with = "hexadecimal")] Vec<u8>),
}

/// A purge of several subjects.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Purging {
    /// What to purge.
    pub subjects: Vec<Subject>,
    soft: bool,
}

impl Purging {
    /// A purge of this kind.
    pub fn new(subjects: Vec<Subject>, kind: Kind) -> Self {
        Self { subjects, soft: kind == Kind::Soft }
    }

    /// A soft purge of everything.
    pub fn everything_softly() -> Self {
        Self::new(vec![Subject::Everything], Kind::Soft)
    }

    /// Whether it is hard or soft.
    pub fn kind(&self) -> Kind {
        if self.soft { Kind::Soft } else { Kind::Hard }
    }

    /// The purge as a line.
    pub fn encode(&self) -> Vec<u8> {
        // Texts and lists can always be written.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The purge of a line.
    ///
    /// # Errors
    /// A later version wrote it, or nobody of the fleet.
    pub fn decode(line: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(line)
    }
}

impl From<PurgeOf> for Subject {
    fn from(what: PurgeOf) -> Self {
        match what {
            PurgeOf::Tag(tag) => Self::EntryTag(tag),
            PurgeOf::Prefix(prefix) => Self::EntryPrefix(prefix),
            PurgeOf::Everything => Self::Everything,
        }
    }
}

mod hexadecimal {
    use std::fmt::Write as _;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            // A text takes everything.
            let _ = write!(text, "{byte:02x}");
        }
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digit = |digit: u8| (digit as char).to_digit(16).map(|digit| digit as u8);
        let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        });
        pairs.collect::<Option<_>>().ok_or_else(|| D::Error::custom("a prefix has pairs of hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_reaches_other_nodes_as_it_is() {
        let text = |text: &str| text.to_owned();
        let subjects = vec![
            Subject::Url(text("http://a/\u{e4}")),
            Subject::Tag { tag: text("post-7"), host: None },
            Subject::Tag { tag: text("post-7"), host: Some(text("a:81")) },
            Subject::Prefix(text("http://a/shop/")),
            Subject::Host(text("a")),
            Subject::Everything,
            Subject::EntryTag(text("post-7")),
            Subject::EntryPrefix(b"/shop/\0\xff".to_vec()),
        ];
        for kind in [Kind::Hard, Kind::Soft] {
            let received = Purging::decode(&Purging::new(subjects.clone(), kind).encode()).unwrap();
            assert_eq!((&received.subjects, received.kind()), (&subjects, kind));
        }
        for line in [
            "",
            "{}",
            r#"{"subjects":[{"new":"a"}],"soft":true}"#,
            r#"{"subjects":[],"soft":true,"later":1}"#,
            r#"{"subjects":[{"entry_prefix":"abc"}],"soft":true}"#,
            r#"{"subjects":[{"entry_prefix":"xy"}],"soft":true}"#,
        ] {
            assert!(Purging::decode(line.as_bytes()).is_err(), "{line}");
        }
    }
}
