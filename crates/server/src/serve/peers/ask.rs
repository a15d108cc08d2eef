//! Questions to other nodes, and the care for the list of nodes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use eyewall_fleet_redis::NodeState;
use eyewall_http::message::Exchange;
use eyewall_page_cache::carried::{Envelope, PREFIX_BYTES, WhyNot};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as Pool;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::task::JoinHandle;

use super::members::{Member, Why};
use super::question::{PageQuestion, Question};
use super::sign::{Key, MAC_BYTES, REFUSED, SIGNATURE};
use super::tls::Connector;
use super::{Peers, answer};
use crate::config::fleet::{Fleet as Table, PeerUrl};
use crate::serve::origin::{ResponseBody, TlsError};
use crate::serve::reload::Reloader;

/// The longest wait for a sign of life.
const LIFE_TIMEOUT: Duration = Duration::from_secs(2);
/// The same for a question that asks for nothing else.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);
/// The pause between such questions.
const PROBE_EVERY: Duration = Duration::from_millis(500);
/// How long an idle connection is kept.
const POOL_IDLE: Duration = Duration::from_secs(30);
/// The most bytes of a refusal that are logged.
const WORDS_MAX: usize = 300;

/// The connections to other nodes.
pub(crate) struct Client(Pool<Connector, Full<Bytes>>);

/// The answer of another node.
pub(crate) struct Made {
    pub(crate) envelope: Envelope,
    pub(crate) body: ResponseBody,
    /// When it was received.
    pub(crate) received: SystemTime,
}

/// A node that has given a sign of life.
pub(crate) struct Alive {
    key: Arc<Key>,
    /// The number of the question.
    number: u128,
    requested: SystemTime,
    response: Response<Incoming>,
}

/// Why a node gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PeerError {
    #[error("it gave no sign of life, or no answer, in time")]
    Late,
    #[error("it can't be reached: {0}")]
    Unreachable(String),
    #[error("it refused the question ({status}): {words}")]
    Refused { status: StatusCode, why: Why, words: String },
    #[error("it is busy")]
    Busy,
    #[error("what answers there doesn't have the fleet's key")]
    Unproven,
    #[error("it doesn't follow the purge log")]
    DoesNotFollow,
    #[error("its answer broke off, or this version can't read it")]
    Broken,
    #[error("the question can't be asked")]
    Unaskable,
}

impl PeerError {
    /// Its kind, for operators.
    pub(super) fn why(&self) -> Why {
        match self {
            Self::Late => Why::Slow,
            Self::Unreachable(_) => Why::Unreachable,
            Self::Refused { why, .. } => *why,
            Self::Busy => Why::Busy,
            Self::Unproven => Why::Key,
            Self::DoesNotFollow => Why::Blind,
            Self::Broken | Self::Unaskable => Why::Unreadable,
        }
    }
}

impl Client {
    /// Reads the trusted certificates.
    ///
    /// # Errors
    /// There are none, and this node may need some.
    pub(super) fn new(table: &Table) -> Result<Self, TlsError> {
        let connector = Connector::new(table)?;
        let mut builder = Pool::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(POOL_IDLE).retry_canceled_requests(true);
        Ok(Self(builder.build(connector)))
    }
}

