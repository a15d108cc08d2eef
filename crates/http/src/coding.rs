//! Content codings of stored representations, and which of them a client gets (RFC 9110, sections 8.4.1 and 12.5.3; RFC 7932; RFC
//! 8878).

use http::header::ACCEPT_ENCODING;
use http::{HeaderMap, HeaderValue};

use crate::field::list;
use crate::field::quality::{self, QUALITY_LEAST};

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// `br`.
    Brotli,
    /// `zstd`.
    Zstandard,
    /// `gzip`.
    Gzip,
}

impl Coding {
    /// All codings, the most compact first.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstandard, Self::Gzip];

    /// Its name in `Accept-Encoding` and `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstandard => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The value of `Content-Encoding`.
    pub fn value(self) -> HeaderValue {
        HeaderValue::from_static(self.name())
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of codings, in one byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Codings(u8);

impl Codings {
    /// No coding.
    pub const NONE: Self = Self(0);
    /// All codings.
    pub const ALL: Self = Self(0b111);

    /// The set that has this byte. Bits that mean no coding are ignored.
    pub fn from_byte(byte: u8) -> Self {
        Self(byte & Self::ALL.0)
    }

    /// The set as a byte.
    pub fn to_byte(self) -> u8 {
        self.0
    }

    /// Whether the set has no coding.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a coding is in the set.
    pub fn contains(self, coding: Coding) -> bool {
        self.0 & coding.bit() != 0
    }

    /// The codings of both sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The codings of either set.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Its codings, the most compact first.
    pub fn iter(self) -> impl Iterator<Item = Coding> {
        Coding::ALL.into_iter().filter(move |coding| self.contains(*coding))
    }
}

impl FromIterator<Coding> for Codings {
    fn from_iter<I: IntoIterator<Item = Coding>>(codings: I) -> Self {
        Self(codings.into_iter().fold(0, |bits, coding| bits | coding.bit()))
    }
}

/// Codings in the order in which a client wants them.
pub type Wanted = std::iter::Flatten<std::array::IntoIter<Option<Coding>, { Coding::ALL.len() }>>;

/// The offered codings that the client wants at least as much as no coding, the most wanted first. Of several that it wants alike,
/// the most compact comes first. Empty: the client gets the representation without a coding.
///
/// A coding must be named: clients that decode nothing send `*`, too. A client that accepts neither a coding nor none gets none.
pub fn wanted(offered: Codings, request: &HeaderMap) -> Wanted {
    wanted_in(offered, request.get_all(ACCEPT_ENCODING).iter().map(HeaderValue::as_bytes))
}

/// The same for a client with these lines of `Accept-Encoding`. It allocates nothing: hits are chosen by it.
pub fn wanted_in<'a>(offered: Codings, lines: impl Iterator<Item = &'a [u8]>) -> Wanted {
    let mut ranked = [None; Coding::ALL.len()];
    if !offered.is_empty()
        && let Some(weights) = Weights::of(lines)
    {
        let plain = weights.identity.or(weights.others).unwrap_or(QUALITY_LEAST);
        for (place, coding) in ranked.iter_mut().zip(offered.iter()) {
            let quality = weights.codings[coding as usize].unwrap_or(0);
            *place = (quality > 0 && quality >= plain).then_some((quality, coding));
        }
        // The sort is stable: codings that are wanted alike stay in their order.
        ranked.sort_by_key(|place| std::cmp::Reverse(place.map_or(0, |(quality, _)| quality)));
    }
    ranked.map(|place| place.map(|(_, coding)| coding)).into_iter().flatten()
}

/// The codings that a client accepts, whether it prefers them or not. A client without the field accepts all (RFC 9110, section
/// 12.5.3).
pub fn accepted(request: &HeaderMap) -> Codings {
    if !request.contains_key(ACCEPT_ENCODING) {
        return Codings::ALL;
    }
    let lines = request.get_all(ACCEPT_ENCODING).iter().map(HeaderValue::as_bytes);
    let Some(weights) = Weights::of(lines) else { return Codings::NONE };
    let weight = |coding: Coding| weights.codings[coding as usize].or(weights.others).unwrap_or(0);
    Codings::ALL.iter().filter(|coding| weight(*coding) > 0).collect()
}

/// The weights that a client gives to codings, in thousandths. `None`: it doesn't name them.
#[derive(Default)]
struct Weights {
    /// By their numbers.
    codings: [Option<u16>; Coding::ALL.len()],
    identity: Option<u16>,
    /// `*`
    others: Option<u16>,
}

impl Weights {
    /// `None` if a line is malformed, or names one of these codings twice, so that its meaning is ambiguous.
    fn of<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let mut weights = Self::default();
        for member in lines.flat_map(|line| list::split(line, b',')) {
            let (name, quality) = quality::weighed(member)?;
            if let Some(weight) = weights.named(name)
                && weight.replace(quality).is_some()
            {
                return None;
            }
        }
        Some(weights)
    }

