//! The keys of an address's answers to QUERY (RFC 10008): a GET with content, which is part of the key.
//!
//! ```text
//! ADDRESS query                        the generation of the answers to QUERY of this address
//! ADDRESS query GENERATION DIGEST      an answer; variants and fragments of it as of any other
//! ```
//! So to remove the generation is to remove all of them: a new generation leads to none of the old answers.

use std::sync::Arc;

use eyewall_http::query;
use eyewall_http::vary_index::VaryIndex;
use http::HeaderMap;

use crate::digest::ContentDigest;
use crate::generation::generation;
use crate::pages::Pages;
use crate::store::Store;

/// The key of a generation is the key of its address and this suffix.
const BEHIND_ADDRESS: &str = " query";

/// The key of the generation of an address.
pub fn queries_of(address: &[u8]) -> Vec<u8> {
    [address, BEHIND_ADDRESS.as_bytes()].concat()
}

/// The digest of a request's content and of the fields that describe it, in hexadecimal digits.
pub fn digest(fields: &HeaderMap, content: &[u8]) -> String {
    let mut digest = ContentDigest::new();
    query::identify(fields, content, |piece| digest.update(piece));
    digest.finish()
}

/// The part of the key of an answer that follows its address: the [`digest`] is that of the request's content.
pub fn behind_address(generation: u64, digest: &str) -> String {
    format!("{BEHIND_ADDRESS} {generation:016x} {digest}")
}

impl Pages {
    /// The generation of an address's stored answers to QUERY; a new one if there is none. None: the volume can't store one.
    pub async fn query_generation(&self, address: &[u8]) -> Option<u64> {
        let queries = queries_of(address);
        let found = self.look(Store::look, &queries).await.found();
        if let Some(vary_index) = found.and_then(|found| VaryIndex::decode(found.bytes())) {
            return Some(vary_index.generation());
        }
        let store = Arc::clone(&self.store);
        // The thread has already logged its panic.
        tokio::task::spawn_blocking(move || begin(&store, &queries)).await.unwrap_or_default()
    }
}

/// The first request makes the generation. It can wait for other writers.
fn begin(store: &Store, queries: &[u8]) -> Option<u64> {
    let mut begun = generation();
    let is_stored = store.change(queries, &[], |present| {
        let vary_index = present.and_then(VaryIndex::decode).unwrap_or_else(|| VaryIndex::new(begun));
        begun = vary_index.generation();
        vary_index.encode()
    });
    is_stored.then_some(begun)
}
