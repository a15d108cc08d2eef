//! Keys, values and orders of the module comparison. They are the same in every language; bench/drivers/README.md
//! defines them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::suite::value::Case;

const POOL_BYTES: usize = 16_384;

/// The number of distinct values. Key `i` has the value `i` modulo this number.
const DISTINCT: usize = 256;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Streams of random numbers.
const POOL: u32 = 1;
const VALUES: u32 = 2;
const GETS: u32 = 3;
const MIX: u32 = 4;

/// The finaliser of `MurmurHash3`: a bijection on 32 bits.
fn mixed(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85eb_ca6b);
    x ^= x >> 13;
    x = x.wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

/// Random numbers of 32 bits (xorshift32).
struct Stream(u32);

impl Stream {
    fn new(seed: u32, number: u32) -> Self {
        Self(mixed(seed.wrapping_add(number)).max(1))
    }

    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        ((u64::from(self.next()) * limit as u64) >> 32) as usize
    }
}

/// The settings for keys and values.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Amounts {
    pub(super) keys: usize,
    operations: usize,
    stored_percent: usize,
    set_percent: usize,
    binary_bytes: BTreeMap<String, usize>,
    structured_fields: BTreeMap<String, usize>,
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Field {
    Number(u32),
    Text(String),
}

/// A structured value.
pub(super) type Record = BTreeMap<String, Field>;

/// The stored values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    Binary(Vec<Vec<u8>>),
    Structured(Vec<Record>),
}

impl Values {
    /// The values of a case.
    pub(super) fn of(case: &Case, amounts: &Amounts, seed: u64) -> Result<Self> {
        let seed = seed as u32;
        let size = case.text("size")?;
        let known = |sizes: &BTreeMap<String, usize>| {
            sizes
                .get(size)
                .copied()
                .ok_or_else(|| Error::parameter("size", case.get("size"), "one of the settings' sizes"))
        };
        match case.text("values")? {
            "binary" => Ok(Self::Binary(binary(known(&amounts.binary_bytes)?, seed))),
            "structured" => Ok(Self::Structured(structured(known(&amounts.structured_fields)?, seed))),
            _ => Err(Error::parameter("values", case.get("values"), "binary or structured")),
        }
    }
}

/// Key `index`. There are twice as many keys as stored objects: those of the second half are never stored.
pub(super) fn key(index: usize, seed: u64) -> String {
    format!("key:{:08x}", mixed(index as u32 ^ mixed(seed as u32)))
}

fn pool(seed: u32) -> Vec<u8> {
    let mut stream = Stream::new(seed, POOL);
    (0..POOL_BYTES / 4).flat_map(|_| stream.next().to_le_bytes()).collect()
}

fn binary(mean: usize, seed: u32) -> Vec<Vec<u8>> {
    let (pool, mut stream) = (pool(seed), Stream::new(seed, VALUES));
    let mut values = Vec::with_capacity(DISTINCT);
    for _ in 0..DISTINCT / 2 {
        let distance = stream.below(mean / 2 + 1);
        for length in [mean + distance, mean - distance] {
            let start = stream.below(POOL_BYTES - length);
            values.push(pool[start..start + length].to_vec());
        }
    }
    values
}

fn structured(fields: usize, seed: u32) -> Vec<Record> {
    let letters: Vec<u8> = pool(seed).into_iter().map(|byte| LETTERS[usize::from(byte & 63)]).collect();
    let mut stream = Stream::new(seed, VALUES);
    let mut field = |number: usize| {
        let name = format!("field_{number:02}");
        if number % 4 == 3 {
            return (name, Field::Number(stream.next() >> 1));
        }
        let length = 8 + stream.below(17);
        let start = stream.below(POOL_BYTES - length);
        (name, Field::Text(String::from_utf8_lossy(&letters[start..start + length]).into_owned()))
    };
    (0..DISTINCT).map(|_| (0..fields).map(&mut field).collect()).collect()
}

/// An operation on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Get(usize),
    Set(usize),
}

/// The keys to request, if so many were stored.
pub(super) fn gets(amounts: &Amounts, stored: usize, seed: u64) -> Vec<Act> {
    let mut stream = Stream::new(seed as u32, GETS);
    let mut get = || {
        if stream.below(100) < amounts.stored_percent {
            stream.below(stored)
        } else {
            amounts.keys + stream.below(amounts.keys)
        }
    };
    (0..amounts.operations).map(|_| Act::Get(get())).collect()
}

/// Gets and sets of stored objects.
pub(super) fn mix(amounts: &Amounts, stored: usize, seed: u64) -> Vec<Act> {
    let mut stream = Stream::new(seed as u32, MIX);
    let mut act = || {
        let is_set = stream.below(100) < amounts.set_percent;
        let key = stream.below(stored);
        if is_set { Act::Set(key) } else { Act::Get(key) }
    };
    (0..amounts.operations).map(|_| act()).collect()
}

#[cfg(test)]
mod tests {
    use ring::digest::{SHA256, digest};
    use serde_json::{Value, json};

    use super::*;

    fn sha256(bytes: &[u8]) -> String {
        let digits: Vec<String> = digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        digits.concat()
    }

    fn of_sequence(acts: &[Act]) -> Value {
        let number = |act: &Act| match act {
            Act::Get(key) => *key as i64,
            Act::Set(key) => -1 - *key as i64,
        };
        let numbers: Vec<i64> = acts.iter().map(number).collect();
        let text: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        json!({"count": numbers.len(), "first": numbers[..8], "sha256": sha256(text.join("\n").as_bytes())})
    }

    fn of_values(values: &[Vec<u8>]) -> Value {
        let lengths: Vec<usize> = values.iter().take(4).map(Vec::len).collect();
        let all = values.concat();
        json!({"lengths": lengths, "bytes": all.len(), "sha256": sha256(&all)})
    }

    fn text_of(record: &Record) -> Vec<u8> {
        let field = |(name, value): (&String, &Field)| match value {
            Field::Number(number) => format!("{name}={number};"),
            Field::Text(text) => format!("{name}={text};"),
        };
        record.iter().map(field).collect::<String>().into_bytes()
    }

    #[test]
    fn all_languages_have_the_same_keys_values_and_orders() {
        let text = include_str!("../../../../../bench/drivers/vectors.json");
        let file: Value = serde_json::from_str(text).unwrap();
        let amounts: Amounts = serde_json::from_value(file["request"]["settings"].clone()).unwrap();
        let seed = file["request"]["seed"].as_u64().unwrap();
        let wanted = &file["vectors"];
        let keys: Vec<String> = (0..2 * amounts.keys).map(|index| key(index, seed)).collect();
        let found = json!({"count": keys.len(), "first": keys[..4], "sha256": sha256(keys.join("\n").as_bytes())});
        assert_eq!(found, wanted["keys"]);
        assert_eq!(of_sequence(&gets(&amounts, amounts.keys, seed)), wanted["gets"]);
        assert_eq!(of_sequence(&mix(&amounts, amounts.keys, seed)), wanted["mix"]);
        for mean in amounts.binary_bytes.values() {
            assert_eq!(of_values(&binary(*mean, seed as u32)), wanted["binary"][mean.to_string()]);
        }
        for fields in amounts.structured_fields.values() {
            let texts: Vec<Vec<u8>> = structured(*fields, seed as u32).iter().map(text_of).collect();
            assert_eq!(of_values(&texts), wanted["structured"][fields.to_string()]);
        }
    }
}
