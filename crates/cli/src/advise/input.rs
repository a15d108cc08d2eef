//! The bytes of a log: from a file or from standard input, unpacked if they are gzip, in blocks of whole lines.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use memchr::{memchr, memrchr};

use super::progress::Progress;
use crate::Error;

/// Longer lines are skipped.
const BLOCK_BYTES: usize = 1 << 20;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Whole lines, in the order of the log.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) text: Vec<u8>,
    /// Lines before these that were skipped, because they don't fit into a block.
    pub(crate) overlong: u64,
}

/// The name of a log in messages.
pub(crate) fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() }
}

/// Bytes of the logs on the disk; pipes count 0.
pub(crate) fn bytes(paths: &[impl AsRef<Path>]) -> u64 {
    paths.iter().filter_map(|path| path.as_ref().metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// Reads a log to its end. `take` returns whether it wants more.
pub(crate) fn read(path: &Path, progress: &Progress, take: impl FnMut(Block) -> bool) -> Result<(), Error> {
    let failed = |source| Error::Log { from: name(path), source };
    let raw: Box<dyn Read> =
        if path.as_os_str() == "-" { Box::new(io::stdin()) } else { Box::new(File::open(path).map_err(failed)?) };
    let mut raw = Watched { raw, progress };
    let mut start = Vec::new();
    (&mut raw).take(GZIP_MAGIC.len() as u64).read_to_end(&mut start).map_err(failed)?;
    let is_gzip = start == GZIP_MAGIC;
    let whole = io::Read::chain(&start[..], raw);
    if is_gzip { blocks(MultiGzDecoder::new(whole), take) } else { blocks(whole, take) }.map_err(failed)
}

fn blocks(mut input: impl Read, mut take: impl FnMut(Block) -> bool) -> io::Result<()> {
    let mut overlong = 0;
    // The beginning of a line whose end has not come yet.
    let mut rest = Vec::new();
    let mut is_within_overlong = false;
    loop {
        let mut text = Vec::with_capacity(BLOCK_BYTES);
        text.append(&mut rest);
        let room = (BLOCK_BYTES - text.len()) as u64;
        let is_end = input.by_ref().take(room).read_to_end(&mut text)? < room as usize;
        if is_within_overlong {
            let end = memchr(b'\n', &text).map_or(text.len(), |at| at + 1);
            is_within_overlong = end == text.len() && text.last() != Some(&b'\n');
            text.drain(..end);
        }
        if !is_end && !is_within_overlong {
            let end = memrchr(b'\n', &text).map_or(0, |at| at + 1);
            rest = text.split_off(end);
            if rest.len() == BLOCK_BYTES {
                rest.clear();
                is_within_overlong = true;
                overlong += 1;
            }
        }
        let wants_more = take(Block { text, overlong: std::mem::take(&mut overlong) });
        if is_end || !wants_more {
            return Ok(());
        }
    }
}

/// A reader that reports its progress.
struct Watched<'a, R> {
    raw: R,
    progress: &'a Progress,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(bytes)?;
        self.progress.add(count as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use eyewall_access_log::lines;

    use super::*;

    /// The lengths of all lines that arrive, and how many were too long.
    fn read(text: &[u8]) -> (Vec<usize>, u64) {
        let (mut lengths, mut overlong) = (Vec::new(), 0);
        blocks(text, |block| {
            lengths.extend(lines(&block.text).map(<[u8]>::len));
            overlong += block.overlong;
            true
        })
        .unwrap();
        (lengths, overlong)
    }

    #[test]
    fn lines_arrive_whole_wherever_blocks_end() {
        let text: Vec<u8> =
            (0..5000).flat_map(|length| [vec![b'x'; length % 1500 + 1], vec![b'\n']].concat()).collect();
        assert!(text.len() > 3 * BLOCK_BYTES);
        let expected: Vec<usize> = (0..5000).map(|length| length % 1500 + 1).collect();
        assert_eq!(read(&text), (expected.clone(), 0));
        assert_eq!(read(&text[..text.len() - 1]), (expected, 0), "the last line needs no end");
    }

    #[test]
    fn a_line_that_fills_a_block_is_skipped_and_counted() {
        for length in [BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES, 3 * BLOCK_BYTES + 7] {
            let text = [b"first\n", &vec![b'x'; length][..], b"\nlast\n"].concat();
            assert_eq!(read(&text), (vec![5, 4], 1), "{length}");
        }
        assert_eq!(read(&vec![b'\n'; 3 * BLOCK_BYTES]), (vec![], 0));
        assert_eq!(read(b""), (vec![], 0));
    }
}
