//! The procedures. Each does one kind of work. The definition of a workload gives the sizes, the stores and the cases
//! (bench/workloads/README.md).

mod file_cache;
mod files_lookup;
mod flood;
mod gets;
mod modules;
mod opening;
mod overhead;
mod oversized;
mod processes;
mod purging;
mod puts;
mod replay;
mod single_flight;
mod sizes;
mod streaming_in;
mod sweep;
mod tags;
pub mod tasks;
mod traffic;
mod verification;

use crate::error::Result;
use crate::suite::cell::Cell;
use crate::suite::definition::Definition;
pub(crate) use files_lookup::OPENERS;

/// One kind of work.
pub trait Procedure: Sync {
    /// The parameters that it goes through with the stores open. Each combination of the others is a cell.
    fn within(&self) -> &'static [&'static str] {
        &[]
    }

    /// Why this machine can't do the work, and what to do about it.
    fn skip(&self, _definition: &Definition) -> Option<String> {
        None
    }

    /// Measures a cell.
    fn measure(&self, cell: &mut Cell<'_>) -> Result<()>;
}

/// The procedure of that name. Drivers may have others.
pub fn named(name: &str) -> Option<&'static dyn Procedure> {
    Some(match name {
        "file-cache" => &file_cache::FileCache,
        "file-pressure" => &file_cache::FilePressure,
        "files-lookup" => &files_lookup::FilesLookup,
        "flood" => &flood::Flood,
        "gets" => &gets::Gets,
        "gets-by-processes" => &processes::GetsByProcesses,
        "modules" => &modules::Modules,
        "misses" => &sweep::Misses,
        "overflow" => &sweep::Overflow,
        "opening" => &opening::Opening,
        "overhead" => &overhead::Overhead,
        "oversized" => &oversized::Oversized,
        "purging" => &purging::Purging,
        "puts" => &puts::Puts,
        "replay" => &replay::Replay,
        "single-flight" => &single_flight::SingleFlight,
        "sizes-of-values" => &sizes::SizesOfValues,
        "streaming-in" => &streaming_in::StreamingIn,
        "sweep" => &sweep::Sweep,
        "tags" => &tags::Tags,
        "traffic" => &traffic::Traffic,
        "verification" => &verification::Verification,
        _ => return None,
    })
}
