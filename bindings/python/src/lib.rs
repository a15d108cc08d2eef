//! Eyewall for Python: the module `eyewall._eyewall`, on which the package `eyewall` in `python/eyewall` stands.
//!
//! Look-ups and small puts keep the interpreter's lock, since they take less time than giving it back does; whatever waits or
//! moves many bytes releases it.
//!
//! | file | what it holds |
//! |---|---|
//! | `handle.rs` | an open volume and the coding of its values |
//! | `cache.rs` | what is asked of it: the methods of the class |
//! | `open.rs` | how a volume is opened |
//! | `arguments.rs` | keys, times and tags, as Python has them |
//! | `value.rs` | values of Python as bytes of the volume |
//! | `entry.rs`, `view.rs` | what is found: copied, and held where it lies |
//! | `claim.rs`, `fill.rs`, `writer.rs` | changes that take their time |
//! | `follower.rs` | what is read while somebody writes it |
//! | `turns.rs` | what one thread uses at a time |
//! | `walk.rs` | all entries, one after the other |
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

/// What the package stands on; nothing of it is for its users but by the names that the package gives.
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
