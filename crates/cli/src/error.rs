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
    /// The value is stale, and is not written.
    Stale = 4,
    /// The key has a negative entry.
    Negative = 5,
    /// `verify` or `scrub` found damage, or `doctor` a fault.
    Unsound = 6,
}

/// Exit code of a wrong command line or configuration.
const EXIT_USAGE: u8 = 2;
/// Exit code of every other failure: the volume is missing, foreign, damaged or busy, the value is too large for it, a
/// file can't be read, or the server can't listen on an address.
const EXIT_FAILED: u8 = 3;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither `--cache` nor `EYEWALL_CACHE` was given.
    #[error("no volume is given; give --cache PATH, or set EYEWALL_CACHE")]
    NoVolume,
    /// The permissions of the file, or of a folder above it, forbid reading.
    #[error("this user may not read {}; check the permissions of the file and of its folders", path.display())]
    Unreadable {
        /// What `--cache` named.
        path: PathBuf,
    },
    /// `create` never changes an existing file.
    #[error("{} exists already and was not changed; remove it first, or give another path", path.display())]
    Exists {
        /// What `--cache` named.
        path: PathBuf,
    },
    /// The options of `fleet agent` are wrong.
    #[error(transparent)]
    Agent(eyewall_fleet_agent::OptionsError),
    /// The system gives the agent no thread, runtime, signals or random number.
    #[error("can't start the agent: {0}")]
    AgentSystem(io::Error),
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
        "the value from {from} is too large; the limit of this volume for an entry is {}; \
         raise it by `eyewall resize --entry-bytes-max` (at most a quarter of the volume's size)",
        eyewall_server::units::size(*bytes_max)
    )]
    ValueTooLarge {
        /// The file, or "standard input".
        from: String,
        /// The volume's limit.
        bytes_max: u64,
    },
    /// The pattern of `ls` is not valid.
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
    /// No line of a log is in the format.
    #[error(
        "{from} is not an access log: none of the lines ({lines}) is NCSA common or combined, a JSON object with a target, or \
         `key size`; if the file has one of these formats, give it by --format"
    )]
    NoLog {
        /// The file, or "standard input".
        from: String,
        /// How many lines it has.
        lines: u64,
    },
    /// The log has lines, but no request that counts.
    #[error("no request to replay in {from}: none of the lines ({lines}) is a successful GET")]
    NothingCounts {
        /// The files, or "standard input".
        from: String,
        /// How many lines they have.
        lines: u64,
    },
    /// A size is so small that hardly a key of the sample would fit.
    #[error("{} is too small to estimate from a sample of this log; give a larger size, or --exact", eyewall_server::units::size(*size))]
    SampleTooSmall {
        /// What `--size` or `--now` named.
        size: u64,
    },
    /// The volumes for `--exact` don't fit into memory.
    #[error(
        "--exact needs {} of memory for these sizes, and {} are free; give a smaller --size, or leave --exact out",
        eyewall_server::units::size(*needed),
        eyewall_server::units::size(*available)
    )]
    Memory {
        /// Two volumes at a time.
        needed: u64,
        /// The free memory.
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
    /// The process can't wait for keys and signals.
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
    /// The file of the token can't be used.
    #[error("can't use the token in {}: {source}; a token is one word, such as `openssl rand -hex 32` writes", path.display())]
    TokenFile {
        /// What `--token-file` named.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No server listens, or it doesn't answer.
    #[error(
        "no answer from a server at {server}: {source}; check that `eyewall serve` runs there, with --admin or [server.admin] \
         in its configuration"
    )]
    NoServer {
        /// What `--server` named.
        server: String,
        /// What went wrong.
        source: io::Error,
    },
    /// The process that has started this one by an upgrade gives it no sockets.
    #[error("can't take over from the process before: {0}")]
    Inherit(#[source] io::Error),
    /// A running server refused the request.
    #[error("the server at {server} refused: {words}")]
    Refused {
        /// What `--server` named.
        server: String,
        /// The status of its answer.
        status: u16,
        /// Its words.
        words: String,
    },
    /// A configuration file with mistakes.
    #[error("{}", in_a_list(path, problems))]
    Config {
        /// The file.
        path: PathBuf,
        /// All mistakes, in the order of the file.
        problems: Vec<Problem>,
    },
    /// A command line of the server with mistakes.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n").trim_end())]
    Flags(Vec<Problem>),
    /// The server could not be started.
    #[error("{}", crate::words::of_server(.0))]
    Server(#[source] eyewall_server::Error),
}

fn in_a_list(path: &Path, problems: &[Problem]) -> String {
    let count = counted(problems.len() as u64, "mistake", "mistakes");
    let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
    format!("{count} in {}\n\n{}", path.display(), list.join("\n").trim_end())
}

fn value_advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => "; give the value as a file, or on standard input: printf VALUE | eyewall put KEY -",
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
    /// 2 if the command line or the configuration is wrong, else 3.
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
            | Self::Agent(_)
            | Self::Server(eyewall_server::Error::Question(_))
            | Self::Refused { status: 400 | 413 | 421 | 422, .. }
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

    /// Whether the reader closed standard output early, as `head` does, which is not an error.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(
            self,
            Self::Output(source) | Self::Cache(eyewall::Error::Export { source })
                if source.kind() == io::ErrorKind::BrokenPipe
        )
    }
}
