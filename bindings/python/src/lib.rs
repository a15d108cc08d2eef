//! Eyewall for Python: the module `eyewall._eyewall`. The package `eyewall` in `python/eyewall` is built on it.
//!
//! Look-ups and small puts keep the interpreter's lock, since releasing it takes longer than they do. Calls that wait, or that
//! copy many bytes, release it.
//!
//! | file | what it holds |
//! |---|---|
//! | `handle.rs` | an open volume and the coding of its values |
//! | `cache.rs` | the methods of the class of a volume |
//! | `open.rs` | opening a volume |
//! | `arguments.rs` | keys, times and tags from Python |
//! | `value.rs` | Python values as bytes of the volume |
//! | `entry.rs`, `view.rs` | what a look-up finds: a copy, or a view of the held bytes |
//! | `claim.rs`, `fill.rs`, `writer.rs` | changes in several calls |
//! | `follower.rs` | reading a value while it is written |
//! | `turns.rs` | objects that one thread uses at a time |
//! | `walk.rs` | iteration over all entries |
//! | `errors.rs` | errors as exceptions |

#![deny(unsafe_op_in_unsafe_fn)]

mod arguments;
mod cache;
mod claim;
mod entry;
mod errors;
mod fill;
mod follower;
mod handle;

mod open;
mod turns;
mod value;
mod view;
mod walk;
mod writer;

use pyo3::prelude::*;

/// The base of the package. Users should only use the names that the package exports.
#[pymodule]
mod _eyewall {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::arguments::Epoch;
    #[pymodule_export]
    use crate::claim::Claim;
    #[pymodule_export]
    use crate::entry::Entry;
    #[pymodule_export]
    use crate::fill::Flight;
    #[pymodule_export]
    use crate::follower::Follower;
    #[pymodule_export]
    use crate::handle::Cache;
    #[pymodule_export]
    use crate::view::View;
    #[pymodule_export]
    use crate::walk::Walk;
    #[pymodule_export]
    use crate::writer::Writer;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
