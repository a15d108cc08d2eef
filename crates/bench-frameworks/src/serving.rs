//! Shared by all servers: the folder, the address, the threads, and the line with the address.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use eyewall::Options;
use eyewall_files::FileCache;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::{Error, Result};

/// The settings of a server.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Serving {
    /// The folder of the files
    #[arg(long, value_name = "DIR")]
    pub(crate) root: PathBuf,
    /// The address to listen on; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Worker threads of the framework, besides its threads that wait for files
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_024))]
    workers: u16,
    /// The volume's file, for servers that have one; created if missing; without it the volume is in memory
    #[arg(long, value_name = "FILE")]
    volume: Option<PathBuf>,
    /// The size of a new volume in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    size: u64,
}

impl Serving {
    /// Refuses settings that can't work.
    pub(crate) fn check(&self) -> Result<()> {
        if self.root.is_dir() { Ok(()) } else { Err(Error::Root(self.root.clone())) }
    }

    /// The number of worker threads.
    pub(crate) fn workers(&self) -> usize {
        usize::from(self.workers)
    }

    /// The file cache of the volume, with default options.
    pub(crate) fn files(&self) -> Result<FileCache> {
        let options = Options::new().size(self.size);
        let volume = match &self.volume {
            Some(file) => options.open(file)?,
            None => options.anonymous()?,
        };
        Ok(FileCache::new(volume))
    }

    /// A Tokio runtime with so many threads.
    pub(crate) fn runtime(&self) -> Result<Runtime> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(self.workers()).enable_all().build().map_err(Error::io("a runtime"))
    }

    /// Listens, for servers that don't do so themselves.
    pub(crate) async fn bind(&self) -> Result<TcpListener> {
        TcpListener::bind(self.listen).await.map_err(self.refused())
    }

    /// Wraps a system error about the address.
    pub(crate) fn refused(&self) -> impl FnOnce(io::Error) -> Error + use<> {
        let address = self.listen;
        move |source| Error::Listen { address, source }
    }
}

/// Prints the first line, which the starting program waits for.
pub(crate) fn tell(name: &str, address: SocketAddr) -> Result<()> {
    let mut out = io::stdout();
    let told = writeln!(out, "{name} on http://{address}").and_then(|()| out.flush());
    told.map_err(Error::io("standard output"))
}

/// Waits for SIGTERM or SIGINT, for servers that don't do so themselves.
pub(crate) fn ending() -> Result<impl Future<Output = ()> + Send + use<>> {
    let mut terminated = signal(SignalKind::terminate()).map_err(Error::io("SIGTERM"))?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(Error::io("SIGINT"))?;
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    })
}
