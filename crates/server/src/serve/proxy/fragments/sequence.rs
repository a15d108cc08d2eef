//! A body in fragments on its way to one client: each fragment is looked up when the client has taken what was before it.

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
use crate::serve::proxy::Proxy;
use crate::serve::proxy::inbound::{Inbound, Kept};

/// How often a byte is looked for before the body is cut off: it may be evicted between its coming and its reading.
const LOOKS_MAX: usize = 4;

/// What is left to send of a body.
pub(crate) struct Sequence(State);

enum State {
    Resting(Box<Left>),
    Looking(Looking),
    Over,
}

type Looking = Pin<Box<dyn Future<Output = (Box<Left>, Result<Option<Bytes>, Lack>)> + Send>>;

struct Left {
    /// It was looked for before the head was sent.
    first: Option<Bytes>,
    segments: VecDeque<Segment>,
    source: Source,
}

/// Where bytes come from.
struct Source {
    proxy: Arc<Proxy>,
    request: Arc<Kept>,
    object: Arc<Object>,
    reader: Option<Reader>,
}

impl Sequence {
    /// The body of these segments.
    pub(super) fn new(proxy: &Arc<Proxy>, inbound: Inbound<'_>, object: Arc<Object>, segments: Vec<Segment>) -> Self {
        let request = Arc::new(inbound.kept());
        let source = Source { proxy: Arc::clone(proxy), request, object, reader: None };
        Self(State::Resting(Box::new(Left { first: None, segments: segments.into(), source })))
    }

    /// Reads what this lead gets, wherever in it the first byte lies.
    pub(super) fn following(mut self, lead: &Lead) -> Self {
        if let State::Resting(left) = &mut self.0 {
            left.source.reader = left.position().and_then(|position| lead.reader(position));
        }
        self
    }

    /// Looks for the first byte. Only after that the head can be sent with a good conscience.
    pub(super) async fn begin(self) -> Result<Self, Lack> {
        let State::Resting(mut left) = self.0 else { return Ok(self) };
        left.first = left.next().await?;
        Ok(Self(State::Resting(left)))
    }

    /// The next bytes; `None` at the end.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
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

impl Left {
    /// The first byte of the object that is wanted.
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
                    // Nobody is to wait for one who wants nothing more.
                    self.source.reader = None;
                }
                Ok(Some(bytes))
            }
        }
    }
}

impl Source {
    /// The first bytes of a range: of those that come, else of those that are stored, else of those that are asked for.
    async fn bytes(&mut self, range: &Range<u64>) -> Result<Bytes, Lack> {
        let pages = Arc::clone(&self.proxy.pages);
        let object = Arc::clone(&self.object);
        let number = object.layout.fragment_of(range.start);
        for _ in 0..LOOKS_MAX {
            if let Some(bytes) = self.read(range).await? {
                return Ok(bytes);
            }
            // What comes is stored before it goes: who finds it not here any more finds it there.
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
                // It may have come between the look and the lead.
                Joined::Lead(_) if pages.has_fragment(&object, number) => {}
                Joined::Lead(lead) => {
                    self.reader = lead.reader(range.start);
                    let (proxy, request) = (Arc::clone(&self.proxy), Arc::clone(&self.request));
                    tokio::spawn(gather::fetch(proxy, request, Arc::clone(&object), lead));
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

/// The part of `bytes`, which begin at `start`, that lies in a range; it has its first byte.
fn cut(bytes: &Bytes, start: u64, range: &Range<u64>) -> Bytes {
    let from = (range.start - start) as usize;
    let to = bytes.len().min((range.end - start) as usize);
    bytes.slice(from..to)
}
