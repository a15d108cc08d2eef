//! Signals that ask for a graceful end, and two that don't.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// From now on neither they nor SIGUSR1 and SIGHUP kill the process.
    ///
    /// # Errors
    /// The system's, if a signal can't be handled.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub(super) fn new() -> io::Result<Self> {
        // The writer of the access log handles it. Without a log, it must not kill the process.
        drop(signal(SignalKind::user_defined1())?);
        let mut hangup = signal(SignalKind::hangup())?;
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                tracing::warn!(
                    "SIGHUP: nothing was reloaded; the access log, if there is one, is reopened. To change the configuration, restart the server"
                );
            }
        });
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
