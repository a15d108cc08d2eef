//! Where the answers to QUERY (RFC 10008) of an address begin.
//!
//! ```text
//! ADDRESS query        the generation of the answers to QUERY of this address, part of the keys of all of them
//! ```
//! So who removes the generation is rid of all of them: a new one leads to none of the old.

use std::sync::Arc;

use eyewall_http::vary_index::VaryIndex;

use crate::generation::generation;
use crate::pages::Pages;
use crate::store::Store;

/// What the key of a generation has behind that of its address.
pub const BEHIND_ADDRESS: &str = " query";

/// The key of the generation of an address.
pub fn queries_of(address: &[u8]) -> Vec<u8> {
    [address, BEHIND_ADDRESS.as_bytes()].concat()
}

impl<C> Pages<C> {
    /// The generation of what is stored of an address's answers to QUERY; a new one where there is none. None: the volume takes
    /// none.
    pub async fn query_generation(&self, address: &[u8]) -> Option<u64> {
        let queries = queries_of(address);
        let found = self.look(Store::look, &queries).await.found();
        if let Some(vary_index) = found.and_then(|found| VaryIndex::decode(found.bytes())) {
            return Some(vary_index.generation());
        }
        let store = Arc::clone(&self.store);
        // Its thread has logged a panic already.
        tokio::task::spawn_blocking(move || begin(&store, &queries)).await.unwrap_or_default()
    }
}

/// Whoever comes first makes it. It can wait for other writers.
fn begin(store: &Store, queries: &[u8]) -> Option<u64> {
    let mut begun = generation();
    let is_stored = store.change(queries, &[], |present| {
        let vary_index = present.and_then(VaryIndex::decode).unwrap_or_else(|| VaryIndex::new(begun));
        begun = vary_index.generation();
        vary_index.encode()
    });
    is_stored.then_some(begun)
}
