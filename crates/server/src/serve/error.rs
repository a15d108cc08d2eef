//! Errors of starting and running a server.

use std::io;
use std::path::PathBuf;

use super::origin::TlsError;
use crate::config::Problem;
use crate::config::listen::ListenAddress;
use crate::sandbox::SandboxError;
use crate::units::counted;

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A configuration with mistakes.
    #[error("{}", in_a_list(.0))]
    Config(Vec<Problem>),
    /// The volume can't be opened or created.
    #[error(transparent)]
    Cache(#[from] eyewall::Error),
    /// The server can't listen on an address.
    #[error("can't listen on {address}: {source}")]
    Listen {
        /// The address of the configuration.
        address: ListenAddress,
        /// The system's error.
        source: io::Error,
    },
    /// The administration can't listen.
    #[error("can't open the administration at {place}: {source}")]
    Admin {
        /// The path of a socket, or an address.
        place: String,
        /// The system's error.
        source: io::Error,
    },
    /// The file of a token can't be used.
    #[error("can't use the token in {}: {source}; a token is one word, such as `openssl rand -hex 32` writes", path.display())]
    TokenFile {
        /// The path of the configuration.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file with the fields of requests to the collector of spans can't be used.
    #[error(
        "can't use the fields in {}: {source}; write one field a line, such as `Authorization: Bearer SECRET`",
        path.display()
    )]
    CollectorFields {
        /// The path of the configuration.
        path: PathBuf,
        /// The system's error, or what is wrong in the file.
        source: io::Error,
    },
    /// A site's folder can't be served.
    #[error("can't serve the folder {}: {source}", path.display())]
    Root {
        /// The path of the configuration.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No certificate of an `https` origin could be verified.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A certificate for clients can't be used.
    #[error(transparent)]
    Certificate(#[from] eyewall_tls::IdentityError),
    /// Certificates can't be got from an authority.
    #[error(transparent)]
    Acme(#[from] eyewall_tls::acme::AcmeError),
    /// The keys of session tickets can't be used.
    #[error(transparent)]
    Tickets(#[from] eyewall_tls::TicketError),
    /// A file or folder of TLS can't be used.
    #[error("can't use {}: {source}; give a place that this user may read and write", path.display())]
    State {
        /// The path of the configuration.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The store of the second level refuses its settings.
    #[error("[fleet.second_level] can't be used: {0}")]
    SecondLevel(String),
    /// A file for the fleet can't be used.
    #[error("can't read a file of [fleet]: {0}")]
    Fleet(#[source] io::Error),
    /// The listener for peers, or the fleet's key.
    #[error("can't {what}: {source}")]
    Peers {
        /// The failed step.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The TLS library refuses our settings.
    #[error("can't set up TLS: {0}")]
    Https(#[from] rustls::Error),
    /// The access log can't be opened.
    #[error(
        "can't open the access log {}: {source}; give a file that this user may write, in an existing folder, or `-` \
         for standard output",
        path.display()
    )]
    AccessLog {
        /// The path of the configuration.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The process can't close its sandbox.
    #[error("can't close the sandbox: {0}")]
    Sandbox(#[from] SandboxError),
    /// The sandbox of this process doesn't include a path of the configuration.
    #[error(
        "{} (`{setting}`) is outside of the sandbox, which was closed when the server started and can't be opened; restart the \
         server",
        path.display()
    )]
    Outside {
        /// The key of the path, with its tables.
        setting: &'static str,
        /// The path of the configuration.
        path: PathBuf,
    },
    /// A reload by a signal or by the administration, of a server that was started without
    /// [`Builder::reload_from`](crate::Builder::reload_from).
    #[error("this server was started by a program that gives it no configuration to reload; restart that program")]
    NoSource,
    /// The server ends, or another process has taken over, so it binds no addresses any more.
    #[error(
        "this server is ending, and takes no new configuration; the process after it reads the file when it starts"
    )]
    Draining,
    /// No other process could take over.
    #[error("no new process has taken over, and this one goes on as before: {0}")]
    Upgrade(String),
    /// A question that is no request.
    #[error("{0}")]
    Question(String),
    /// The system gave no thread, no runtime or no signal handler.
    #[error("can't start the server: {0}")]
    Start(#[source] io::Error),
}

fn in_a_list(problems: &[Problem]) -> String {
    let count = counted(problems.len() as u64, "mistake", "mistakes");
    let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
    format!("{count} in the configuration\n\n{}", list.join("\n").trim_end())
}
