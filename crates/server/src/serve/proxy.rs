//! `--origin`: another server's responses, answered from the volume.
//!
//! ```text
//! request ── bypass? ──yes──> origin, past the volume
//!    │ no
//! find ──hit──> the pinned value
//!    │ miss
//! join the flight of the key ──somebody fetches already──> wait, find again
//!    │ first
//! fetch ── may it be stored? ──no──> pass on, and remember not to wait for this key
//!    │ yes
//! fill: to the client and into the volume
//! ```

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use http::header::{ACCEPT_ENCODING, AGE, CONTENT_LENGTH, DATE, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Version};
use hyper::body::Incoming;

use super::body::Body;
use super::cache_status::{CACHE_STATUS, Handled};
use super::coding::Coding;
use super::fill::{Fill, relay};
use super::flight::{Flight, Flights, Ticket};
use super::head::{Head, Kind};
use super::origin::{Fault, Origins};
use super::passes::Passes;
use super::policy::{self, Freshness, Verdict};
use super::store::{Found, Store};
use super::{conditional, fields, reply};

/// An origin with a volume in front of it.
pub(crate) struct Proxy {
    origins: Origins,
    store: Arc<Store>,
    flights: Arc<Flights>,
    passes: Passes,
}

/// Where a response is looked for.
struct Keys {
    /// The address, as the origin knows it.
    plain: Vec<u8>,
    /// The address and the client's class of codings: the key of a response that varies by it.
    by_coding: Vec<u8>,
    coding: Coding,
}

/// What the volume has for a request.
enum Look {
    Found(Found),
    /// The response varies, and there is none for this client's class.
    Signpost,
    Nothing,
}

impl Look {
    fn is_signpost(&self) -> bool {
        matches!(self, Self::Signpost)
    }

    fn found(self) -> Option<Found> {
        match self {
            Self::Found(found) => Some(found),
            Self::Signpost | Self::Nothing => None,
        }
    }
}

/// What a miss leads to.
enum Turn {
    Fetch(Option<Ticket>),
    Found(Found),
}

impl Proxy {
    pub(crate) fn new(origins: Origins, store: Store) -> Self {
        Self { origins, store: Arc::new(store), flights: Arc::default(), passes: Passes::new() }
    }

    pub(crate) fn origins(&self) -> &Origins {
        &self.origins
    }

    pub(crate) async fn answer(&self, request: &Parts) -> Response<Body> {
        if let Some(why) = policy::bypass(&request.headers) {
            return self.pass(request, |status| Handled::Bypassed(status, why)).await;
        }
        let keys = self.keys(request);
        let look = match self.find(&keys) {
            Look::Found(found) => return hit(request, found),
            other => other,
        };
        if self.store.has_failed() {
            return self.pass(request, |status| Handled::Passed(status, "volume-failed")).await;
        }
        if request.method == Method::HEAD {
            return self.pass(request, |status| Handled::Passed(status, "head")).await;
        }
        match self.turn(&keys, look).await {
            Turn::Found(found) => hit(request, found),
            Turn::Fetch(ticket) => self.fetch(request, keys, ticket).await,
        }
    }

    fn keys(&self, request: &Parts) -> Keys {
        let target = request.uri.path_and_query().map_or("/", |target| target.as_str());
        let plain = format!("{}{target}", self.origins.key()).into_bytes();
        let coding = Coding::of(&request.headers);
        let by_coding = [plain.as_slice(), coding.key_suffix()].concat();
        Keys { plain, by_coding, coding }
    }

    fn find(&self, keys: &Keys) -> Look {
        self.look(keys, Store::find)
    }

    /// Once more for a request whose miss was counted: this look counts if it finds something.
    fn find_again(&self, keys: &Keys) -> Look {
        match self.look(keys, Store::peek) {
            Look::Found(_) => self.find(keys),
            other => other,
        }
    }

    fn look(&self, keys: &Keys, find: fn(&Store, &[u8]) -> Option<Found>) -> Look {
        let Some(found) = find(&self.store, &keys.plain) else { return Look::Nothing };
        match found.head.kind {
            Kind::Response => Look::Found(found),
            Kind::File(_) => Look::Nothing,
            Kind::Signpost => match find(&self.store, &keys.by_coding) {
                Some(found) if found.head.kind == Kind::Response => Look::Found(found),
                _ => Look::Signpost,
            },
        }
    }

    /// Waits while somebody else fetches the same, but no longer each time than for the origin itself: at first for any
    /// response of the address, then, if it turns out to vary, for one of this client's class.
    async fn turn(&self, keys: &Keys, mut look: Look) -> Turn {
        if self.passes.contains(&keys.plain) {
            return Turn::Fetch(None);
        }
        for _ in 0..2 {
            let waiting = match self.flights.join(if look.is_signpost() { &keys.by_coding } else { &keys.plain }) {
                Flight::Lead(ticket) => {
                    // Another flight may have landed between the look and the ticket.
                    return self.find_again(keys).found().map_or(Turn::Fetch(Some(ticket)), Turn::Found);
                }
                Flight::Follow(waiting) => waiting,
            };
            // Too late is no error: this request then fetches for itself.
            let _ = tokio::time::timeout(self.origins.timeouts().head, waiting.landing()).await;
            look = self.find_again(keys);
            if !look.is_signpost() {
                break;
            }
        }
        look.found().map_or(Turn::Fetch(None), Turn::Found)
    }

