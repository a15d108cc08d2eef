//! Moving a cache: its entries as a stream of bytes that a volume on this or another machine reads.
//!
//! | file | what it holds |
//! |---|---|
//! | `stream.rs` | the format of the stream (docs/format.md) |
//! | `export.rs` | writing a volume's entries |
//! | `import.rs` | storing a stream's entries |

mod export;
mod import;
mod stream;

pub use export::Exported;
pub use import::{Broken, Import, ImportError, Imported};
