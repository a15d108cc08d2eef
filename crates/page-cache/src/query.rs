//! The prefix of the keys of an address's answers to QUERY (RFC 10008).
//!
//! ```text
//! ADDRESS query        the generation of the answers to QUERY of this address, part of the keys of all of them
//! ```
//! So to remove the generation is to remove all of them: a new generation leads to none of the old answers.

use std::sync::Arc;

use eyewall_http::vary_index::VaryIndex;

use crate::generation::generation;
use crate::pages::Pages;
use crate::store::Store;

/// The key of a generation is the key of its address and this suffix.
pub const BEHIND_ADDRESS: &str = " query";

/// The key of the generation of an address.
pub fn queries_of(address: &[u8]) -> Vec<u8> {
    [address, BEHIND_ADDRESS.as_bytes()].concat()
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
