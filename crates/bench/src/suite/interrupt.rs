//! Ctrl-C: the run keeps its results, removes the files that it made, and stops the processes that it started.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::{Error, Result};

/// Whether the run has to end. A second signal ends it at once.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    wanted: Arc<AtomicBool>,
}

impl Interrupt {
    /// Handles SIGINT and SIGTERM from now on.
    pub fn listen() -> Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // This order matters: the first signal sets the flag, and the second one finds it set.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&interrupt.wanted))
                .and_then(|_| flag::register(signal, Arc::clone(&interrupt.wanted)))
                .map_err(Error::io("listen to signals"))?;
        }
        Ok(interrupt)
    }

    /// Ends the run as a signal does.
    pub fn raise(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Whether a signal came.
    pub fn is_wanted(&self) -> bool {
        // No other data depends on the flag.
        self.wanted.load(Ordering::Relaxed)
    }

    /// An error once a signal came.
    pub fn check(&self) -> Result<()> {
        if self.is_wanted() { Err(Error::Interrupted) } else { Ok(()) }
    }
}
