//! The `Vary` field (RFC 9110, section 12.5.5).

use http::header::VARY;
use http::{HeaderMap, HeaderName};

use super::list;

/// The request fields that a response varies by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Vary {
    /// None: it is the same for all requests.
    Nothing,
    /// These request fields, in alphabetical order, each once.
    Fields(Vec<HeaderName>),
    /// `*`: it matches no other request.
    Everything,
}

impl Vary {
    /// Reads the `Vary` of a response. An invalid field name counts as `*`.
    pub fn of(response: &HeaderMap) -> Self {
        let names: Result<Vec<HeaderName>, _> = list::members(response, &VARY)
            .map(|name| if name == b"*" { Err(()) } else { HeaderName::from_bytes(name).map_err(|_| ()) })
            .collect();
        match names {
            Ok(names) => Self::by(names),
            Err(()) => Self::Everything,
        }
    }

    /// The same, plus this field.
    pub fn and(self, name: HeaderName) -> Self {
        match self {
            Self::Nothing => Self::Fields(vec![name]),
            Self::Fields(mut names) => {
                names.push(name);
                Self::by(names)
            }
            Self::Everything => Self::Everything,
        }
    }

    fn by(mut names: Vec<HeaderName>) -> Self {
        names.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        names.dedup();
        if names.is_empty() { Self::Nothing } else { Self::Fields(names) }
    }
}
