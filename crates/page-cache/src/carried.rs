//! A stored response on its way to another cache: a peer of a fleet, or a store that nodes share.
//!
//! ```text
//! version  1 byte, 1         kind  1 byte: 0 a response, 1 a response without its body, which the asker has, 2 none, 3 a part of a response
//! length   4 bytes: of the head, which follows; then the body
//! head     kind 2: one byte that says why
//!          kind 3: the first byte of the part (8), the one after its last (8), and then as the others
//!          else: status (2), terms (36), age when it was sent in ms (8), length of the body (8, all ones: unknown),
//!                line (8), its reign, the reign that was followed, vary names, tags, fields (`eyewall_http::stored_fields`)
//! ```
//! Numbers are little-endian. A text has two bytes of length before it, a list two bytes of count.
//!
//! The receiver doesn't judge the response again: fields that the rules of a site look at, such as `Surrogate-Key`, may be gone. It takes
//! over the terms, the tags, and the fields that the response varies by. Clocks of two machines differ, so the age is sent as a duration.
//! The body is in its identity form; each cache makes its own compressed forms.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use eyewall_fleet::AsOf;
use eyewall_fleet::Reign;
use eyewall_http::age;
use eyewall_http::field::vary::Vary;
use eyewall_http::message::Exchange;
use eyewall_http::reader::Reader;
use eyewall_http::stored_fields;
use eyewall_http::storing::Storable;
use eyewall_http::terms::{TERMS_BYTES, Terms};
use http::{HeaderMap, HeaderName, StatusCode};

use crate::pages::Pages;
use crate::selection::Stored;

const VERSION: u8 = 1;
/// The bytes before the head.
pub const PREFIX_BYTES: usize = 6;
/// The greatest length of a head. A stored response has at most 64 KiB of fields.
pub const HEAD_BYTES_MAX: usize = 256 << 10;
/// The length of a body that is unknown.
const UNKNOWN: u64 = u64::MAX;

/// The answer of another cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Envelope {
    /// A response; its body follows.
    Response(Carried),
    /// The response that the asker has is still the right one. This has its fields and terms.
    Unchanged(Carried),
    /// These bytes of a response with a known length; they follow. Fields and terms are those of the whole.
    Part(Carried, Range<u64>),
    /// None.
    Nothing(WhyNot),
}

/// Why another cache has no response to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyNot {
    /// It may not be stored.
    NotStored,
    /// The origin failed.
    Failed,
    /// The cache doesn't follow the purge log of the fleet.
    DoesNotFollow,
    /// The cache can't answer such a request.
    NotServed,
    /// The settings of the site are others there.
    OtherSettings,
}

/// A response without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// The status.
    pub status: StatusCode,
    /// The terms of its reuse. Its time of receipt is by the clock of this machine.
    pub terms: Terms,
    /// Up to which line of the purge log it is right.
    pub as_of: AsOf,
    /// The fields of requests that it varies by.
    pub vary: Vec<HeaderName>,
    /// The tags by which it is purged together with others.
    pub tags: Vec<String>,
    /// The fields, as they are stored.
    pub fields: HeaderMap,
    /// The length of its body, if it is known.
    pub length: Option<u64>,
    /// Whether the receiver stores it. It isn't sent.
    pub is_kept: bool,
}

/// An extension of a response: which cache it comes from, as a token for `Cache-Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Giver(pub &'static str);

impl Carried {
    /// A stored response that is right up to `as_of`. `None` if a purge has made it stale.
    pub fn of_stored(stored: &Stored, as_of: AsOf) -> Option<Self> {
        let Stored { found, terms, vary, .. } = stored;
        (!found.is_stale).then(|| Self {
            status: found.head.status,
            terms: *terms,
            as_of,
            vary: vary.clone(),
            tags: found.tags(),
            fields: found.head.fields.clone(),
            length: Some(stored.length()),
            is_kept: true,
        })
    }

