//! Precompressed files beside the plain one, and which of them a client gets (RFC 9110, section 12.5.3).

use std::path::{Path, PathBuf};

pub use eyewall_http::coding::Coding;
use eyewall_http::coding::{Codings, wanted};
use http::HeaderMap;

/// The extension of the files of a coding.
fn extension(coding: Coding) -> &'static str {
    match coding {
        Coding::Brotli => "br",
        Coding::Zstandard => "zst",
        Coding::Gzip => "gz",
    }
}

/// The suffix of the entity tags of a coding.
pub(crate) fn tag_suffix(coding: Coding) -> &'static str {
    match coding {
        Coding::Brotli => "-br",
        Coding::Zstandard => "-zst",
        Coding::Gzip => "-gz",
    }
}

/// The name of the precompressed file of a plain one.
pub(crate) fn beside(coding: Coding, plain: &Path) -> PathBuf {
    let mut name = plain.as_os_str().to_owned();
    name.push(".");
    name.push(extension(coding));
    name.into()
}

/// Whether a file is compressed already, by its name.
pub(crate) fn is_precompressed(path: &Path) -> bool {
    path.extension().is_some_and(|found| Coding::ALL.iter().any(|coding| found == extension(*coding)))
}

/// The index of the representation that the client prefers; the first has no coding. If the client accepts none of the
/// representations, it gets that one.
pub(crate) fn choose(codings: impl Iterator<Item = Option<Coding>> + Clone, request: &HeaderMap) -> usize {
    let offered: Codings = codings.clone().flatten().collect();
    let chosen = wanted(offered, request).next();
    chosen.and_then(|chosen| codings.into_iter().position(|coding| coding == Some(chosen))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::ACCEPT_ENCODING;

    use super::*;

    #[test]
    fn only_existing_representations_are_chosen() {
        let request = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("br, zstd;q=0.9, gzip;q=0.8"))]);
        assert_eq!(choose([None].into_iter(), &request), 0);
        assert_eq!(choose([None, Some(Coding::Zstandard), Some(Coding::Gzip)].into_iter(), &request), 1);
        assert_eq!(choose([None, Some(Coding::Gzip)].into_iter(), &HeaderMap::new()), 0);
    }
}
