//! Objects that one thread at a time uses without the interpreter's lock.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::ended;

/// A writer or a follower, until its end. This lock is held only briefly, and never while the interpreter's lock
/// is released.
pub(crate) struct InTurns<T> {
    /// Its name in messages.
    what: &'static str,
    state: Mutex<State<T>>,
}

enum State<T> {
    Here(T),
    /// A thread is using it.
    Away,
    Ended,
}

impl<T: Send> InTurns<T> {
    pub(crate) fn new(what: &'static str, used: T) -> Self {
        Self { what, state: Mutex::new(State::Here(used)) }
    }

    fn exchange(&self, state: State<T>) -> State<T> {
        std::mem::replace(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner), state)
    }

    /// Takes it out for one thread's use.
    fn take(&self) -> PyResult<Option<T>> {
        match self.exchange(State::Away) {
            State::Here(used) => Ok(Some(used)),
            State::Away => {
                let words = format!("another thread uses the {}; use it from one at a time", self.what);
                Err(PyRuntimeError::new_err(words))
            }
            State::Ended => {
                self.exchange(State::Ended);
                Ok(None)
            }
        }
    }

    /// Runs `work` on it without the interpreter's lock.
    pub(crate) fn using<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> R + Send) -> PyResult<R> {
        let mut used = self.take()?.ok_or_else(|| ended(py, self.what))?;
        let (used, result) = py.detach(move || {
            let result = work(&mut used);
            (used, result)
        });
        self.exchange(State::Here(used));
        Ok(result)
    }

    /// Ends it and returns it; `None` if it had ended before.
    pub(crate) fn end(&self) -> PyResult<Option<T>> {
        let used = self.take()?;
        self.exchange(State::Ended);
        Ok(used)
    }

    /// Ends it and returns it; an error if it had ended before.
    pub(crate) fn last(&self, py: Python<'_>) -> PyResult<T> {
        self.end()?.ok_or_else(|| ended(py, self.what))
    }
}
