//! Why a server can't be started, or ended otherwise than it was asked to.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::config::Problem;
use crate::serve::TlsError;
use crate::units::counted;

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A configuration with mistakes.
    #[error("{}", in_a_list(.0))]
    Config(Vec<Problem>),
    /// The volume can't be opened or made.
    #[error(transparent)]
    Cache(#[from] eyewall::Error),
    /// An address can't be listened on.
    #[error("can't listen on {address}: {source}")]
    Listen {
        /// What the configuration names.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The server can't be administered where it was to be.
    #[error("can't be administered at {place}: {source}")]
    Admin {
        /// The path of a socket, or an address.
        place: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file that was to hold a token.
    #[error("can't use the token in {}: {source}; it is one word, such as `openssl rand -hex 32` writes", path.display())]
    TokenFile {
        /// What the configuration names.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A site's folder can't be served.
    #[error("can't serve the folder {}: {source}", path.display())]
    Root {
        /// What the configuration names.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No certificate of an `https` origin could be verified.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The access log can't be opened.
    #[error(
        "can't open the access log {}: {source}; name a file in a folder that is there, both for this user to write, or `-` \
         for standard output",
        path.display()
    )]
    AccessLog {
        /// What the configuration names.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system gave no thread, no runtime or no signal handler.
    #[error("can't start the server: {0}")]
    Start(#[source] io::Error),
}

fn in_a_list(problems: &[Problem]) -> String {
    let count = counted(problems.len() as u64, "thing is", "things are");
    let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
    format!("{count} wrong in the configuration\n\n{}", list.join("\n").trim_end())
}