/// A task that ends with its owner.
struct Owned<T>(JoinHandle<T>);

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Peers {
    /// Asks a node for a response, and waits for its sign of life.
    ///
    /// # Errors
    /// [`PeerError`].
    pub(crate) async fn ask(&self, member: &Arc<Member>, question: PageQuestion) -> Result<Alive, PeerError> {
        let wait = self.delays.wait();
        let alive = self.send(member, &Question::Page(Box::new(question)), LIFE_TIMEOUT).await;
        match &alive {
            Ok(_) => wait.answered(),
            Err(error) => {
                wait.failed();
                if !matches!(error, PeerError::Unaskable | PeerError::Busy) {
                    member.fails(error);
                }
            }
        }
        alive
    }

    async fn send(&self, member: &Member, question: &Question, timeout: Duration) -> Result<Alive, PeerError> {
        tokio::time::timeout(timeout, self.send_patiently(member, question)).await.unwrap_or(Err(PeerError::Late))
    }

    async fn send_patiently(&self, member: &Member, question: &Question) -> Result<Alive, PeerError> {
        let question = question.encode().ok_or(PeerError::Unaskable)?;
        let requested = SystemTime::now();
        let (signature, number) = self.key.sign(&member.url, &question, requested).map_err(|_| PeerError::Unaskable)?;
        let request = Request::post(format!("{}{}", member.url, answer::PATH)).header(SIGNATURE, signature);
        let request = request.body(Full::from(question)).map_err(|_| PeerError::Unaskable)?;
        // The connections belong to the runtime of the peers, which outlives workers.
        let mut asking = Owned(self.runtime.spawn(self.client.load().0.request(request)));
        let answered = (&mut asking.0).await;
        let answered = answered.map_err(|_| PeerError::Unreachable("this server ends".to_owned()))?;
        let response = answered.map_err(|error| {
            let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            PeerError::Unreachable(cause)
        })?;
        // Without the proof, it may be another program that has the address of a node that is dead.
        if self.key.excuses(number, response.headers()) {
            return Err(PeerError::Busy);
        }
        if response.status() != StatusCode::OK {
            let (head, body) = response.into_parts();
            let word = head.headers.get(REFUSED).and_then(|word| word.to_str().ok());
            let why = Why::of_refusal(word);
            let words = http_body_util::Limited::new(body, WORDS_MAX).collect().await;
            let words = words.map(|words| String::from_utf8_lossy(&words.to_bytes()).trim().to_owned());
            return Err(PeerError::Refused { status: head.status, why, words: words.unwrap_or_default() });
        }
        // Another program may have the address by now, or have named it in Redis.
        if !self.key.promises(number, response.headers()) {
            return Err(PeerError::Unproven);
        }
        Ok(Alive { key: Arc::clone(&self.key), number, requested, response })
    }

    /// Asks a node whether it is alive, follows the purge log, and has these settings of sites.
    async fn probe(&self, member: &Member, settings: [u8; 32]) {
        let alive = self.send(member, &Question::Life(settings), PROBE_TIMEOUT).await;
        let made = match alive {
            Ok(alive) => tokio::time::timeout(PROBE_TIMEOUT, alive.answer()).await.unwrap_or(Err(PeerError::Late)),
            Err(error) => Err(error),
        };
        match made.map(|made| made.envelope) {
            Ok(Envelope::Nothing(WhyNot::DoesNotFollow)) => member.fails(&PeerError::DoesNotFollow),
            Ok(envelope) => {
                member.is_alive();
                member.has_all_settings(!matches!(envelope, Envelope::Nothing(WhyNot::OtherSettings)));
            }
            Err(error @ PeerError::Busy) => member.tells(&error),
            Err(error) => member.fails(&error),
        }
    }
}

impl Alive {
    /// Waits for the answer, unless the node goes down before.
    ///
    /// # Errors
    /// [`PeerError::Broken`], [`PeerError::Late`].
    pub(crate) async fn answer_of(self, member: &Member, timeout: Duration) -> Result<Made, PeerError> {
        tokio::select! {
            biased;
            made = tokio::time::timeout(timeout, self.answer()) => made.unwrap_or(Err(PeerError::Late)),
            () = member.down() => Err(PeerError::Late),
        }
    }

    async fn answer(self) -> Result<Made, PeerError> {
        let Self { key, number, requested, response } = self;
        let mut body = response.into_body();
        let mut start = BytesMut::new();
        let mut wanted = PREFIX_BYTES;
        loop {
            while start.len() < wanted {
                let frame = body.frame().await.ok_or(PeerError::Broken)?.map_err(|_| PeerError::Broken)?;
                start.extend_from_slice(frame.data_ref().map_or(&[], |piece| piece));
            }
            if wanted > PREFIX_BYTES {
                break;
            }
            let prefix = start.first_chunk().copied().and_then(Envelope::head_bytes).ok_or(PeerError::Broken)?;
            if prefix == 0 {
                return Err(PeerError::Broken);
            }
            wanted += prefix + MAC_BYTES;
        }
        let received = SystemTime::now();
        let (head, proof) = (start.split_to(wanted - MAC_BYTES), start.split_to(MAC_BYTES));
        if !key.proves(number, &head, &proof) {
            return Err(PeerError::Unproven);
        }
        let (envelope, _) = Envelope::decode(&head, Exchange { requested, received }).ok_or(PeerError::Broken)?;
        Ok(Made { envelope, body: ResponseBody::begun(start.freeze(), body), received })
    }
}

/// Keeps the list of members, and asks them for signs of life, as long as the server runs.
pub(super) async fn look_after(peers: Arc<Peers>, reloader: Arc<Reloader>) {
    let mut ticks = tokio::time::interval(PROBE_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if peers.are_found
            && let Some(nodes) = peers.fleet.status().await.nodes
        {
            let live = nodes.into_iter().filter(|node| node.is_live && node.said.state == NodeState::Following);
            let urls = live.filter_map(|node| node.said.peer_url?.parse::<PeerUrl>().ok());
            let urls: Vec<String> = urls.map(|url| url.to_string()).collect();
            peers.found(&urls);
        }
        let settings = reloader.shared().by_host.settings_hash();
        let members = peers.members.load_full();
        let probes = members.iter().filter(|member| !member.is_self).map(|member| {
            let (peers, member) = (Arc::clone(&peers), Arc::clone(member));
            tokio::spawn(async move { peers.probe(&member, settings).await })
        });
        for probe in probes.collect::<Vec<_>>() {
            // A panic is logged.
            let _ = probe.await;
        }
    }
}
