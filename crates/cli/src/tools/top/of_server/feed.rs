//! The samples of a running server. A thread of its own receives them.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use super::view::Sample;
use crate::Error;
use crate::args::{ServerPlace, Top};
use crate::tools::administration;

/// How often the server is asked again after its stream has ended: another process may take over, or it may start again.
const TRIES: usize = 30;
const BETWEEN_TRIES: Duration = Duration::from_secs(1);

/// News of the server.
pub(super) enum News {
    Sample(Box<Sample>),
    /// The stream has ended; the server may come back.
    Gone,
    /// Nothing more comes.
    Ended(Result<(), Error>),
}

/// The samples, as they come.
pub(super) struct Feed(Receiver<News>);

impl Feed {
    /// `wakes` is called for each piece of news.
    pub(super) fn start(server: &ServerPlace, top: &Top, wakes: impl Fn() + Send + 'static) -> Result<Self, Error> {
        let (sender, news) = mpsc::channel();
        let (server, token_file) = (server.clone(), top.token_file.clone());
        let told = move |news| {
            let is_wanted = sender.send(news).is_ok();
            wakes();
            if is_wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        thread::Builder::new().spawn(move || receive(&server, token_file.as_ref(), told)).map_err(Error::Watch)?;
        Ok(Self(news))
    }

    /// Waits for the next sample. `None`: the server has ended.
    pub(super) fn next(&self) -> Result<Option<Sample>, Error> {
        loop {
            match self.0.recv() {
                Ok(News::Sample(sample)) => return Ok(Some(*sample)),
                Ok(News::Gone) => {}
                Ok(News::Ended(ended)) => return ended.map(|()| None),
                Err(_) => return Ok(None),
            }
        }
    }

    pub(super) fn try_next(&self) -> Option<News> {
        self.0.try_recv().ok()
    }
}

fn receive(server: &ServerPlace, token_file: Option<&PathBuf>, told: impl Fn(News) -> ControlFlow<()>) {
    let mut tries = 0;
    loop {
        let mut has_come = false;
        let followed = follow(server, token_file, |sample| {
            has_come = true;
            told(News::Sample(Box::new(sample)))
        });
        tries = if has_come { 1 } else { tries + 1 };
        // The first try tells why nothing comes.
        let is_over = !has_come && (tries == 1 || tries > TRIES);
        if is_over || told(News::Gone).is_break() {
            let _ = told(News::Ended(followed));
            return;
        }
        thread::sleep(BETWEEN_TRIES);
    }
}

/// Gives each sample of a stream of events to `take`.
fn follow(
    server: &ServerPlace,
    token_file: Option<&PathBuf>,
    mut take: impl FnMut(Sample) -> ControlFlow<()>,
) -> Result<(), Error> {
    let mut is_sample = false;
    administration::follow(server, token_file.map(PathBuf::as_path), "/dashboard/events", |line| {
        if let Some(name) = line.strip_prefix(b"event: ") {
            is_sample = name == b"sample";
        }
        match line.strip_prefix(b"data: ").filter(|_| is_sample).map(serde_json::from_slice) {
            None => Ok(ControlFlow::Continue(())),
            Some(Ok(sample)) => Ok(take(sample)),
            Some(Err(source)) => {
                let server = server.to_string();
                Err(Error::NoServer { server, source: std::io::Error::from(source) })
            }
        }
    })
}
