//! Sizes as people write them: `100 B`, `10 KB`, `1 GB`, by powers of 1,024.

use serde::{Deserialize, Deserializer, de};

const UNITS: [(&str, u64); 4] = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)];

/// The bytes of a size as text; `None` if the text isn't a size.
pub fn parse(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.replace(',', "").parse::<u64>().ok()?.checked_mul(*factor)
}

/// A size in a definition's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        parse(&text)
            .map(Self)
            .ok_or_else(|| de::Error::custom(format!("{text:?} is no size; one is written like 64 MB")))
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse("100 B"), Some(100));
        assert_eq!(parse("9,689 B"), Some(9_689));
        assert_eq!(parse("10 KB"), Some(10 << 10));
        assert_eq!(parse("1 GB"), Some(1 << 30));
        for wrong in ["", "10", "10KB", "ten KB", "1 TB", "-1 B", "99999999999999 GB"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
