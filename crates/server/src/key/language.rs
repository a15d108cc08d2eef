//! `Accept-Language`, reduced to one of a site's languages. So an address has as many variants as the site has languages.

use http::header::ACCEPT_LANGUAGE;
use http::{HeaderMap, HeaderValue};

use crate::config::language::LanguageTag;

/// The quality of a range without one, in thousandths.
const WHOLE: u16 = 1000;

/// The languages of a site. The first is for clients that want none of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Languages(Vec<HeaderValue>);

impl Languages {
    pub(super) fn of<'a>(tags: impl IntoIterator<Item = &'a LanguageTag>) -> Self {
        // A tag has letters, digits and hyphens only.
        Self(tags.into_iter().filter_map(|tag| HeaderValue::from_str(&tag.0).ok()).collect())
    }

    /// Whether requests keep the languages that their clients sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces the languages that a client accepts by the one that it gets.
    pub(crate) fn reduce(&self, fields: &mut HeaderMap) {
        let Some(default) = self.0.first() else { return };
        let values = fields.get_all(ACCEPT_LANGUAGE).iter().filter_map(|value| value.to_str().ok());
        let chosen = self.choose(values.flat_map(|value| value.split(','))).unwrap_or(default).clone();
        fields.insert(ACCEPT_LANGUAGE, chosen);
    }

    /// The language for a client's ranges, by the lookup of RFC 4647, section 3.4.
    fn choose<'a>(&self, ranges: impl Iterator<Item = &'a str>) -> Option<&HeaderValue> {
        let mut best = (0, None);
        for range in ranges {
            let mut pieces = range.split(';').map(str::trim);
            let wanted = pieces.next().unwrap_or_default();
            let quality = pieces.next().map_or(Some(WHOLE), quality).unwrap_or_default();
            // The first of several with the same quality wins.
            if quality > best.0
                && let Some(found) = self.lookup(wanted)
            {
                best = (quality, Some(found));
            }
        }
        best.1
    }

    /// The language for a range such as `de-AT-1996`, from which subtags are taken until a language remains.
    fn lookup(&self, range: &str) -> Option<&HeaderValue> {
        let mut range = range;
        loop {
            if let Some(found) = self.0.iter().find(|tag| tag.as_bytes().eq_ignore_ascii_case(range.as_bytes())) {
                return Some(found);
            }
            range = range.rsplit_once('-')?.0;
            // A single letter begins an extension, and is nothing without it.
            if let Some((before, last)) = range.rsplit_once('-')
                && last.len() == 1
            {
                range = before;
            }
        }
    }
}

/// `q=0.8` in thousandths (RFC 9110, section 12.4.2).
fn quality(text: &str) -> Option<u16> {
    let (name, value) = text.split_once('=')?;
    let (whole, decimals) = value.trim().split_once('.').unwrap_or((value.trim(), ""));
    let is_number = decimals.len() <= 3 && decimals.bytes().all(|byte| byte.is_ascii_digit());
    if !name.trim().eq_ignore_ascii_case("q") || !is_number {
        return None;
    }
    let thousandths: u16 = format!("{decimals:0<3}").parse().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(WHOLE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(languages: &[&str], accepted: &[&str]) -> String {
        let tags: Vec<LanguageTag> = languages.iter().map(|tag| tag.parse().unwrap()).collect();
        let mut fields = HeaderMap::new();
        for value in accepted {
            fields.append(ACCEPT_LANGUAGE, value.parse().unwrap());
        }
        Languages::of(&tags).reduce(&mut fields);
        assert_eq!(fields.get_all(ACCEPT_LANGUAGE).iter().count(), 1);
        fields[ACCEPT_LANGUAGE].to_str().unwrap().to_owned()
    }

    #[test]
    fn a_client_gets_the_language_that_it_wants_most() {
        for (accepted, expected) in [
            ("de", "de"),
            ("DE-at, en;q=0.9", "de"),
            ("de-Latn-AT-1996", "de"),
            ("fr-x-y, en;q=0.1", "fr"),
            ("nl, fr;q=0.5, de;q=0.8", "de"),
            ("fr;q=0.8, de;q=0.8", "fr"),
            ("fr;q=0.80,de ; q=0.801", "de"),
            ("pt-BR", "pt-BR"),
            ("pt", "en"),
            ("de;q=0, fr;q=0.001", "fr"),
            ("de;q=1.5, fr;q=x, en;q=0.1", "en"),
            ("*", "en"),
            ("*, de;q=0.5", "de"),
            ("", "en"),
            (",;q=,de,-,", "de"),
        ] {
            assert_eq!(chosen(&["en", "de", "fr", "pt-BR"], &[accepted]), expected, "{accepted}");
        }
        assert_eq!(chosen(&["en", "de"], &[]), "en");
        assert_eq!(chosen(&["en", "de"], &["nl", "de;q=0.1"]), "de");
    }
}
