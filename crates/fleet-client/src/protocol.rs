//! What a client and the agent say. Each message is a length of four bytes and as many bytes; numbers are little-endian.
//!
//! ```text
//! ask:    1 | key                                              answer: 0, or 1 | object
//! offer:  2 | volume 8 | epoch 4 | key length 4 | key | object          none
//! object: ttl 8 | stale 8 | metadata length 4 | metadata | tags 2 | (length 1 | tag)... | value
//! ```
//! Times are in milliseconds; all ones mean forever.

use std::time::Duration;

use eyewall::Foreign;

/// The longest message. Larger objects aren't shared.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

const FOREVER: u64 = u64::MAX;

/// What a client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// The object of this key.
    Ask(Vec<u8>),
    /// To share an object that a fill has made.
    Offer(Offer),
}

/// An object that a fill has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The volume that has it.
    pub volume: u64,
    /// The epoch in which the work on it began.
    pub epoch: u32,
    /// The key.
    pub key: Vec<u8>,
    /// The object.
    pub object: Foreign,
}

impl Request {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Ask(key) => framed(&[&[1], key]),
            Self::Offer(offer) => {
                let (volume, epoch) = (offer.volume.to_le_bytes(), offer.epoch.to_le_bytes());
                let key_bytes = (offer.key.len() as u32).to_le_bytes();
                framed(&[&[2], &volume, &epoch, &key_bytes, &offer.key, &encode_object(&offer.object)])
            }
        }
    }

    /// The request of a message without its length; `None` if it is none.
    pub fn decode(message: &[u8]) -> Option<Self> {
        let mut reader = Reader(message);
        match reader.number::<1>()? {
            1 => Some(Self::Ask(reader.0.to_vec())),
            2 => {
                let (volume, epoch) = (reader.number::<8>()?, reader.number::<4>()? as u32);
                let key_bytes = reader.number::<4>()?;
                let key = reader.take(key_bytes)?.to_vec();
                Some(Self::Offer(Offer { volume, epoch, key, object: decode_object(reader.0)? }))
            }
            _ => None,
        }
    }
}

/// The answer to a question, as a message.
pub fn encode_answer(answer: Option<&Foreign>) -> Vec<u8> {
    match answer {
        None => framed(&[&[0]]),
        Some(object) => framed(&[&[1], &encode_object(object)]),
    }
}

/// The answer of a message without its length; `None` if there is no object, or no answer.
pub fn decode_answer(message: &[u8]) -> Option<Foreign> {
    decode_object(message.strip_prefix(&[1])?)
}

/// An object as bytes.
pub fn encode_object(object: &Foreign) -> Vec<u8> {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(FOREVER);
    let ttl = object.ttl.map_or(FOREVER, milliseconds);
    let mut bytes = [ttl.to_le_bytes(), milliseconds(object.stale).to_le_bytes()].concat();
    bytes.extend((object.metadata.len() as u32).to_le_bytes());
    bytes.extend(&object.metadata);
    bytes.extend((object.tags.len() as u16).to_le_bytes());
    for tag in &object.tags {
        // A tag has at most 255 bytes.
        bytes.push(tag.len() as u8);
        bytes.extend(tag.as_bytes());
    }
    bytes.extend(&object.value);
    bytes
}

/// The object of such bytes; `None` for others.
pub fn decode_object(bytes: &[u8]) -> Option<Foreign> {
    let mut reader = Reader(bytes);
    let (ttl, stale) = (reader.number::<8>()?, reader.number::<8>()?);
    let metadata_bytes = reader.number::<4>()?;
    let metadata = reader.take(metadata_bytes)?.to_vec();
    let count = reader.number::<2>()?;
    let mut tags = Vec::new();
    for _ in 0..count {
        let tag_bytes = reader.number::<1>()?;
        tags.push(String::from_utf8(reader.take(tag_bytes)?.to_vec()).ok()?);
    }
    let ttl = (ttl != FOREVER).then(|| Duration::from_millis(ttl));
    Some(Foreign { value: reader.0.to_vec(), metadata, tags, ttl, stale: Duration::from_millis(stale) })
}

fn framed(parts: &[&[u8]]) -> Vec<u8> {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    let mut message = (bytes as u32).to_le_bytes().to_vec();
    for part in parts {
        message.extend(*part);
    }
    message
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(bytes).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn number<const BYTES: u64>(&mut self) -> Option<u64> {
        let bytes = self.take(BYTES)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Foreign {
        Foreign {
            value: b"value".to_vec(),
            metadata: b"text/html".to_vec(),
            tags: vec!["post-7".to_owned(), "t".repeat(255)],
            ttl: Some(Duration::from_millis(1500)),
            stale: Duration::from_mins(1),
        }
    }

    #[test]
    fn messages_arrive_as_they_are_and_cut_ones_do_not() {
        let offer = Offer { volume: 7 << 40, epoch: 3, key: b"key".to_vec(), object: object() };
        for request in [Request::Ask(b"key\xff".to_vec()), Request::Offer(offer)] {
            let message = request.encode();
            let (length, message) = message.split_at(4);
            assert_eq!(u32::from_le_bytes(length.try_into().unwrap()) as usize, message.len());
            assert_eq!(Request::decode(message), Some(request));
        }
        for object in [object(), Foreign::default()] {
            assert_eq!(decode_answer(&encode_answer(Some(&object))[4..]), Some(object));
        }
        assert_eq!(decode_answer(&encode_answer(None)[4..]), None);
        let bytes = encode_object(&object());
        for cut in 0..bytes.len() - b"value".len() {
            assert_eq!(decode_object(&bytes[..cut]), None, "{cut}");
        }
        assert_eq!((Request::decode(b""), Request::decode(b"\x03"), Request::decode(b"\x02abc")), (None, None, None));
    }
}
