//! Moving a cache: its entries as a stream of bytes that another volume takes, on this machine or another.
//!
//! | file | what it holds |
//! |---|---|
//! | `stream.rs` | the form of the stream (docs/format.md) |
//! | `export.rs` | a volume's entries, written |
//! | `import.rs` | a stream's entries, stored |

mod export;
mod import;
mod stream;

pub use export::Exported;
pub use import::{Broken, Import, ImportError, Imported};
