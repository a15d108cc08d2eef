//! The space that files take on their file system.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::{Error, Result};

/// Unit of `st_blocks`.
const STAT_BLOCK_BYTES: u64 = 512;

/// The space that files and directories take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Their blocks, in bytes.
    pub bytes: u64,
    /// How many they are.
    pub inodes: u64,
}

/// Counts all files and directories below `directory`. Files that appear or vanish meanwhile may or may not count.
pub fn below(directory: &Path) -> Result<Footprint> {
    let mut footprint = Footprint::default();
    let entries = match fs::read_dir(directory) {
        Err(failure) if failure.kind() == ErrorKind::NotFound => return Ok(footprint),
        entries => entries.map_err(Error::path("list", directory))?,
    };
    for entry in entries {
        let entry = entry.map_err(Error::path("list", directory))?;
        let metadata = match entry.metadata() {
            Err(failure) if failure.kind() == ErrorKind::NotFound => continue,
            metadata => metadata.map_err(Error::path("look at", &entry.path()))?,
        };
        footprint.bytes += metadata.blocks() * STAT_BLOCK_BYTES;
        footprint.inodes += 1;
        if metadata.is_dir() {
            let deeper = below(&entry.path())?;
            footprint.bytes += deeper.bytes;
            footprint.inodes += deeper.inodes;
        }
    }
    Ok(footprint)
}

/// Blocks of one file, in bytes; 0 if there is no such file.
pub(super) fn blocks_of(file: &Path) -> Result<u64> {
    match fs::metadata(file) {
        Err(failure) if failure.kind() == ErrorKind::NotFound => Ok(0),
        metadata => Ok(metadata.map_err(Error::path("look at", file))?.blocks() * STAT_BLOCK_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Footprint, below, blocks_of};
    use crate::error::Result;

    #[test]
    fn all_files_below_count_by_their_blocks() -> Result<()> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        assert_eq!(below(&path.join("nothing"))?, Footprint::default());
        fs::create_dir(path.join("deeper")).expect("a directory");
        fs::write(path.join("deeper/file"), [1; 5000]).expect("a file");
        let sparse = fs::File::create(path.join("sparse")).expect("a file");
        sparse.set_len(1 << 30).expect("a sparse file");
        let full = below(path)?;
        assert!((5000..1 << 20).contains(&full.bytes), "{full:?}");
        assert_eq!(full.inodes, 3);
        assert!(blocks_of(&path.join("deeper/file"))? >= 5000);
        assert_eq!(blocks_of(&path.join("nothing"))?, 0);
        Ok(())
    }
}
