//! Precompressed files beside the plain one, and which of them a client gets (RFC 9110, section 12.5.3).

use std::path::{Path, PathBuf};

use eyewall_http::field::quality;
use http::header::ACCEPT_ENCODING;
use http::{HeaderMap, HeaderValue};

/// A content coding (RFC 9110, section 8.4.1; RFC 7932; RFC 8878).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// `br`: `name.br`.
    Brotli,
    /// `zstd`: `name.zst`.
    Zstandard,
    /// `gzip`: `name.gz`.
    Gzip,
}

impl Coding {
    /// All codings, the most compact first.
    pub(crate) const ALL: [Self; 3] = [Self::Brotli, Self::Zstandard, Self::Gzip];

    /// Its name in `Accept-Encoding` and `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstandard => "zstd",
            Self::Gzip => "gzip",
        }
    }

    pub(crate) fn value(self) -> HeaderValue {
        HeaderValue::from_static(self.name())
    }

    /// The extension of its files.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstandard => "zst",
            Self::Gzip => "gz",
        }
    }

    /// The suffix of its entity tags.
    pub(crate) fn tag_suffix(self) -> &'static str {
        match self {
            Self::Brotli => "-br",
            Self::Zstandard => "-zst",
            Self::Gzip => "-gz",
        }
    }

    /// The name of the precompressed file of a plain one.
    pub(crate) fn beside(self, plain: &Path) -> PathBuf {
        let mut name = plain.as_os_str().to_owned();
        name.push(".");
        name.push(self.extension());
        name.into()
    }
}

/// Whether a file is compressed already, by its name.
pub(crate) fn is_precompressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| Coding::ALL.iter().any(|coding| extension == coding.extension()))
}

/// The index of the representation that the client prefers; the first has no coding. If it prefers several alike,
/// the first coded one wins.
///
/// A coding must be named: clients that decode nothing send `*`, too. If the client accepts none of the
/// representations, it gets the one without a coding.
pub(crate) fn choose(
    codings: impl DoubleEndedIterator<Item = Option<Coding>> + ExactSizeIterator,
    request: &HeaderMap,
) -> usize {
    if codings.len() < 2 {
        return 0;
    }
    let Some(preferences) = quality::preferences(request, &ACCEPT_ENCODING) else { return 0 };
    let wanted = |coding: Coding| quality::named(&preferences, coding.name()).unwrap_or(0);
    let plain = quality::of_coding(&preferences, "identity");
    codings
        .enumerate()
        .filter_map(|(place, coding)| Some((place, wanted(coding?))))
        .filter(|(_, quality)| *quality > 0 && *quality >= plain)
        // `max_by_key` returns the last maximum, so iterate backwards.
        .rev()
        .max_by_key(|(_, quality)| *quality)
        .map_or(0, |(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_gets_the_coding_that_it_prefers() {
        let all = [None, Some(Coding::Brotli), Some(Coding::Zstandard), Some(Coding::Gzip)];
        for (accepted, place) in [
            ("gzip, deflate, br, zstd", 1),
            ("gzip, deflate, zstd", 2),
            ("gzip", 3),
            ("x-gzip", 3),
            ("GZIP", 3),
            ("gzip;q=1.0, br;q=0.9", 3),
            ("gzip;q=0.5, zstd;q=0.5", 2),
            ("br;q=0, gzip;q=0.001", 3),
            ("gzip;q=0.5, identity;q=0.8", 0),
            ("gzip;q=0.5, identity;q=0.5", 3),
            ("br;q=0", 0),
            ("identity;q=0, deflate", 0),
            ("*", 0),
            ("gzip;q=0, *", 0),
            ("deflate", 0),
            ("", 0),
            ("br;q=two", 0),
            ("br;q=2", 0),
        ] {
            let request = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(accepted))]);
            assert_eq!(choose(all.into_iter(), &request), place, "{accepted}");
        }
        assert_eq!(choose(all.into_iter(), &HeaderMap::new()), 0, "a client without the field may decode nothing");
    }

    #[test]
    fn only_existing_codings_are_chosen() {
        let request = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("br, zstd;q=0.9, gzip;q=0.8"))]);
        assert_eq!(choose([None].into_iter(), &request), 0);
        assert_eq!(choose([None, Some(Coding::Zstandard), Some(Coding::Gzip)].into_iter(), &request), 1);
    }
}
