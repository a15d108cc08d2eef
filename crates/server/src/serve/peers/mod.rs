//! Peers: the nodes of a fleet take stored responses from each other.
//!
//! ```text
//! a miss ──> proxy/home ──> members: the home of the key ──> ask ──question──> answer, at the home ──> its volume, or its origin
//!                                  sign: HMAC by the fleet's key                    │
//!            the page cache <──────── envelope and body ────────────────────────────┘
//! ```
//! Each key has a home among the nodes that answer ([`members`]). It asks the origin for all of them, so the origin makes each response
//! once. `eyewall-fleet`'s notes judge whether a response of another node may be taken (N8 to N10 in `docs/invariants.md`).
//!
//! All of it runs on threads of its own, and on a listener that is only for nodes. A hit never comes here. If the home is slow to give a
//! sign of life, the node asks the origin, too. A question is never passed on to a third node.

mod answer;
mod ask;
mod members;
mod question;
mod sign;
mod tls;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use eyewall_fleet_redis::Fleet;
use eyewall_page_cache::recent_keys::RecentKeys;
use eyewall_tls::clock::Clock;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;
use toml::Spanned;

use super::error::Error;
use super::reload::Reloader;
use super::stop::Stop;
use super::tls::Upkeep;
use crate::config::Config;
use crate::config::fleet::PeerList;
pub(crate) use ask::Client;
pub(crate) use ask::Made;
use members::Delays;
pub(crate) use members::{Member, MemberState, Why};
pub(crate) use question::PageQuestion;
#[cfg(feature = "seams")]
pub(crate) use question::reread as reread_question;
use sign::Key;

/// The field by which content delivery networks recognise their own requests (RFC 8586).
const CDN_LOOP: HeaderName = HeaderName::from_static("cdn-loop");
/// A key that is asked for again within this time is hot.
const HOT_FOR: Duration = Duration::from_mins(1);
/// How many threads questions and answers have.
const THREADS: usize = 2;

/// The peers of this node.
pub(crate) struct Peers {
    runtime: Handle,
    key: Arc<Key>,
    /// The address by which other nodes know this one.
    url: String,
    /// This node in `CDN-Loop`.
    token: String,
    members: ArcSwap<Vec<Arc<Member>>>,
    /// Whether the log knows the members.
    are_found: bool,
    delays: Delays,
    /// The keys of other homes that were asked for a short time ago.
    asked: RecentKeys,
    keep: Duration,
    /// Another one after each reload.
    client: ArcSwap<Client>,
    fleet: Arc<Fleet>,
}

/// The threads of the peers. Dropping this ends them.
pub(crate) struct PeersThreads {
    runtime: Option<Runtime>,
    listener: Option<TcpListener>,
    /// With TLS. The second part looks after the certificate.
    tls: Option<(tls::Acceptor, Upkeep)>,
}

/// A peer, for operators.
#[derive(Debug, Serialize)]
pub(crate) struct PeerStatus {
    url: String,
    state: MemberState,
    #[serde(rename = "self")]
    is_self: bool,
    /// Why it isn't asked, or might not be soon.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Why>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
    /// It is asked, but has other settings of sites. The first hosts of those that are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_settings: Option<Vec<String>>,
}

