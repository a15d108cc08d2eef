//! A question of one node to another, as bytes.
//!
//! ```text
//! version  1 byte, 2       kind  1 byte: 0 a sign of life is wanted, 1 a response
//! kind 0:  32 bytes: a hash of the settings of all sites, as the first node has them
//! kind 1:
//! basis    32 bytes: a hash of the key and of the settings of the site, as the first node has them
//! then texts with four bytes of length before them: scheme, authority, target, address of the client, that of the real client, the chain
//! of proxies, the validators of a stored response; and the fields (`eyewall_http::stored_fields`)
//! ```
//! It is the client's request after the fields of trusted proxies were applied and before the site's rules were. So the home finds the
//! same key and the same rules by the same configuration. If it has another one, its basis differs, and it gives no response.

use std::net::IpAddr;

use eyewall_http::reader::Reader;
use eyewall_http::stored_fields;
use http::header::{ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue};

use crate::key::Scheme;
use crate::serve::trusted_proxies::{Forwarded, RealClient};

/// To be raised when another version would misread a question.
const VERSION: u8 = 2;
/// The greatest length of a question.
pub(super) const QUESTION_BYTES_MAX: usize = 256 << 10;

/// A question.
#[derive(Debug)]
pub(crate) enum Question {
    /// Whether the node is alive, and has these settings of sites ([`crate::sites::Sites::settings_hash`]).
    Life([u8; 32]),
    /// For a response.
    Page(Box<PageQuestion>),
}

/// The question for a response.
#[derive(Debug, Clone)]
pub(crate) struct PageQuestion {
    /// A hash of the key and of the settings of the site ([`crate::sites::Site::basis`]).
    pub(crate) basis: [u8; 32],
    pub(crate) scheme: Scheme,
    /// The host, and the port if it isn't the default, as in the key.
    pub(crate) authority: String,
    /// Path and query, as the client sent them.
    pub(crate) target: String,
    /// The address of the connection to the first node.
    pub(crate) client: IpAddr,
    /// What a trusted proxy told of its client.
    pub(crate) forwarded: Option<Forwarded>,
    /// The validators of what the first node has stored.
    pub(crate) validators: HeaderMap,
    pub(crate) fields: HeaderMap,
}

impl Question {
    /// `None` if it is too long.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let question = match self {
            Self::Life(settings) => return Some([&[VERSION, 0], &settings[..]].concat()),
            Self::Page(question) => question,
        };
        let mut bytes = vec![VERSION, 1];
        bytes.extend(question.basis);
        let chain = question.forwarded.as_ref().and_then(|forwarded| forwarded.chain.as_ref());
        let real = question.forwarded.as_ref().map(|forwarded| {
            let mark = if forwarded.real_client.is_known { "" } else { "?" };
            format!("{}{mark}", forwarded.real_client.address)
        });
        let client = question.client.to_string();
        let mut validators = Vec::new();
        stored_fields::write(&question.validators, &mut validators)?;
        for text in [
            question.scheme.as_str().as_bytes(),
            question.authority.as_bytes(),
            question.target.as_bytes(),
            client.as_bytes(),
            real.as_deref().unwrap_or_default().as_bytes(),
            chain.map(HeaderValue::as_bytes).unwrap_or_default(),
            &validators,
        ] {
            bytes.extend(u32::try_from(text.len()).ok()?.to_le_bytes());
            bytes.extend(text);
        }
        stored_fields::write(&question.fields, &mut bytes)?;
        (bytes.len() <= QUESTION_BYTES_MAX).then_some(bytes)
    }

    /// `None` for bytes that this version didn't write.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        match reader.array()? {
            [VERSION, 0] => return Some(Self::Life(reader.array()?)),
            [VERSION, 1] => {}
            _ => return None,
        }
        let basis = reader.array()?;
        let mut bytes = || {
            let length = u32::from_le_bytes(reader.array()?);
            reader.take(length as usize)
        };
        let scheme = match bytes()? {
            b"http" => Scheme::Http,
            b"https" => Scheme::Https,
            _ => return None,
        };
        let (authority, target) = (text(bytes()?)?, text(bytes()?)?);
        let client = text(bytes()?)?.parse().ok()?;
        let (real, chain) = (text(bytes()?)?, bytes()?);
        let validators = stored_fields::read(bytes()?)?;
        let fields = stored_fields::read(reader.rest())?;
        let forwarded = if real.is_empty() {
            None
        } else {
            let (address, is_known) = real.strip_suffix('?').map_or((&*real, true), |address| (address, false));
            let real_client = RealClient { address: address.parse().ok()?, is_known };
            let chain = HeaderValue::from_bytes(chain).ok().filter(|chain| !chain.is_empty());
            Some(Forwarded { real_client, scheme, chain })
        };
        let page = PageQuestion { basis, scheme, authority, target, client, forwarded, validators, fields };
        Some(Self::Page(Box::new(page)))
    }
}

