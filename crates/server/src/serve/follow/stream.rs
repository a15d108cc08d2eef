//! The lines of a follower, as the body of its response.

use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Frame;

use super::{Filter, Followers};

/// If this many bytes wait, lines are dropped: the follower is too slow.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One JSON object per line.
    Lines,
    /// Server-sent events, as browsers read them.
    Events,
}

/// The lines that wait for one follower.
pub(super) struct Queue {
    pub(super) filter: Filter,
    form: Form,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    dropped: u64,
    has_ended: bool,
    waker: Option<Waker>,
}

/// The body of a follower's response. Dropping it ends the following.
pub(crate) struct Following {
    queue: Arc<Queue>,
    followers: Arc<Followers>,
}

impl Queue {
    pub(super) fn new(filter: Filter, form: Form) -> Self {
        Self { filter, form, waiting: Mutex::default() }
    }

    /// Adds a line, or drops and counts it if too many wait.
    pub(super) fn push(&self, line: &[u8]) {
        let mut waiting = self.lock();
        if waiting.bytes.len() + line.len() > WAITING_BYTES_MAX {
            waiting.dropped += 1;
            return;
        }
        if waiting.dropped > 0 {
            let dropped = mem::take(&mut waiting.dropped);
            self.write(&mut waiting.bytes, &dropped_line(dropped));
        }
        self.write(&mut waiting.bytes, line);
        waiting.wake();
    }

    pub(super) fn end(&self) {
        let mut waiting = self.lock();
        waiting.has_ended = true;
        waiting.wake();
    }

    fn write(&self, bytes: &mut Vec<u8>, line: &[u8]) {
        let (before, after): (&[u8], &[u8]) = match self.form {
            Form::Lines => (b"", b"\n"),
            Form::Events => (b"data: ", b"\n\n"),
        };
        for piece in [before, line, after] {
            bytes.extend_from_slice(piece);
        }
    }

    /// The lines that wait; `None` after the last ones.
    fn poll_take(&self, context: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut waiting = self.lock();
        let mut bytes = mem::take(&mut waiting.bytes);
        let dropped = mem::take(&mut waiting.dropped);
        if dropped > 0 {
            self.write(&mut bytes, &dropped_line(dropped));
        }
        match bytes {
            bytes if !bytes.is_empty() => Poll::Ready(Some(bytes.into())),
            _ if waiting.has_ended => Poll::Ready(None),
            _ => {
                waiting.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // At worst, the thread that panicked has left half a line.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The line in place of those that were dropped.
fn dropped_line(lines: u64) -> Vec<u8> {
    format!("{{\"dropped\":{lines}}}").into_bytes()
}

impl Following {
    pub(super) fn new(queue: Arc<Queue>, followers: Arc<Followers>) -> Self {
        Self { queue, followers }
    }
}

impl http_body::Body for Following {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.queue.poll_take(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.followers.leave(&self.queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(queue: &Queue) -> Poll<Option<String>> {
        let context = Context::from_waker(Waker::noop());
        queue.poll_take(&context).map(|bytes| bytes.map(|bytes| String::from_utf8(bytes.into()).unwrap()))
    }

    #[test]
    fn lines_without_room_are_dropped_and_the_follower_is_told() {
        let queue = Queue::new(Filter::default(), Form::Lines);
        let line = vec![b'x'; (1 << 10) - 1];
        for _ in 0..WAITING_BYTES_MAX / 1024 + 3 {
            queue.push(&line);
        }
        let Poll::Ready(Some(lines)) = taken(&queue) else { panic!("lines wait") };
        assert!(lines.ends_with("x\n{\"dropped\":3}\n") && lines.len() < WAITING_BYTES_MAX + 100);
        queue.push(b"again");
        queue.end();
        assert_eq!(taken(&queue), Poll::Ready(Some("again\n".to_owned())));
        assert_eq!(taken(&queue), Poll::Ready(None));
    }

    #[test]
    fn events_are_those_of_a_browser() {
        let queue = Queue::new(Filter::default(), Form::Events);
        assert_eq!(taken(&queue), Poll::Pending);
        queue.push(b"{}");
        assert_eq!(taken(&queue), Poll::Ready(Some("data: {}\n\n".to_owned())));
    }

    #[test]
    fn followers_are_limited_leave_and_end() {
        let followers = Arc::new(Followers::default());
        let follow = || followers.follow(Filter::default(), Form::Lines);
        let mut all: Vec<_> = std::iter::from_fn(follow).collect();
        assert_eq!(all.len(), super::super::FOLLOWERS_MAX);
        all.truncate(1);
        assert!(followers.are_there());
        followers.end();
        let late = follow().unwrap();
        assert_eq!((taken(&all[0].queue), taken(&late.queue)), (Poll::Ready(None), Poll::Ready(None)));
        drop((all, late));
        assert!(!followers.are_there());
    }
}
