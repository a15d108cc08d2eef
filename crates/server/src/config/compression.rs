//! Settings for compression: the key `compress` of sites and rules, and `[site.compression]`.

use std::fmt;

use eyewall_http::coding::{Coding, Codings};
use eyewall_page_cache::compression::Compression;
use eyewall_page_cache::compression::media_type::TypePattern;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::value::{SizeWithin, written_as_text};

/// `compress`: yes, no, or the codings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compress(pub Codings);

/// `[site.compression]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SiteCompression {
    /// Media types of responses that are compressed. Parameters don't count. `*` stands for any text.
    ///
    /// Default: texts, scripts, JSON, XML, WebAssembly, and fonts and images that aren't compressed themselves
    ///
    /// Example: `["text/*", "*+json"]`
    pub types: Vec<MediaType>,
    /// The least length of a response that is compressed.
    ///
    /// Example: `"1K"`
    pub bytes_min: SizeWithin<1, { 1 << 20 }>,
    /// The greatest length of a response that is compressed. Longer ones are stored in fragments.
    ///
    /// Example: `"256K"`
    pub bytes_max: SizeWithin<1, { 1 << 20 }>,
}

/// A pattern for media types with at most one `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaType(pub TypePattern);

impl Default for SiteCompression {
    fn default() -> Self {
        let Compression { types, bytes_min, bytes_max, .. } = Compression::default();
        Self {
            types: types.into_iter().map(MediaType).collect(),
            bytes_min: SizeWithin(bytes_min),
            bytes_max: SizeWithin(bytes_max),
        }
    }
}

impl SiteCompression {
    /// The settings for the cache, with these codings.
    pub fn with(&self, codings: Codings) -> Compression {
        let types = self.types.iter().map(|pattern| pattern.0.clone()).collect();
        Compression { codings, types, bytes_min: self.bytes_min.0, bytes_max: self.bytes_max.0 }
    }
}

impl std::str::FromStr for MediaType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

written_as_text! {
    MediaType: "a media type such as \"text/html\"",
}

impl fmt::Display for Compress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(Coding::name).collect();
        formatter.write_str(&names.join(", "))
    }
}

impl<'de> Deserialize<'de> for Compress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YesOrCodings)
    }
}

struct YesOrCodings;

impl<'de> Visitor<'de> for YesOrCodings {
    type Value = Compress;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("true, false or a list of codings such as [\"br\", \"gzip\"]")
    }

    fn visit_bool<E: Error>(self, yes: bool) -> Result<Compress, E> {
        Ok(Compress(if yes { Codings::ALL } else { Codings::NONE }))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<Compress, A::Error> {
        let mut codings = Codings::NONE;
        while let Some(name) = names.next_element::<String>()? {
            let coding = Coding::ALL.into_iter().find(|coding| coding.name() == name);
            let unknown = || A::Error::custom(format!("`{name}` is not a coding; give \"br\", \"zstd\" or \"gzip\""));
            codings = codings.or(Codings::from_iter([coding.ok_or_else(unknown)?]));
        }
        if codings.is_empty() {
            return Err(A::Error::custom("`compress` is empty; give false, or codings such as \"br\""));
        }
        Ok(Compress(codings))
    }
}

impl Serialize for Compress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Codings::ALL => serializer.serialize_bool(true),
            Codings::NONE => serializer.serialize_bool(false),
            codings => serializer.collect_seq(codings.iter().map(Coding::name)),
        }
    }
}
