//! What the second level has under a key.
//!
//! ```text
//! byte 0   version, 1
//! byte 1   0 a response, 1 the fields by which responses of the key vary
//! kind 0:  8 bytes, when it was written: milliseconds since 1970; then the envelope with the body
//!          (`eyewall_page_cache::carried`)
//! kind 1:  the names, with commas; a variant has a key of its own
//! ```

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use eyewall_http::message::Exchange;
use eyewall_http::vary_index::Variant;
use eyewall_page_cache::carried::{Carried, Envelope};
use http::HeaderName;

const VERSION: u8 = 1;

/// The content of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record {
    Response(Box<Shared>),
    Varies(Vec<HeaderName>),
}

/// A response in the store.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shared {
    pub(super) carried: Carried,
    pub(super) body: Bytes,
}

impl Record {
    /// A response for the store. `None` if a part is too long for the format.
    pub(super) fn of_response(shared: Shared, now: SystemTime) -> Option<Bytes> {
        let Shared { carried, body } = shared;
        let envelope = Envelope::Response(carried).encode(now)?;
        let written_ms = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        Some([&[VERSION, 0], &written_ms.to_le_bytes()[..], &envelope, &body].concat().into())
    }

    /// The names of fields for the store.
    pub(super) fn of_names(names: &[HeaderName]) -> Bytes {
        let names: Vec<&str> = names.iter().map(HeaderName::as_str).collect();
        [&[VERSION, 1], names.join(",").as_bytes()].concat().into()
    }

    /// The record of a value that was received by this exchange. `None`: another version wrote it, or nobody of the fleet.
    pub(super) fn read(value: &Bytes, exchange: Exchange) -> Option<Self> {
        let (head, rest) = value.split_first_chunk()?;
        match *head {
            [VERSION, 0] => {
                let (written_ms, envelope) = rest.split_first_chunk()?;
                let (Envelope::Response(mut carried), body) = Envelope::decode(envelope, exchange)? else {
                    return None;
                };
                // Anybody can write to a store without a secret.
                if carried.length.is_some_and(|length| length != body.len() as u64) {
                    return None;
                }
                let written = UNIX_EPOCH + Duration::from_millis(u64::from_le_bytes(*written_ms));
                // The clocks of two nodes differ a little.
                carried.rest(exchange.requested.duration_since(written).unwrap_or_default());
                let body = value.slice_ref(body);
                Some(Self::Response(Box::new(Shared { carried, body })))
            }
            [VERSION, 1] => {
                let names = str::from_utf8(rest).ok()?.split(',').map(|name| name.parse().ok());
                names.collect::<Option<_>>().map(Self::Varies)
            }
            _ => None,
        }
    }
}

/// For fuzz targets: what is understood means the same when it is written again.
#[cfg(feature = "seams")]
pub(crate) fn reread(bytes: &[u8]) {
    let now = UNIX_EPOCH + Duration::from_hours(24);
    let exchange = Exchange { requested: now, received: now };
    let read = |value: &Bytes| Record::read(value, exchange);
    let Some(record) = read(&Bytes::copy_from_slice(bytes)) else { return };
    let again = match &record {
        Record::Response(shared) => {
            let Shared { carried, body } = &**shared;
            Record::of_response(Shared { carried: carried.clone(), body: body.clone() }, now)
        }
        Record::Varies(names) => Some(Record::of_names(names)),
    };
    // It may be too long by now.
    assert!(again.is_none_or(|again| read(&again) == Some(record)));
}

/// The key of a variant. No other key has a blank.
pub(super) fn variant_key(key: &[u8], variant: &Variant) -> Vec<u8> {
    [key, b" ", &variant.selecting_key].concat()
}

#[cfg(test)]
mod tests {
    use eyewall_fleet::{AsOf, Reign};
    use eyewall_http::terms::{TERMS_BYTES, Terms};
    use http::header::{ACCEPT_LANGUAGE, USER_AGENT};
    use http::{HeaderMap, StatusCode};

    use super::*;

    fn at(milliseconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(milliseconds)
    }

    fn shared(body: &'static [u8]) -> Shared {
        let carried = Carried {
            status: StatusCode::OK,
            terms: Terms { lifetime_seconds: 60, ..Terms::from_bytes([0; TERMS_BYTES]).unwrap() },
            as_of: AsOf { line: 7, written_in: Reign::new("a"), reign: Reign::new("b") },
            vary: Vec::new(),
            tags: Vec::new(),
            fields: HeaderMap::new(),
            length: Some(4),
            is_kept: true,
        };
        Shared { carried, body: Bytes::from_static(body) }
    }

    #[test]
    fn a_response_grows_older_in_the_store() {
        let value = Record::of_response(shared(b"body"), at(10_000)).unwrap();
        for (requested, received, age) in [(15_000, 17_000, 17), (9000, 9000, 10)] {
            let exchange = Exchange { requested: at(requested), received: at(received) };
            let Some(Record::Response(read)) = Record::read(&value, exchange) else { panic!("a response") };
            assert_eq!((read.carried.age_seconds(at(received)), &read.body[..]), (age, &b"body"[..]));
            assert_eq!(read.carried.as_of, shared(b"").carried.as_of);
        }
    }

    #[test]
    fn other_bytes_are_no_record() {
        let exchange = Exchange { requested: at(0), received: at(0) };
        let names = vec![ACCEPT_LANGUAGE, USER_AGENT];
        assert_eq!(Record::read(&Record::of_names(&names), exchange), Some(Record::Varies(names)));
        let value = Record::of_response(shared(b"body"), at(0)).unwrap();
        for end in 0..value.len() {
            assert_eq!(Record::read(&value.slice(..end), exchange), None, "{end}");
        }
        for other in [&b"\x02\x00"[..], b"\x01\x02", b"\x01\x01a b", b"\x01\x01\xff"] {
            assert_eq!(Record::read(&Bytes::copy_from_slice(other), exchange), None);
        }
    }
}