impl PageQuestion {
    /// The validators of a question to an origin.
    pub(crate) fn validators_of(fields: &HeaderMap) -> HeaderMap {
        let of = |name| fields.get(&name).map(|value| (name, value.clone()));
        [IF_NONE_MATCH, IF_MODIFIED_SINCE].into_iter().filter_map(of).collect()
    }

    /// Whether the first node has this response: the validators that it sends name no other one.
    pub(crate) fn has(&self, fields: &HeaderMap) -> bool {
        let is_same = |asked, told| self.validators.get(asked).map(|value| fields.get(told) == Some(value));
        match (is_same(IF_NONE_MATCH, ETAG), is_same(IF_MODIFIED_SINCE, LAST_MODIFIED)) {
            (Some(is_same), _) => is_same,
            // A date is a weak validator: two versions may share one.
            (None, Some(is_same)) => is_same && !fields.contains_key(ETAG),
            (None, None) => false,
        }
    }
}

/// For fuzz targets: what is understood means the same when it is written again.
#[cfg(feature = "seams")]
pub(crate) fn reread(bytes: &[u8]) {
    let Some(question) = Question::decode(bytes) else { return };
    let Some(again) = question.encode() else { return };
    assert_eq!(format!("{:?}", Question::decode(&again)), format!("{:?}", Some(question)));
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE;

    use super::*;

    fn question(forwarded: Option<Forwarded>) -> Question {
        let field = |name, value| HeaderMap::from_iter([(name, HeaderValue::from_static(value))]);
        Question::Page(Box::new(PageQuestion {
            basis: [7; 32],
            scheme: Scheme::Https,
            authority: "example.org:8080".to_owned(),
            target: "/a?b".to_owned(),
            client: [192, 0, 2, 1].into(),
            forwarded,
            validators: field(IF_NONE_MATCH, "\"1\""),
            fields: field(COOKIE, "a=b"),
        }))
    }

    #[test]
    fn a_question_survives() {
        let real_client = RealClient { address: [192, 0, 2, 9].into(), is_known: false };
        let chain = Some(HeaderValue::from_static("192.0.2.9"));
        for forwarded in [None, Some(Forwarded { real_client, scheme: Scheme::Https, chain })] {
            let question = question(forwarded);
            let bytes = question.encode().unwrap();
            let decoded = Question::decode(&bytes).unwrap();
            assert_eq!(format!("{decoded:?}"), format!("{question:?}"));
            for end in 0..bytes.len() {
                let _ = Question::decode(&bytes[..end]);
            }
        }
        let life = Question::Life([7; 32]).encode().unwrap();
        assert!(matches!(Question::decode(&life), Some(Question::Life(settings)) if settings == [7; 32]));
        let of_others = [1, VERSION + 1].map(|version| [&[version], &life[1..]].concat());
        for wrong in [&b""[..], b"\x02", b"\x02\x00", b"\x02\x01\xff\xff\xff\xff", b"GET / HTTP/1.1"]
            .into_iter()
            .chain(of_others.iter().map(Vec::as_slice))
        {
            assert!(Question::decode(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn only_the_same_version_is_unchanged() {
        let Question::Page(question) = question(None) else { panic!("a page") };
        let tagged = |tag| HeaderMap::from_iter([(ETAG, HeaderValue::from_static(tag))]);
        assert!(question.has(&tagged("\"1\"")) && !question.has(&tagged("\"2\"")) && !question.has(&HeaderMap::new()));
    }
}
