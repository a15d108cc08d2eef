//! What the servers share: the folder, the address, the threads, and the line that says where they are.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use eyewall::Options;
use eyewall_files::FileCache;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::{Error, Result};

/// The folder to serve, and how.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Serving {
    /// The folder whose files are served
    #[arg(long, value_name = "DIR")]
    pub(crate) root: PathBuf,
    /// Where to listen; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Threads that do a framework's own work; what it has for waiting for files comes beside them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_024))]
    workers: u16,
    /// A file for the volume, of who has one, which is made where it isn't there; without it the volume is in memory
    #[arg(long, value_name = "FILE")]
    volume: Option<PathBuf>,
    /// Bytes of a volume that is made
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    size: u64,
}

impl Serving {
    /// Refuses what can't be served.
    pub(crate) fn check(&self) -> Result<()> {
        if self.root.is_dir() { Ok(()) } else { Err(Error::Root(self.root.clone())) }
    }

    /// Threads of a framework.
    pub(crate) fn workers(&self) -> usize {
        usize::from(self.workers)
    }

    /// The files of the volume, with nothing set.
    pub(crate) fn files(&self) -> Result<FileCache> {
        let options = Options::new().size(self.size);
        let volume = match &self.volume {
            Some(file) => options.open(file)?,
            None => options.anonymous()?,
        };
        Ok(FileCache::new(volume))
    }

    /// A runtime of tokio with that many.
    pub(crate) fn runtime(&self) -> Result<Runtime> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(self.workers()).enable_all().build().map_err(Error::io("a runtime"))
    }

    /// Listens; for servers that don't by themselves.
    pub(crate) async fn bind(&self) -> Result<TcpListener> {
        TcpListener::bind(self.listen).await.map_err(self.refused())
    }

    /// Wraps what the system says of the address.
    pub(crate) fn refused(&self) -> impl FnOnce(io::Error) -> Error + use<> {
        let address = self.listen;
        move |source| Error::Listen { address, source }
    }
}

/// Prints the first line: the process that started this one waits for it.
pub(crate) fn tell(name: &str, address: SocketAddr) -> Result<()> {
    let mut out = io::stdout();
    let told = writeln!(out, "{name} on http://{address}").and_then(|()| out.flush());
    told.map_err(Error::io("standard output"))
}

/// Waits for SIGTERM or SIGINT; for servers that don't by themselves.
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
