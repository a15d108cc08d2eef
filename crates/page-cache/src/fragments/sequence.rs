//! A body in fragments on its way to one client. Each fragment is looked up when the client has taken the one before.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use eyewall_http::ranges::Segment;

use super::run::{Joined, Lead, Next, Reader};
use super::{Lack, Object, gather};
use crate::cached_body::Draw;
use crate::upstream::Upstream;
use crate::visit::Visit;

/// How often a byte is looked up before the body is cut off. It may be evicted between its arrival and its reading.
const LOOKS_MAX: usize = 4;

/// The rest of a body that is to be sent.
pub(crate) struct Sequence<U>(State<U>);

enum State<U> {
    Resting(Box<Left<U>>),
    Looking(Looking<U>),
    Over,
}

type Looking<U> = Pin<Box<dyn Future<Output = (Box<Left<U>>, Result<Option<Bytes>, Lack>)> + Send>>;

struct Left<U> {
    /// Looked up before the head was sent.
    first: Option<Bytes>,
    segments: VecDeque<Segment>,
    source: Source<U>,
}

/// Where the bytes come from.
struct Source<U> {
    visit: Arc<Visit<U>>,
    object: Arc<Object>,
    reader: Option<Reader>,
}

impl<U: Upstream> Sequence<U> {
    /// The body with these segments.
    pub(super) fn new(visit: &Arc<Visit<U>>, object: Arc<Object>, segments: Vec<Segment>) -> Self {
        let source = Source { visit: Arc::clone(visit), object, reader: None };
        Self(State::Resting(Box::new(Left { first: None, segments: segments.into(), source })))
    }

    /// Reads what this lead gets, wherever in it the first byte lies.
    pub(super) fn following(mut self, lead: &Lead) -> Self {
        if let State::Resting(left) = &mut self.0 {
            left.source.reader = left.position().and_then(|position| lead.reader(position));
        }
        self
    }

    /// Looks up the first byte. Only then is it safe to send the head.
    pub(super) async fn begin(self) -> Result<Self, Lack> {
        let State::Resting(mut left) = self.0 else { return Ok(self) };
        left.first = left.next().await?;
        Ok(Self(State::Resting(left)))
    }
}

impl<U: Upstream> Draw for Sequence<U> {
    /// The next bytes; `None` at the end.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            match std::mem::replace(&mut self.0, State::Over) {
                State::Over => return Poll::Ready(None),
                State::Resting(mut left) => {
                    let looking = async move {
                        let next = left.next().await;
                        (left, next)
                    };
                    self.0 = State::Looking(Box::pin(looking));
                }
                State::Looking(mut looking) => {
                    let Poll::Ready((left, next)) = looking.as_mut().poll(context) else {
                        self.0 = State::Looking(looking);
                        return Poll::Pending;
                    };
                    return Poll::Ready(match next {
                        Ok(Some(bytes)) => {
                            self.0 = State::Resting(left);
                            Some(Ok(bytes))
                        }
                        Ok(None) => None,
                        Err(lack) => Some(Err(lack.into())),
                    });
                }
            }
        }
    }
}

impl<U: Upstream> Left<U> {
    /// The first byte of the object that the client wants.
    fn position(&self) -> Option<u64> {
        self.segments.iter().find_map(|segment| match segment {
            Segment::Bytes(range) => Some(range.start),
            Segment::Head(_) => None,
        })
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Lack> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        match self.segments.pop_front() {
            None => Ok(None),
            Some(Segment::Head(text)) => Ok(Some(text.into())),
            Some(Segment::Bytes(range)) => {
                let bytes = self.source.bytes(&range).await?;
                let at = range.start + bytes.len() as u64;
                if at < range.end {
                    self.segments.push_front(Segment::Bytes(at..range.end));
                } else {
                    // No run may wait for a reader that wants nothing more.
                    self.source.reader = None;
                }
                Ok(Some(bytes))
            }
        }
    }
}

impl<U: Upstream> Source<U> {
    /// The first bytes of a range: those that arrive, else those that are stored, else those that the origin is asked for.
    async fn bytes(&mut self, range: &Range<u64>) -> Result<Bytes, Lack> {
        let pages = Arc::clone(&self.visit.pages);
        let object = Arc::clone(&self.object);
        let number = object.layout.fragment_of(range.start);
        for _ in 0..LOOKS_MAX {
            if let Some(bytes) = self.read(range).await? {
                return Ok(bytes);
            }
            // Bytes are stored before the run drops them. So they are in one of the two places.
            self.reader = pages.runs.follow(&object.prefix, range.start);
            if self.reader.is_some() {
                continue;
            }
            if let Some(fragment) = pages.fragment(&object, number).await {
                return Ok(cut(&fragment, object.layout.bytes_of(number).start, range));
            }
            if object.if_range.is_none() {
                return Err(Lack::Unaskable);
            }
            let reach = pages.missing(&object, range.start, range);
            match pages.runs.join(&object.prefix, range.start, reach) {
                Joined::Follow(reader) => self.reader = Some(reader),
                // The fragment may have arrived between the look-up and the lead.
                Joined::Lead(_) if pages.has_fragment(&object, number) => {}
                Joined::Lead(lead) => {
                    self.reader = lead.reader(range.start);
                    tokio::spawn(gather::fetch(Arc::clone(&self.visit), Arc::clone(&object), lead));
                }
            }
        }
        Err(Lack::Broken(io::ErrorKind::Other, "bytes are evicted faster than they are read".to_owned()))
    }

    async fn read(&mut self, range: &Range<u64>) -> Result<Option<Bytes>, Lack> {
        let Some(reader) = self.reader.as_mut().filter(|reader| reader.is_at(range.start)) else { return Ok(None) };
        match reader.next().await {
            Next::Piece(bytes) => Ok(Some(cut(&bytes, range.start, range))),
            Next::Elsewhere => Ok(None),
            Next::Lack(lack) => Err(lack),
        }
    }
}

/// The part of `bytes` that lies in a range. `bytes` begin at `start`, and have the first byte of the range.
fn cut(bytes: &Bytes, start: u64, range: &Range<u64>) -> Bytes {
    let from = (range.start - start) as usize;
    let to = bytes.len().min((range.end - start) as usize);
    bytes.slice(from..to)
}
