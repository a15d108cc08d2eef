//! The thread that writes the lines, and the file that it writes them to.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::mem;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::Signal;

use super::Queue;
use super::syslog::Syslog;
use crate::config::access_log::LogTarget;
use crate::serve::batching::Pace;

/// The longest time that a line waits for others.
const DELAY: Duration = Duration::from_secs(1);
/// Buffers above this size are freed after they were written.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// The destination of lines.
pub(super) enum Target {
    Stdout,
    File { path: PathBuf, file: File },
    Syslog(Box<Syslog>),
}

/// Lines that were not written.
#[derive(Default)]
struct Missing {
    /// Dropped, because they came faster than they could be written.
    dropped: u64,
    /// Refused by the system.
    refused: u64,
    /// Whether the last write failed.
    is_refusing: bool,
}

/// Writes lines until no more come.
pub(super) struct Writer {
    queue: Arc<Queue>,
    target: Target,
    missing: Missing,
    /// Whether the last write ended within a line.
    is_torn: bool,
    /// The buffer to exchange for the next batch.
    spare: Vec<u8>,
}

impl Target {
    /// Opens the file to append to it, or creates it.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn open(target: &LogTarget) -> io::Result<Self> {
        Ok(match target {
            LogTarget::Stdout => Self::Stdout,
            LogTarget::File(path) => Self::File { path: path.clone(), file: open(path)? },
            LogTarget::Syslog(place) => Self::Syslog(Box::new(Syslog::open(place)?)),
        })
    }

    /// Reopens the path. If that fails, the old file stays in use.
    fn reopen(&mut self) {
        let Self::File { path, file } = self else { return };
        match open(path) {
            Ok(new) => *file = new,
            Err(error) => tracing::warn!(
                path = %path.display(), %error,
                "the access log could not be reopened; writing to the old file"
            ),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout => io::stdout().write(bytes),
            Self::File { file, .. } => file.write(bytes),
            // It takes whole lines only.
            Self::Syslog(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout => io::stdout().flush(),
            Self::File { .. } | Self::Syslog(_) => Ok(()),
        }
    }
}

/// The log has personal data, so the administrator decides who may read it.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}

impl Writer {
    pub(super) fn new(queue: Arc<Queue>, target: Target) -> Self {
        Self { queue, target, missing: Missing::default(), is_torn: false, spare: Vec::new() }
    }

    /// Writes lines within [`DELAY`], and reopens the file at each of these signals. Ends with the queue.
    pub(super) async fn run(mut self, [mut usr1, mut hangup]: [Signal; 2]) {
        let mut pace = Pace::new(DELAY);
        loop {
            let is_signal = tokio::select! {
                () = pace.batch(&self.queue) => false,
                Some(()) = async { tokio::select! { got = usr1.recv() => got, got = hangup.recv() => got } } => true,
            };
            // Earlier lines belong to the rotated file.
            let is_last = self.write();
            if is_signal {
                self.target.reopen();
                pace.taken();
            }
            if is_last {
                break;
            }
        }
        self.missing.tell_at_the_end();
    }

    /// Writes the waiting lines; true if they were the last.
    fn write(&mut self) -> bool {
        let batch = self.queue.take(mem::take(&mut self.spare));
        if batch.dropped > 0 {
            self.missing.dropped += batch.dropped;
            tracing::warn!(lines = batch.dropped, "the access log is written too slowly: dropped lines");
        }
        if !batch.items.is_empty() {
            let (lost, result) = match &mut self.target {
                Target::Syslog(syslog) => syslog.send(&batch.items),
                Target::Stdout | Target::File { .. } => {
                    let (written, result) = self.write_lines(&batch.items);
                    (memchr::memchr_iter(b'\n', &batch.items[written..]).count() as u64, result)
                }
            };
            self.queue.lose(lost);
            self.missing.note(result, lost);
        }
        self.spare = batch.items;
        self.spare.clear();
        self.spare.shrink_to(KEPT_BYTES_MAX);
        batch.is_last
    }

    /// The number of written bytes, and the error if not all were written.
    fn write_lines(&mut self, lines: &[u8]) -> (usize, io::Result<()>) {
        let mut written = 0;
        let mut result = Ok(());
        while written < lines.len() {
            // The next line must not continue a torn one.
            let (bytes, is_line_end) = if self.is_torn { (&b"\n"[..], true) } else { (&lines[written..], false) };
            match self.target.write(bytes) {
                Ok(0) => result = Err(io::ErrorKind::WriteZero.into()),
                Ok(_) if is_line_end => self.is_torn = false,
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => result = Err(error),
            }
            if result.is_err() {
                break;
            }
        }
        self.is_torn = self.is_torn || written > 0 && lines[written - 1] != b'\n';
        (written, result.and_then(|()| self.target.flush()))
    }
}

impl Missing {
    /// Counts the lines that were not written, and logs when writing begins to fail and when it works again.
    fn note(&mut self, result: io::Result<()>, lost: u64) {
        self.refused += lost;
        match result {
            Err(error) if !self.is_refusing => {
                self.is_refusing = true;
                tracing::warn!(%error, "can't write the access log; serving goes on without it (logged once, until it works again)");
            }
            Ok(()) if self.is_refusing => {
                self.is_refusing = false;
                tracing::warn!(missing = self.refused, "the access log is written again");
            }
            Ok(()) | Err(_) => {}
        }
    }

    fn tell_at_the_end(&self) {
        let Self { dropped, refused, .. } = *self;
        if dropped + refused > 0 {
            tracing::warn!(missing = dropped + refused, dropped, refused, "the access log lacks lines");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::new_queue;
    use super::*;

    fn target(path: &Path) -> Target {
        Target::open(&LogTarget::File(path.to_owned())).unwrap()
    }

    fn pushed(queue: &Queue, line: &str) {
        queue.push(|bytes| bytes.extend_from_slice(line.as_bytes()));
    }

    #[test]
    fn a_reopened_log_goes_on_in_a_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, aside) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
        let queue = Arc::new(new_queue());
        let mut writer = Writer::new(Arc::clone(&queue), target(&path));
        pushed(&queue, "one\n");
        assert!(!writer.write());
        std::fs::rename(&path, &aside).unwrap();
        pushed(&queue, "two\n");
        assert!(!writer.write());
        writer.target.reopen();
        pushed(&queue, "three\n");
        queue.end();
        assert!(writer.write());
        assert_eq!(std::fs::read_to_string(&aside).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");
    }

    #[test]
    fn a_log_that_cannot_be_opened_again_goes_on_in_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("logs");
        std::fs::create_dir(&below).unwrap();
        let queue = Arc::new(new_queue());
        let mut writer = Writer::new(Arc::clone(&queue), target(&below.join("access.log")));
        let aside = folder.path().join("aside");
        std::fs::rename(&below, &aside).unwrap();
        writer.target.reopen();
        pushed(&queue, "one\n");
        writer.write();
        assert_eq!(std::fs::read_to_string(aside.join("access.log")).unwrap(), "one\n");
    }

    #[test]
    fn lines_that_are_refused_are_counted_and_the_next_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let queue = Arc::new(new_queue());
        let mut writer = Writer::new(Arc::clone(&queue), target(Path::new("/dev/full")));
        pushed(&queue, "one\ntwo\n");
        writer.write();
        assert!(writer.missing.is_refusing && writer.missing.refused == 2);
        // As if a part of a line had been written.
        writer.is_torn = true;
        writer.target = target(&path);
        pushed(&queue, "three\n");
        writer.write();
        assert!(!writer.missing.is_refusing && writer.missing.refused == 2);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "\nthree\n");
    }
}
