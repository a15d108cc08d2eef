//! Weighted preferences: `Accept-Encoding` and `Accept-Language` (RFC 9110, sections 12.4.2, 12.5.3 and 12.5.4).

use http::{HeaderMap, HeaderName};

use super::list;

/// The least weight, for a value that is neither excluded nor requested.
pub(crate) const QUALITY_LEAST: u16 = 1;

/// The default weight of a requested value.
pub const QUALITY_MOST: u16 = 1000;

/// One member of a list of preferences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preference {
    /// The preferred value in lower case: a coding, a range of languages, or `*`.
    pub name: String,
    /// The weight in thousandths; 0 excludes the value.
    pub quality: u16,
}

/// The preferences of a request, by descending weight and then by name. Empty if the field is empty or absent.
///
/// `None` if the field is malformed or names a value twice, so that its meaning is ambiguous.
pub fn preferences(fields: &HeaderMap, name: &HeaderName) -> Option<Vec<Preference>> {
    let mut preferences = list::members(fields, name).map(parse).collect::<Option<Vec<_>>>()?;
    preferences.sort_unstable_by(|one, other| other.quality.cmp(&one.quality).then_with(|| one.name.cmp(&other.name)));
    let mut names: Vec<&str> = preferences.iter().map(|preference| preference.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    (names.len() == preferences.len()).then_some(preferences)
}

/// The weight of a content coding in thousandths. `identity` means no coding, and has the least weight if it
/// isn't named.
pub fn of_coding(preferences: &[Preference], coding: &str) -> u16 {
    let coding = coding_name(coding);
    let unsaid = if coding == "identity" { QUALITY_LEAST } else { 0 };
    named(preferences, &coding).or_else(|| named(preferences, "*")).unwrap_or(unsaid)
}

/// The weight of a language in thousandths: that of the longest range that contains it (RFC 4647, section 3.3.1),
/// else that of `*`.
pub fn of_language(preferences: &[Preference], tag: &str) -> u16 {
    let tag = tag.to_ascii_lowercase();
    let longest = preferences
        .iter()
        .filter(|preference| is_in_range(&tag, &preference.name))
        .max_by_key(|preference| preference.name.len())
        .map(|preference| preference.quality);
    longest.or_else(|| named(preferences, "*")).unwrap_or(0)
}

/// Whether a basic language range other than `*` contains a language tag; both are in lower case.
pub fn is_in_range(tag: &str, range: &str) -> bool {
    tag.strip_prefix(range).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The name of a coding in lower case, with old aliases replaced (RFC 9110, section 8.4.1).
pub fn coding_name(coding: &str) -> String {
    match coding.to_ascii_lowercase().as_str() {
        "x-gzip" => "gzip".to_owned(),
        "x-compress" => "compress".to_owned(),
        name => name.to_owned(),
    }
}

/// The preference for exactly this name.
pub fn named(preferences: &[Preference], name: &str) -> Option<u16> {
    preferences.iter().find(|preference| preference.name == name).map(|preference| preference.quality)
}

fn parse(member: &[u8]) -> Option<Preference> {
    let (name, quality) = weighed(member)?;
    Some(Preference { name: coding_name(str::from_utf8(name).ok()?), quality })
}

/// The name of a member, as the client spells it, and its weight. `None` if the member is malformed.
pub(crate) fn weighed(member: &[u8]) -> Option<(&[u8], u16)> {
    let mut pieces = member.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let name = pieces.next().filter(|name| is_name(name))?;
    let quality = match pieces.next() {
        Some([b'q' | b'Q', b'=', weight @ ..]) => parse_weight(weight)?,
        Some(_) => return None,
        None => QUALITY_MOST,
    };
    pieces.next().is_none().then_some((name, quality))
}

/// A token. Languages consist of letters, digits and hyphens; codings may have other characters.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// `0`, `1`, or one of them with up to three digits behind the point; never above 1.
fn parse_weight(weight: &[u8]) -> Option<u16> {
    let (whole, digits) = match weight {
        [whole] | [whole, b'.'] => (*whole, &[][..]),
        [whole, b'.', digits @ ..] if digits.len() <= 3 => (*whole, digits),
        _ => return None,
    };
    if !matches!(whole, b'0' | b'1') || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let thousandths = digits
        .iter()
        .chain(b"000")
        .take(3)
        .fold(u16::from(whole - b'0'), |sum, digit| sum * 10 + u16::from(digit - b'0'));
    (thousandths <= QUALITY_MOST).then_some(thousandths)
}