impl Peers {
    /// Binds the listener for nodes. `None`: the configuration has no peers.
    ///
    /// # Errors
    /// [`Error::Peers`], [`Error::Start`] if the system gives no threads, and those of certificates.
    pub(crate) fn bind(
        config: &Config,
        fleet: Option<&Arc<Fleet>>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Option<(Arc<Self>, PeersThreads)>, Error> {
        let Some((table, fleet)) = config.fleet.as_ref().map(Spanned::get_ref).zip(fleet) else { return Ok(None) };
        let (Some(peers), Some(address), Some(key)) = (&table.peers, &table.peer_listen, &table.key_file) else {
            return Ok(None);
        };
        let wrong = |what: String| move |source| Error::Peers { what, source };
        let address: SocketAddr = *address.get_ref();
        let path = key.get_ref();
        let key = Key::read(path).map_err(wrong(format!("use the key in {}", path.display())))?;
        let tls = tls::Acceptor::start(table, clock)?;
        let listener = answer::bind(address).map_err(wrong(format!("listen on {address} for peers")))?;
        let bound = listener.local_addr().map_err(Error::Start)?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = table.peer_url.as_ref().map_or_else(|| format!("{scheme}://{bound}"), ToString::to_string);
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime =
            builder.worker_threads(THREADS).thread_name("peers").enable_all().build().map_err(Error::Start)?;
        let others = match peers.get_ref() {
            PeerList::Known(urls) => urls.iter().map(ToString::to_string).collect(),
            PeerList::Found => Vec::new(),
        };
        let peers = Arc::new(Self {
            runtime: runtime.handle().clone(),
            key: Arc::new(key),
            token: format!("eyewall-{:016x}", eyewall_fleet::home::hash(url.as_bytes())),
            members: ArcSwap::from_pointee(members(&url, &others, &[])),
            url,
            are_found: matches!(peers.get_ref(), PeerList::Found),
            delays: Delays::new(),
            asked: RecentKeys::new(Some(HOT_FOR)),
            keep: table.peer_keep.0,
            client: ArcSwap::from_pointee(Client::new(table)?),
            fleet: Arc::clone(fleet),
        });
        Ok(Some((peers, PeersThreads { runtime: Some(runtime), listener: Some(listener), tls })))
    }

    /// The address by which other nodes know this one.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The home of a key, if this node follows the purge log.
    pub(crate) fn home(&self, key: &[u8]) -> Option<Arc<Member>> {
        self.fleet.as_of()?;
        members::home(&self.members.load(), key)
    }

    /// Notes that a key of another home was asked for. True: it was, a short time ago.
    pub(crate) fn is_hot(&self, key: &[u8]) -> bool {
        let is_hot = self.asked.contains(key);
        self.asked.insert(key);
        is_hot
    }

    /// A client that trusts the authorities that the file has now. `None`: there is no file.
    ///
    /// # Errors
    /// The file can't be read, or has no authority.
    pub(crate) fn renewed_client(config: &Config) -> Result<Option<Client>, Error> {
        let table = config.fleet.as_ref().map(Spanned::get_ref).filter(|table| table.peer_ca_file.is_some());
        Ok(table.map(Client::new).transpose()?)
    }

    /// Asks with this client from now on. Connections of the one before end with what is asked over them.
    pub(crate) fn use_client(&self, client: Client) {
        self.client.store(Arc::new(client));
    }

    /// How long a response of another home is kept.
    pub(crate) fn keep(&self) -> Duration {
        self.keep
    }

    /// How long to wait for a sign of life before the origin is asked, too.
    pub(crate) fn hedge(&self, member: &Member) -> Duration {
        self.delays.hedge(member)
    }

    /// Adds this node to the networks that a request has passed (RFC 8586).
    pub(crate) fn append_loop(&self, fields: &mut HeaderMap) {
        fields.extend(HeaderValue::from_str(&self.token).ok().map(|token| (CDN_LOOP, token)));
    }

    /// Whether a request has passed this node already.
    pub(crate) fn is_loop(&self, fields: &HeaderMap) -> bool {
        let values = fields.get_all(CDN_LOOP).iter().filter_map(|value| value.to_str().ok());
        let mut passed = values.flat_map(|value| value.split(','));
        passed.any(|one| one.split(';').next().is_some_and(|token| token.trim() == self.token))
    }

    /// How the peers are doing.
    pub(crate) fn status(&self) -> Vec<PeerStatus> {
        let status = |member: &Arc<Member>| {
            let (why, trouble) = member.trouble().unzip();
            let (url, other_settings) = (member.url.clone(), member.other_settings());
            PeerStatus { url, state: member.state(), is_self: member.is_self, why, trouble, other_settings }
        };
        self.members.load().iter().map(status).collect()
    }

    /// Takes over the members that the log knows.
    fn found(&self, urls: &[String]) {
        let before = self.members.load_full();
        let is_same = before.len() == urls.len() && urls.iter().all(|url| before.iter().any(|one| one.url == *url));
        if !is_same {
            self.members.store(Arc::new(members(&self.url, urls, &before)));
        }
    }
}

/// The members with these addresses, and this node. Those of `before` keep their states.
fn members(own: &str, urls: &[String], before: &[Arc<Member>]) -> Vec<Arc<Member>> {
    let mut members = vec![Member::new(own, true)];
    for url in urls {
        if members.iter().all(|member| member.url != *url) {
            let known = before.iter().find(|member| member.url == *url);
            members.push(known.map_or_else(|| Member::new(url, false), Arc::clone));
        }
    }
    members
}

impl PeersThreads {
    /// Begins to answer, and to look after the members, if there are peers. The sender tells the listener when to accept no more. It has
    /// receivers until the last answer is out.
    ///
    /// # Errors
    /// [`Error::Start`], if the system can't wait for the listener.
    pub(crate) fn start(
        threads: Option<&mut Self>,
        peers: Option<&Arc<Peers>>,
        reloader: &Arc<Reloader>,
    ) -> Result<watch::Sender<Stop>, Error> {
        let (stop, told) = watch::channel(Stop::NotYet);
        let Some((threads, peers)) = threads.zip(peers) else { return Ok(stop) };
        if let (Some(runtime), Some(listener)) = (&threads.runtime, threads.listener.take()) {
            let _context = runtime.enter();
            let listener = tokio::net::TcpListener::from_std(listener).map_err(Error::Start)?;
            let tls = threads.tls.as_ref().map(|(acceptor, _)| acceptor.clone());
            runtime.spawn(answer::listen(listener, tls, Arc::clone(peers), Arc::clone(reloader), told));
            runtime.spawn(ask::look_after(Arc::clone(peers), Arc::clone(reloader)));
        }
        Ok(stop)
    }
}

impl Drop for PeersThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
