//! A worker: a thread with a runtime of its own, which serves the connections that it accepts.

use std::io;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::accept::{Served, accept};
use super::common::Common;
use super::sockets::Listener;
use crate::serve::stop::Stop;

/// The most threads for work that waits for storage.
const BLOCKING_THREADS_MAX: usize = 16;

/// Serves until it is asked to stop.
///
/// # Errors
/// The system's, if the runtime can't be created.
pub(super) fn run(
    listeners: Vec<Listener>,
    common: impl Fn() -> Common,
    mut stopping: watch::Receiver<Stop>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build()?;
    runtime.block_on(async {
        let common = Arc::new(common());
        // Each connection has a sender. The receiver ends when the last sender is dropped.
        let (alive, mut all_gone) = mpsc::channel::<()>(1);
        let mut accepting = JoinSet::new();
        for Listener { socket, is_tls } in listeners {
            let listener = TcpListener::from_std(socket)?;
            let (common, stopping, alive) = (Arc::clone(&common), stopping.clone(), alive.clone());
            let served = Served { common, stopping, alive, is_tls };
            accepting.spawn(accept(listener, served));
        }
        drop(alive);
        // They end once the server is asked to stop, and close their sockets.
        while accepting.join_next().await.is_some() {}
        tokio::select! {
            _ = all_gone.recv() => {}
            _ = stopping.wait_for(|stop| *stop == Stop::AtOnce) => {}
        }
        Ok(())
    })
}
