//! Content codings, the one thing that a stored response may vary by.
//!
//! Every client is put into one of three classes, and the origin is asked in the words of the class, so that any
//! answer suits any client of the class. A response that varies by `Accept-Encoding` is stored once for each class.

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY};
use http::{HeaderMap, HeaderValue};

/// What a client can decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    BrotliAndGzip,
    Gzip,
    Identity,
}

impl Coding {
    /// The class of a client, by its `Accept-Encoding`.
    pub(crate) fn of(request: &HeaderMap) -> Self {
        match (accepts(request, "gzip"), accepts(request, "br")) {
            (true, true) => Self::BrotliAndGzip,
            (true, false) => Self::Gzip,
            (false, _) => Self::Identity,
        }
    }

    /// What the origin is asked for.
    pub(crate) fn accept_encoding(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::BrotliAndGzip => "br, gzip",
            Self::Gzip => "gzip",
            Self::Identity => "identity",
        })
    }

    /// The end of the key of a response that varies. A request target has no blank, so that no other key is equal.
    pub(crate) fn key_suffix(self) -> &'static [u8] {
        match self {
            Self::BrotliAndGzip => b" br+gzip",
            Self::Gzip => b" gzip",
            Self::Identity => b" identity",
        }
    }
}

fn accepts(request: &HeaderMap, coding: &str) -> bool {
    items(request, &ACCEPT_ENCODING).any(|item| {
        let (name, weight) = item.split_once(';').unwrap_or((item, ""));
        let is_refused = weight.trim().strip_prefix("q=").is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0));
        name.trim().eq_ignore_ascii_case(coding) && !is_refused
    })
}

/// What a response varies by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Varies {
    No,
    ByCoding,
    /// By something that this cache can't tell apart.
    Otherwise,
}

impl Varies {
    pub(crate) fn of(response: &HeaderMap) -> Self {
        let by_coding = |item: &str| item.eq_ignore_ascii_case(ACCEPT_ENCODING.as_str());
        if response.get_all(VARY).iter().any(|value| value.to_str().is_err())
            || items(response, &VARY).any(|item| !by_coding(item))
        {
            Self::Otherwise
        } else if response.contains_key(VARY) || response.contains_key(CONTENT_ENCODING) {
            // A coded response that forgets to say so varies all the same.
            Self::ByCoding
        } else {
            Self::No
        }
    }
}

fn items<'a>(fields: &'a HeaderMap, name: &'a http::HeaderName) -> impl Iterator<Item = &'a str> {
    fields
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: http::HeaderName, text: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(text))])
    }

    #[test]
    fn clients_fall_into_three_classes() {
        let class = |text| Coding::of(&with(ACCEPT_ENCODING, text));
        assert_eq!(class("gzip, deflate, br, zstd"), Coding::BrotliAndGzip);
        assert_eq!(class("GZIP"), Coding::Gzip);
        assert_eq!(class("gzip, br;q=0"), Coding::Gzip);
        assert_eq!(class("gzip;q=0, br"), Coding::Identity);
        assert_eq!(class("*"), Coding::Identity);
        assert_eq!(Coding::of(&HeaderMap::new()), Coding::Identity);
    }

    #[test]
    fn only_a_plain_accept_encoding_can_be_told_apart() {
        assert_eq!(Varies::of(&HeaderMap::new()), Varies::No);
        assert_eq!(Varies::of(&with(VARY, "accept-encoding")), Varies::ByCoding);
        assert_eq!(Varies::of(&with(CONTENT_ENCODING, "gzip")), Varies::ByCoding);
        assert_eq!(Varies::of(&with(VARY, "Accept-Encoding, Cookie")), Varies::Otherwise);
        assert_eq!(Varies::of(&with(VARY, "*")), Varies::Otherwise);
    }
}