    /// Past the volume, with the client's own conditions.
    async fn pass(&self, request: &Parts, handled: impl Fn(Option<StatusCode>) -> Handled) -> Response<Body> {
        let fields = fields::of_forwarded_request(&request.headers, request.version);
        match self.origins.fetch(request.method.clone(), &request.uri, fields).await {
            Ok(response) => {
                let (mut head, incoming) = response.into_parts();
                let status = head.status;
                let is_head = request.method == Method::HEAD;
                let timeout = self.origins.timeouts().piece;
                let body = if is_head { Body::empty() } else { relay(incoming, timeout) };
                prepare(&mut head.headers);
                finish(&mut head.headers, head.version, handled(Some(status)));
                reply::response(status, head.headers, body)
            }
            Err(fault) => failed(&fault),
        }
    }

    /// Asks for the whole response, whatever the client has already, since others may have nothing.
    async fn fetch(&self, request: &Parts, keys: Keys, ticket: Option<Ticket>) -> Response<Body> {
        let mut asked = fields::of_forwarded_request(&request.headers, request.version);
        asked.remove(IF_NONE_MATCH);
        asked.remove(IF_MODIFIED_SINCE);
        asked.insert(ACCEPT_ENCODING, keys.coding.accept_encoding());
        let started = Instant::now();
        match self.origins.fetch(Method::GET, &request.uri, asked).await {
            Ok(response) => self.receive(request, keys, ticket, response, started),
            Err(fault) => failed(&fault),
        }
    }

    fn receive(
        &self,
        request: &Parts,
        keys: Keys,
        ticket: Option<Ticket>,
        response: Response<Incoming>,
        started: Instant,
    ) -> Response<Body> {
        let (mut head, incoming) = response.into_parts();
        prepare(&mut head.headers);
        let timeout = self.origins.timeouts().piece;
        let (body, handled) = match self.judge(request, &head, started) {
            Verdict::Pass(why) => {
                // An origin in trouble is helped by waiting, and will be storable again.
                if !head.status.is_server_error() {
                    self.passes.insert(&keys.plain);
                }
                (relay(incoming, timeout), Handled::Passed(Some(head.status), why))
            }
            Verdict::Store(freshness) => {
                self.passes.remove(&keys.plain);
                let left = freshness.lifetime.saturating_sub(freshness.age);
                let fill = self.fill(keys, ticket, &head, freshness);
                (fill.start(incoming, timeout), Handled::Stored(Some(head.status), Some(left)))
            }
        };
        let is_unchanged = head.status == StatusCode::OK && conditional::is_unchanged(&request.headers, &head.headers);
        finish(&mut head.headers, head.version, handled);
        if is_unchanged { reply::not_modified(head.headers) } else { reply::response(head.status, head.headers, body) }
    }

    fn judge(&self, request: &Parts, head: &http::response::Parts, started: Instant) -> Verdict {
        let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > self.store.entry_bytes_max()) {
            return Verdict::Pass("too-large");
        }
        policy::judge(&request.headers, head.status, &head.headers, started.elapsed(), SystemTime::now())
    }

    fn fill(&self, keys: Keys, ticket: Option<Ticket>, head: &http::response::Parts, freshness: Freshness) -> Fill {
        let mut stored = head.headers.clone();
        for name in [CONTENT_LENGTH, AGE, CACHE_STATUS] {
            stored.remove(name);
        }
        let (key, signpost_key) =
            if freshness.varies_by_coding { (keys.by_coding, Some(keys.plain)) } else { (keys.plain, None) };
        Fill {
            store: Arc::clone(&self.store),
            key,
            signpost_key,
            head: Head { kind: Kind::Response, status: head.status, age_seconds: 0, fields: stored },
            freshness,
            received: Instant::now(),
            ticket,
        }
    }
}

/// What the origin said, without what concerned the connection only, and with a date.
fn prepare(response: &mut HeaderMap) {
    fields::drop_hop_by_hop(response);
    if !response.contains_key(DATE)
        && let Ok(now) = HeaderValue::from_str(&httpdate::fmt_http_date(SystemTime::now()))
    {
        response.insert(DATE, now);
    }
}

fn finish(response: &mut HeaderMap, received: Version, handled: Handled) {
    fields::append_via(response, received);
    handled.append_to(response);
}

fn hit(request: &Parts, found: Found) -> Response<Body> {
    let mut response = found.head.fields.clone();
    response.insert(AGE, HeaderValue::from(found.age().as_secs()));
    finish(&mut response, Version::HTTP_11, Handled::Hit(found.ttl_left()));
    reply::stored(&request.method, &request.headers, found.head.status, response, found.value())
}

fn failed(fault: &Fault) -> Response<Body> {
    let mut response = reply::error(fault.status(), &fault.to_string());
    Handled::Passed(None, fault.detail()).append_to(response.headers_mut());
    response
}
