//! Signals that ask for an orderly end, and two that don't.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// From now on neither they nor SIGUSR1 and SIGHUP end the process by themselves.
    ///
    /// # Errors
    /// Those of the system, where a signal can't be handled.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub(super) fn new() -> io::Result<Self> {
        // Who writes an access log listens to it. Where there is none, it is no reason to end.
        drop(signal(SignalKind::user_defined1())?);
        let mut hangup = signal(SignalKind::hangup())?;
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                tracing::warn!(
                    "SIGHUP: nothing was reloaded; the access log, if there is one, is opened anew. To change the configuration, restart the server"
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
