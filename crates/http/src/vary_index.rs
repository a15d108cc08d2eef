//! The entry under the key of an address whose responses vary: the list of its variants.
//!
//! ```text
//! value:  8 bytes  generation, part of the variants' keys: a new vary index leads to none of the old ones
//!         then each variant, the latest first: two bytes of length, names with commas; two bytes of length, selecting key
//! a variant's key:  the address's key, " ", the generation in hexadecimal digits, " ", the selecting key
//! ```
//! No key of an address has a blank. So removing the vary index purges all variants at once.

use http::{HeaderMap, HeaderName};

use crate::selecting;

/// The maximum number of variants of an address; a new one replaces the oldest.
const VARIANTS_MAX: usize = 64;

/// The fields that selected a response among others of its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// The fields of requests that the response varies by.
    pub names: Vec<HeaderName>,
    /// Their normalised values ([`selecting::key`]).
    pub selecting_key: Vec<u8>,
}

impl Variant {
    /// The variant of a request for responses that vary by these fields.
    pub fn of(names: &[HeaderName], request: &HeaderMap) -> Self {
        Self { names: names.to_vec(), selecting_key: selecting::key(names, request) }
    }
}

/// The variants of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaryIndex {
    generation: u64,
    variants: Vec<Variant>,
}

impl VaryIndex {
    /// One without variants, of a generation that no other vary index has.
    pub fn new(generation: u64) -> Self {
        Self { generation, variants: Vec::new() }
    }

    /// The generation in its variants' keys.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Its variants, the latest first.
    pub fn variants(&self) -> &[Variant] {
        &self.variants
    }

    /// The lists of names that selected variants, each once, the latest first.
    pub fn name_lists(&self) -> impl Iterator<Item = &[HeaderName]> {
        let is_first = |(number, variant): &(usize, &Variant)| {
            !self.variants[..*number].iter().any(|earlier| earlier.names == variant.names)
        };
        self.variants.iter().enumerate().filter(is_first).map(|(_, variant)| variant.names.as_slice())
    }

    /// The key of a variant of the address that has this key.
    pub fn key_of(&self, key: &[u8], variant: &Variant) -> Vec<u8> {
        [key, format!(" {:016x} ", self.generation).as_bytes(), &variant.selecting_key].concat()
    }

    /// Puts a variant first.
    pub fn add(&mut self, variant: Variant) {
        self.variants.retain(|other| *other != variant);
        self.variants.insert(0, variant);
        self.variants.truncate(VARIANTS_MAX);
    }

    /// The value of the entry. A variant that is too long for the format is left out.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.generation.to_le_bytes().to_vec();
        for variant in &self.variants {
            let names: Vec<&str> = variant.names.iter().map(HeaderName::as_str).collect();
            let names = names.join(",");
            let lengths = (u16::try_from(names.len()), u16::try_from(variant.selecting_key.len()));
            if let (Ok(names_bytes), Ok(key_bytes)) = lengths {
                bytes.extend(names_bytes.to_le_bytes());
                bytes.extend(names.as_bytes());
                bytes.extend(key_bytes.to_le_bytes());
                bytes.extend(&variant.selecting_key);
            }
        }
        bytes
    }

    /// `None` for what is no vary index: the volume is a file that others can write.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (generation, mut rest) = bytes.split_first_chunk()?;
        let mut vary_index = Self::new(u64::from_le_bytes(*generation));
        while !rest.is_empty() {
            let names = str::from_utf8(take(&mut rest)?).ok()?;
            let names: Option<Vec<HeaderName>> = names.split(',').map(|name| name.parse().ok()).collect();
            let selecting_key = take(&mut rest)?.to_vec();
            vary_index.variants.push(Variant { names: names?, selecting_key });
        }
        Some(vary_index)
    }
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, behind) = rest.split_first_chunk()?;
    let (taken, left) = behind.split_at_checked(u16::from_le_bytes(*length).into())?;
    *rest = left;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT_ENCODING, ACCEPT_LANGUAGE};

    use super::*;

    fn variant(names: &[HeaderName], key: &str) -> Variant {
        Variant { names: names.to_vec(), selecting_key: key.as_bytes().to_vec() }
    }

    #[test]
    fn a_vary_index_comes_back_as_it_was() {
        let mut vary_index = VaryIndex::new(7);
        vary_index.add(variant(&[ACCEPT_ENCODING], "accept-encoding:gzip\n"));
        vary_index.add(variant(&[ACCEPT_ENCODING, ACCEPT_LANGUAGE], "accept-encoding\naccept-language:de\n"));
        let bytes = vary_index.encode();
        assert_eq!(VaryIndex::decode(&bytes), Some(vary_index.clone()));
        assert_eq!(vary_index.name_lists().count(), 2);
        for end in 1..bytes.len() {
            assert_ne!(VaryIndex::decode(&bytes[..end]), Some(vary_index.clone()));
        }
    }

    #[test]
    fn the_latest_variants_are_kept_each_once() {
        let mut vary_index = VaryIndex::new(7);
        for number in 0..VARIANTS_MAX + 9 {
            vary_index.add(variant(&[ACCEPT_LANGUAGE], &format!("accept-language:{number}\n")));
            vary_index.add(variant(&[ACCEPT_LANGUAGE], "accept-language:de\n"));
        }
        assert_eq!(vary_index.variants().len(), VARIANTS_MAX);
        assert_eq!(vary_index.variants()[0].selecting_key, b"accept-language:de\n");
        assert_eq!(vary_index.name_lists().count(), 1);
    }

    #[test]
    fn another_generation_has_other_keys() {
        let variant = variant(&[ACCEPT_LANGUAGE], "accept-language:de\n");
        let key_in = |generation| VaryIndex::new(generation).key_of(b"http://a/b", &variant);
        assert_eq!(key_in(1), b"http://a/b 0000000000000001 accept-language:de\n");
        assert_ne!(key_in(1), key_in(2));
    }
}
