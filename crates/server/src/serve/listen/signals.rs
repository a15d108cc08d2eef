//! Signals that ask for a graceful end, for a reload or for an upgrade, and one that only the access log handles.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::serve::upgrade::Upgrader;

/// SIGINT and SIGTERM.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// From now on neither they nor SIGUSR1 and SIGHUP kill the process. SIGHUP reloads the configuration, and SIGUSR2
    /// starts a process that takes over.
    ///
    /// # Errors
    /// The system's, if a signal can't be handled.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub(super) fn new(upgrader: &Arc<Upgrader>) -> io::Result<Self> {
        // The writer of the access log handles it. Without a log, it must not kill the process.
        drop(signal(SignalKind::user_defined1())?);
        let (mut hangup, reloader) = (signal(SignalKind::hangup())?, Arc::clone(&upgrader.reloader));
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                // It logs how that ended.
                let _ = Arc::clone(&reloader).reload_from_source().await;
            }
        });
        let (mut asked, upgrader) = (signal(SignalKind::user_defined2())?, Arc::clone(upgrader));
        tokio::spawn(async move {
            while asked.recv().await.is_some() {
                // It logs how that ended.
                let _ = Arc::clone(&upgrader).upgrade().await;
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
