//! Bodies over TLS: bytes of the volume are copied, and checked, before they are encrypted.
//!
//! The kernel can't read bytes of the volume that were lost, and a write of them fails. The encryption reads them itself, and would send
//! zeros: the engine survives the lost page, and says so afterwards. So each piece is copied first, and the copy is sent only if no volume
//! has failed since the request came. A volume that a resize replaced counts, too: responses may still hold its bytes.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use eyewall_page_cache::store::Store;

/// The check of a response's body.
pub(super) struct LossCheck {
    store: Arc<Store>,
    /// The volumes that had failed when the request came. None of its bytes are theirs.
    failures: usize,
}

impl LossCheck {
    pub(super) fn of(store: &Arc<Store>) -> Self {
        Self { store: Arc::clone(store), failures: store.failures() }
    }

    /// A copy of bytes that are in the volume.
    ///
    /// # Errors
    /// The bytes were lost. Then the response must end here.
    pub(super) fn copy(&self, bytes: &[u8]) -> io::Result<Bytes> {
        let copy = Bytes::copy_from_slice(bytes);
        if self.store.failures() != self.failures {
            self.store.notice_loss(&[]);
            return Err(io::Error::other("bytes of the volume were lost"));
        }
        Ok(copy)
    }
}