    fn named(&mut self, name: &[u8]) -> Option<&mut Option<u16>> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if let Some(coding) = Coding::ALL.into_iter().find(|coding| is(coding.name())) {
            return self.codings.get_mut(coding as usize);
        }
        match name {
            b"*" => Some(&mut self.others),
            // RFC 9110, section 8.4.1.3.
            _ if is("x-gzip") => self.codings.get_mut(Coding::Gzip as usize),
            _ if is("identity") => Some(&mut self.identity),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Coding::{Brotli, Gzip, Zstandard};
    use super::*;

    fn wants(offered: Codings, accepted: &'static str) -> Vec<Coding> {
        let request = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(accepted))]);
        wanted(offered, &request).collect()
    }

    #[test]
    fn the_client_gets_the_coding_that_it_prefers() {
        for (accepted, expected) in [
            ("gzip, deflate, br, zstd", &[Brotli, Zstandard, Gzip][..]),
            ("gzip, deflate, zstd", &[Zstandard, Gzip]),
            ("gzip", &[Gzip]),
            ("x-gzip", &[Gzip]),
            ("GZIP", &[Gzip]),
            ("gzip;q=1.0, br;q=0.9", &[Gzip, Brotli]),
            ("gzip;q=0.5, zstd;q=0.5", &[Zstandard, Gzip]),
            ("br;q=0, gzip;q=0.001", &[Gzip]),
            ("gzip;q=0.5, identity;q=0.8", &[]),
            ("gzip;q=0.5, identity;q=0.5", &[Gzip]),
            ("gzip;q=0.5, br, identity;q=0.8", &[Brotli]),
            ("gzip, identity;q=0", &[Gzip]),
            ("gzip, *;q=0", &[Gzip]),
            ("br;q=0", &[]),
            ("identity;q=0, deflate", &[]),
            ("*", &[]),
            ("*;q=0", &[]),
            ("gzip;q=0, *", &[]),
            ("deflate", &[]),
            ("", &[]),
            ("br;q=two", &[]),
            ("br;q=2", &[]),
            ("br, br;q=0", &[]),
            ("gzip, X-GZIP;q=0.5", &[]),
            ("br, identity, Identity;q=0", &[]),
            ("*;q=0, br, *", &[]),
            ("deflate, br, deflate;q=0", &[Brotli]),
            ("br, , zstd ; q=0.5,", &[Brotli, Zstandard]),
            ("br, \"gzip, zstd\"", &[]),
        ] {
            assert_eq!(wants(Codings::ALL, accepted), expected, "{accepted}");
        }
        let lines = [&b"gzip;q=0.5"[..], b"", b"br"];
        assert_eq!(wanted_in(Codings::ALL, lines.into_iter()).collect::<Vec<_>>(), [Brotli, Gzip]);
        let nothing_said = wanted(Codings::ALL, &HeaderMap::new()).next();
        assert_eq!(nothing_said, None, "a client without the field may decode nothing");
    }

    #[test]
    fn codings_are_accepted_unless_they_are_left_out_or_excluded() {
        assert_eq!(accepted(&HeaderMap::new()), Codings::ALL);
        for (told, expected) in [
            ("gzip;q=0.001, br;q=0", &[Gzip][..]),
            ("*", &[Brotli, Zstandard, Gzip]),
            ("br;q=0, *;q=0.5", &[Zstandard, Gzip]),
            ("zstd, *;q=0", &[Zstandard]),
            ("identity", &[]),
            ("", &[]),
            ("br;q=two", &[]),
        ] {
            let request = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(told))]);
            assert_eq!(accepted(&request).iter().collect::<Vec<_>>(), expected, "{told}");
        }
    }

    #[test]
    fn only_offered_codings_are_wanted() {
        let accepted = "br, zstd;q=0.9, gzip;q=0.8";
        assert_eq!(wants(Codings::NONE, accepted), []);
        assert_eq!(wants(Codings::from_iter([Gzip, Zstandard]), accepted), [Zstandard, Gzip]);
    }

    #[test]
    fn a_set_survives_its_byte() {
        for byte in 0..=7 {
            let codings = Codings::from_byte(byte);
            assert_eq!(codings.to_byte(), byte);
            assert_eq!(codings.iter().collect::<Codings>(), codings);
        }
        assert_eq!(Codings::from_byte(0xff), Codings::ALL);
    }
}
