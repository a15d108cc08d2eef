//! The readers of bytes that come from other machines, for fuzz targets. A program has no use for them.

use crate::serve;

/// Reads what another node may ask. A message that is understood means the same when it is written again.
///
/// # Panics
/// It means something else.
pub fn question(bytes: &[u8]) {
    serve::reread_question(bytes);
}

/// Reads what a second level may hold. A message that is understood means the same when it is written again.
///
/// # Panics
/// It means something else.
pub fn record(bytes: &[u8]) {
    serve::reread_record(bytes);
}