    /// It has been on its way for this long, beside the time of the exchange.
    pub fn rest(&mut self, rested: Duration) {
        self.terms.initial_age_ms = aged(self.terms.initial_age_ms, rested);
    }

    /// The age in whole seconds at `now`.
    pub fn age_seconds(&self, now: SystemTime) -> u64 {
        self.terms.age(now).as_secs()
    }

    /// It stays fresh for at most this long after `now`.
    pub fn limit(&mut self, most: Duration, now: SystemTime) {
        let end = self.terms.age(now).saturating_add(most).as_secs();
        self.terms.lifetime_seconds = self.terms.lifetime_seconds.min(u32::try_from(end).unwrap_or(u32::MAX));
    }

    /// What its maker has judged.
    pub(crate) fn storable(&self) -> Storable {
        let vary = if self.vary.is_empty() { Vary::Nothing } else { Vary::Fields(self.vary.clone()) };
        Storable { terms: self.terms, source: None, vary, withheld: Vec::new() }
    }
}

impl Pages {
    /// The fresh whole response of an address under `kept_key`, for other caches, with its body. `as_of` was asked for before, and `vary`
    /// selects the response. Leaves no trace in the volume.
    pub fn shareable(
        &self,
        address: &[u8],
        kept_key: &[u8],
        vary: &[HeaderName],
        as_of: AsOf,
    ) -> Option<(Carried, Bytes)> {
        let found = self.store.peek(kept_key).found()?;
        let stored = Stored::new(address, kept_key.to_vec(), found, SystemTime::now())?;
        if stored.is_fragmented() || stored.found.head.trailers.is_some() {
            return None;
        }
        let carried = Carried { vary: vary.to_vec(), ..Carried::of_stored(&stored, as_of)? };
        Some((carried, stored.found.value()))
    }
}

impl Envelope {
    /// The bytes before the body, sent at `now`. `None` if a part is too long for the format.
    pub fn encode(&self, now: SystemTime) -> Option<Vec<u8>> {
        let (kind, mut head) = match self {
            Self::Response(carried) => (0, head_of(carried, now)?),
            Self::Unchanged(carried) => (1, head_of(carried, now)?),
            Self::Nothing(why) => (2, vec![*why as u8]),
            Self::Part(carried, range) => {
                let range = [range.start.to_le_bytes(), range.end.to_le_bytes()].concat();
                (3, [range, head_of(carried, now)?].concat())
            }
        };
        let mut bytes = vec![VERSION, kind];
        bytes.extend(u32::try_from(head.len()).ok()?.to_le_bytes());
        bytes.append(&mut head);
        (bytes.len() <= PREFIX_BYTES + HEAD_BYTES_MAX).then_some(bytes)
    }

    /// The length of the head, by the bytes before it. `None`: another version wrote it, or nobody.
    pub fn head_bytes(prefix: [u8; PREFIX_BYTES]) -> Option<usize> {
        let [version, _, length @ ..] = prefix;
        let length = u32::from_le_bytes(length) as usize;
        (version == VERSION && length <= HEAD_BYTES_MAX).then_some(length)
    }

    /// The envelope of bytes that begin with one, and the bytes after it, which are the body. It was received by this exchange.
    pub fn decode(bytes: &[u8], exchange: Exchange) -> Option<(Self, &[u8])> {
        let mut reader = Reader::new(bytes);
        let prefix: [u8; PREFIX_BYTES] = reader.array()?;
        let head = reader.take(Self::head_bytes(prefix)?)?;
        let envelope = match prefix[1] {
            0 => Self::Response(carried_of(head, exchange)?),
            1 => Self::Unchanged(carried_of(head, exchange)?),
            2 => Self::Nothing(WhyNot::of(*head.first()?)),
            3 => {
                let (start, rest) = head.split_first_chunk()?;
                let (end, rest) = rest.split_first_chunk()?;
                let (range, carried) =
                    (u64::from_le_bytes(*start)..u64::from_le_bytes(*end), carried_of(rest, exchange)?);
                let is_part = range.start < range.end && carried.length.is_some_and(|length| range.end <= length);
                is_part.then_some(Self::Part(carried, range))?
            }
            _ => return None,
        };
        Some((envelope, reader.rest()))
    }
}

