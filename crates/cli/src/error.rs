//! How a command ends: its outcome, or an error that says what to do.

use std::io;
use std::path::{Path, PathBuf};

use eyewall_server::config::Problem;
use eyewall_server::units::counted;

/// What a command found; the number is the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// Done: stored, listed, removed, or a hit.
    Done = 0,
    /// The key is not in the volume. No error: nothing is written about it.
    Absent = 1,
    /// There is a value, but a stale one. Nothing is written of it.
    Stale = 4,
    /// A negative entry says that there is nothing.
    Negative = 5,
    /// What was verified is not sound, or something was dropped by a scrub.
    Unsound = 6,
}

/// Exit code of a command line that asks for something that can't be.
const EXIT_USAGE: u8 = 2;
/// Exit code of everything that could not be done: the volume is missing, foreign, damaged or busy, the value is too
/// large for it, a file can't be read, an address can't be listened on.
const EXIT_FAILED: u8 = 3;

/// Why a command could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither `--cache` nor `EYEWALL_CACHE` was given.
    #[error("no volume is named; give --cache PATH, or set EYEWALL_CACHE")]
    NoVolume,
    /// The rights of the file, or of a folder above it, forbid even a look.
    #[error("{} may not be read by this user", path.display())]
    Unreadable {
        /// What `--cache` named.
        path: PathBuf,
    },
    /// `create` never touches what is there.
    #[error("{} exists already and was left as it is; remove it first, or name another path", path.display())]
    Exists {
        /// What `--cache` named.
        path: PathBuf,
    },
    /// The engine refused.
    #[error("{}", crate::words::in_words(.0))]
    Cache(#[from] eyewall::Error),
    /// The value of a `put` could not be read.
    #[error("can't read the value from {from}: {source}{}", value_advice(source))]
    Source {
        /// The file, or "standard input".
        from: String,
        /// What the system said.
        source: io::Error,
    },
    /// The value of a `put` is larger than any entry of the volume may be.
    #[error(
        "the value from {from} is larger than an entry of this volume may be ({}); \
         make a volume with a larger --entry-bytes-max (at most a quarter of its size)",
        eyewall_server::units::size(*bytes_max)
    )]
    ValueTooLarge {
        /// The file, or "standard input".
        from: String,
        /// The volume's limit.
        bytes_max: u64,
    },
    /// The pattern of `ls` is none.
    #[error("{0}")]
    Pattern(String),
    /// A log could not be read.
    #[error("can't read the log from {from}: {source}")]
    Log {
        /// The file, or "standard input".
        from: String,
        /// What the system said, or the decompressor.
        source: io::Error,
    },
    /// No line of a log is of the format.
    #[error(
        "{from} is no access log: none of its {lines} lines is NCSA common or combined, a JSON object with a target, or \
         `key size`; if it is one of these all the same, name it by --format"
    )]
    NoLog {
        /// The file, or "standard input".
        from: String,
        /// How many lines it has.
        lines: u64,
    },
    /// There are lines, but not one that counts.
    #[error("no request to replay in {from}: of {lines} lines none is a successful GET")]
    NothingCounts {
        /// The files, or "standard input".
        from: String,
        /// How many lines they have.
        lines: u64,
    },
    /// A size is so small that hardly a key of the sample would find room.
    #[error("a sample of this log can't tell about {}; give a larger size, or --exact", eyewall_server::units::size(*size))]
    SampleTooSmall {
        /// What `--size` or `--now` named.
        size: u64,
    },
    /// Volumes for `--exact` don't fit into memory.
    #[error(
        "--exact needs {} of memory for these sizes, and {} are free; give a smaller --size, or leave --exact out",
        eyewall_server::units::size(*needed),
        eyewall_server::units::size(*available)
    )]
    Memory {
        /// Two volumes at a time.
        needed: u64,
        /// What there is.
        available: u64,
    },
    /// A file could not be written.
    #[error("can't write {}: {source}", path.display())]
    File {
        /// What the command line named.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Standard output could not be written.
    #[error("can't write the output: {0}")]
    Output(#[source] io::Error),
    /// Keys and signals could not be waited for.
    #[error("can't wait for keys and signals: {0}")]
    Watch(#[source] io::Error),
    /// A stream could not be opened to import it.
    #[error("can't read the stream from {from}: {source}")]
    Stream {
        /// The file.
        from: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file that was to hold a token.
    #[error("can't use the token in {}: {source}; it is one word, such as `openssl rand -hex 32` writes", path.display())]
    TokenFile {
        /// What `--token-file` named.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Nobody to ask, or no answer.
    #[error(
        "no answer from a server at {server}: {source}; is `eyewall serve` running there, with --admin or [server.admin] \
         in its configuration?"
    )]
    NoServer {
        /// What `--server` named.
        server: String,
        /// What went wrong.
        source: io::Error,
    },
    /// A running server didn't do what it was asked for.
    #[error("the server at {server} refused: {words}")]
    Refused {
        /// What `--server` named.
        server: String,
        /// The status of its answer.
        status: u16,
        /// Its words.
        words: String,
    },
    /// A configuration in which something is wrong.
    #[error("{}", in_a_list(path, problems))]
    Config {
        /// The file.
        path: PathBuf,
        /// All that is wrong, in the order of the file.
        problems: Vec<Problem>,
    },
    /// A command line of the server that asks for what can't be.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n").trim_end())]
    Flags(Vec<Problem>),
    /// The server could not be started.
    #[error("{}", crate::words::of_server(.0))]
    Server(#[source] eyewall_server::Error),
}

fn in_a_list(path: &Path, problems: &[Problem]) -> String {
    let count = counted(problems.len() as u64, "thing is", "things are");
    let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
    format!("{count} wrong in {}\n\n{}", path.display(), list.join("\n").trim_end())
}

fn value_advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => {
            "; the value is given as a file, or on standard input: printf VALUE | eyewall put KEY -"
        }
        _ => "",
    }
}

impl From<eyewall_server::Error> for Error {
    fn from(error: eyewall_server::Error) -> Self {
        match error {
            eyewall_server::Error::Cache(error) => Self::Cache(error),
            other => Self::Server(other),
        }
    }
}

impl Error {
    /// 2 if the command line asked for something that can't be, else 3.
    pub fn exit_code(&self) -> u8 {
        use eyewall::Error as Engine;
        match self {
            Self::NoVolume
            | Self::Pattern(_)
            | Self::NoLog { .. }
            | Self::NothingCounts { .. }
            | Self::SampleTooSmall { .. }
            | Self::Memory { .. }
            | Self::Config { .. }
            | Self::Flags(_)
            | Self::Refused { status: 400 | 413 | 421, .. }
            | Self::Cache(
                Engine::KeyEmpty
                | Engine::KeyTooLong { .. }
                | Engine::MetadataTooLong { .. }
                | Engine::TooManyTags { .. }
                | Engine::TagLength { .. }
                | Engine::SizeTooSmall { .. }
                | Engine::SizeTooLarge { .. }
                | Engine::EntryMaxOutOfRange { .. },
            ) => EXIT_USAGE,
            _ => EXIT_FAILED,
        }
    }

    /// Whether the reader of standard output went away, as `head` does: that is its right, and no error.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(
            self,
            Self::Output(source) | Self::Cache(eyewall::Error::Export { source })
                if source.kind() == io::ErrorKind::BrokenPipe
        )
    }
}