impl WhyNot {
    fn of(byte: u8) -> Self {
        let all = [Self::NotStored, Self::Failed, Self::DoesNotFollow, Self::OtherSettings];
        all.into_iter().find(|why| *why as u8 == byte).unwrap_or(Self::NotServed)
    }
}

fn head_of(carried: &Carried, now: SystemTime) -> Option<Vec<u8>> {
    let Carried { status, terms, as_of, vary, tags, fields, length, .. } = carried;
    let mut head = Vec::with_capacity(512);
    head.extend(status.as_u16().to_le_bytes());
    head.extend(terms.to_bytes());
    let age = u64::try_from(terms.age(now).as_millis()).unwrap_or(u64::MAX);
    for number in [age, length.unwrap_or(UNKNOWN), as_of.line] {
        head.extend(number.to_le_bytes());
    }
    for reign in [&as_of.written_in, &as_of.reign] {
        push(&mut head, reign.as_str())?;
    }
    for list in [vary.iter().map(HeaderName::as_str).collect(), tags.iter().map(String::as_str).collect::<Vec<_>>()] {
        head.extend(u16::try_from(list.len()).ok()?.to_le_bytes());
        for text in list {
            push(&mut head, text)?;
        }
    }
    stored_fields::write(fields, &mut head)?;
    Some(head)
}

fn push(head: &mut Vec<u8>, text: &str) -> Option<()> {
    head.extend(u16::try_from(text.len()).ok()?.to_le_bytes());
    head.extend(text.as_bytes());
    Some(())
}

fn carried_of(head: &[u8], exchange: Exchange) -> Option<Carried> {
    let mut reader = Reader::new(head);
    let status = StatusCode::from_u16(u16::from_le_bytes(reader.array()?)).ok()?;
    let terms = Terms::from_bytes(reader.array::<TERMS_BYTES>()?)?;
    let mut number = || reader.array().map(u64::from_le_bytes);
    let (age_ms, length, line) = (number()?, number()?, number()?);
    let (written_in, reign) = (Reign::new(text(&mut reader)?), Reign::new(text(&mut reader)?));
    let vary = list(&mut reader)?.into_iter().map(|name| name.parse().ok()).collect::<Option<_>>()?;
    let tags = list(&mut reader)?.into_iter().map(str::to_owned).collect();
    let fields = stored_fields::read(reader.rest())?;
    // As in RFC 9111, section 4.2.3: the way may have taken as long as the whole exchange.
    let way = exchange.received.duration_since(exchange.requested).unwrap_or_default();
    let received = exchange.received.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let terms = Terms { received_ms: milliseconds(received), initial_age_ms: aged(age_ms, way), ..terms };
    let as_of = AsOf { line, written_in, reign };
    let length = Some(length).filter(|length| *length != UNKNOWN);
    Some(Carried { status, terms, as_of, vary, tags, fields, length, is_kept: true })
}

/// An age after a further time, in milliseconds. Ages have a largest value.
fn aged(age_ms: u64, further: Duration) -> u64 {
    age::current(Duration::from_millis(age_ms), further).as_millis() as u64
}

fn text<'a>(reader: &mut Reader<'a>) -> Option<&'a str> {
    let length = u16::from_le_bytes(reader.array()?);
    str::from_utf8(reader.take(length.into())?).ok()
}

fn list<'a>(reader: &mut Reader<'a>) -> Option<Vec<&'a str>> {
    let count = u16::from_le_bytes(reader.array()?);
    (0..count).map(|_| text(reader)).collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::{CONTENT_TYPE, ETAG};

    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn carried() -> Carried {
        let terms = Terms {
            received_ms: 0,
            initial_age_ms: 5000,
            lifetime_seconds: 60,
            overdue_seconds: 0,
            stale_while_revalidate_seconds: 7,
            stale_if_error_seconds: 8,
            marks: eyewall_http::terms::Marks::HAS_VALIDATOR,
        };
        let fields = [(CONTENT_TYPE, HeaderValue::from_static("text/html")), (ETAG, HeaderValue::from_static("\"1\""))];
        Carried {
            status: StatusCode::NOT_FOUND,
            terms,
            as_of: AsOf { line: 7, written_in: Reign::new("a"), reign: Reign::new("b") },
            vary: vec![HeaderName::from_static("accept-language")],
            tags: vec!["post-7".to_owned(), String::new()],
            fields: HeaderMap::from_iter(fields),
            length: Some(3),
            is_kept: true,
        }
    }

    fn exchange(requested_ms: u64, received_ms: u64) -> Exchange {
        let at = |ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
        Exchange { requested: at(requested_ms), received: at(received_ms) }
    }

    #[test]
    fn an_envelope_survives_and_leaves_the_body() {
        let unknown = Carried { length: None, vary: Vec::new(), tags: Vec::new(), ..carried() };
        for envelope in [
            Envelope::Response(carried()),
            Envelope::Unchanged(unknown),
            Envelope::Part(carried(), 1..3),
            Envelope::Nothing(WhyNot::NotStored),
            Envelope::Nothing(WhyNot::DoesNotFollow),
            Envelope::Nothing(WhyNot::NotServed),
            Envelope::Nothing(WhyNot::OtherSettings),
        ] {
            let mut bytes = envelope.encode(NOW).unwrap();
            let prefix = bytes[..PREFIX_BYTES].try_into().unwrap();
            assert_eq!(Envelope::head_bytes(prefix), Some(bytes.len() - PREFIX_BYTES));
            bytes.extend(b"abc");
            let exchange = Exchange { requested: NOW, received: NOW };
            assert_eq!(Envelope::decode(&bytes, exchange), Some((envelope, &b"abc"[..])));
        }
    }

    #[test]
    fn the_age_grows_on_the_way_whatever_the_clocks_say() {
        let sent = SystemTime::UNIX_EPOCH + Duration::from_secs(10);
        let bytes = Envelope::Response(carried()).encode(sent).unwrap();
        let (Envelope::Response(carried), _) = Envelope::decode(&bytes, exchange(900_000, 902_000)).unwrap() else {
            panic!("a response")
        };
        let at = |ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
        assert_eq!(carried.age_seconds(at(902_000)), 5 + 10 + 2);
        assert_eq!(carried.age_seconds(at(905_000)), 5 + 10 + 5);
        let mut limited = carried.clone();
        limited.limit(Duration::from_secs(20), at(902_000));
        assert_eq!(limited.terms.lifetime_seconds, 37);
        limited.limit(Duration::from_secs(90), at(902_000));
        assert_eq!(limited.terms.lifetime_seconds, 37);
    }

    #[test]
    fn cut_and_changed_bytes_are_refused_or_mean_something_else_but_never_panic() {
        let bytes = Envelope::Response(carried()).encode(NOW).unwrap();
        for end in 0..bytes.len() {
            assert_eq!(Envelope::decode(&bytes[..end], exchange(0, 0)), None);
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 2, 0x7f, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                let _ = Envelope::decode(&bytes, exchange(0, 0));
            }
        }
        let no_length = Carried { length: None, ..carried() };
        for wrong in [Envelope::Part(carried(), 2..2), Envelope::Part(carried(), 2..4), Envelope::Part(no_length, 0..1)]
        {
            assert_eq!(Envelope::decode(&wrong.encode(NOW).unwrap(), exchange(0, 0)), None);
        }
        assert_eq!(Envelope::head_bytes([VERSION, 0, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(Envelope::head_bytes([VERSION + 1, 0, 1, 0, 0, 0]), None);
        let long = Carried { tags: vec!["x".repeat(70_000)], ..carried() };
        assert_eq!(Envelope::Response(long).encode(NOW), None);
    }
}
