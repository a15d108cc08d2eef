//! The world: nodes, servers, the origin, the messages under way, and what is promised.

use std::collections::BTreeMap;

use eyewall_fleet::{AsOf, Line, Reign, State, Ticket};

use crate::cache::{KEYS, Mark, TAGS, Target};
use crate::dice::Dice;
use crate::node::{ASK_EVERY_MS, MAX_BLIND_MS, Node, Rule};
use crate::server::Server;

const NODES: usize = 4;
const STEP_MS: u64 = 10;
const END_MS: u64 = 40_000;
/// From here on nothing breaks, so all nodes have to recover.
const CALM_MS: u64 = 30_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One server. It is restarted with its log, or empty.
    Single,
    /// A replica acknowledges each line, and takes over with all of them. The old server may live on.
    Replicated,
    /// A replica takes over without the last lines.
    Lossy,
}

/// What happened.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) violation: Option<String>,
    pub(crate) acknowledged: u64,
    pub(crate) hits: u64,
    pub(crate) gaps: u64,
    pub(crate) deaths: u64,
    pub(crate) blind: u64,
    pub(crate) takeovers: u64,
    /// Responses of other nodes that were stored, and those that were refused.
    pub(crate) taken: u64,
    pub(crate) refused: u64,
}

impl Outcome {
    pub(crate) fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.hits += other.hits;
        self.gaps += other.gaps;
        self.deaths += other.deaths;
        self.blind += other.blind;
        self.takeovers += other.takeovers;
        self.taken += other.taken;
        self.refused += other.refused;
    }
}

enum Message {
    Ask {
        from: (usize, u64),
        server: usize,
        asked_ms: u64,
        about: u64,
    },
    Append {
        from: (usize, u64),
        server: usize,
        ticket: Ticket,
        purge: Vec<u8>,
    },
    Read {
        from: (usize, u64),
        server: usize,
        after: u64,
    },
    State {
        to: (usize, u64),
        server: usize,
        state: State,
    },
    Appended {
        to: (usize, u64),
        server: usize,
        ticket: Ticket,
        reign: Reign,
        number: u64,
    },
    Lines {
        to: (usize, u64),
        server: usize,
        lines: Vec<Line>,
    },
    /// The origin has answered a fill.
    Filled {
        node: usize,
        incarnation: u64,
        mark: Mark,
        version: u64,
        /// Up to which line the node had applied the log when it asked.
        as_of: Option<AsOf>,
        /// Other nodes that wait for it.
        peers: Vec<Asker>,
    },
    /// A node asks another one for a key.
    PeerAsk {
        home: usize,
        peer: Asker,
    },
    /// The answer: a version, and up to which line it is right.
    PeerAnswer {
        peer: Asker,
        version: u64,
        as_of: AsOf,
    },
}

/// A node that has asked another one.
#[derive(Clone, Copy)]
struct Asker {
    node: usize,
    incarnation: u64,
    mark: Mark,
    key: u64,
}

pub(crate) struct World {
    kind: Kind,
    /// A rule that all nodes break.
    broken: Option<Rule>,
    believes_durable: bool,
    dice: Dice,
    now_ms: u64,
    nodes: Vec<Node>,
    /// The last one is in office.
    servers: Vec<Server>,
    /// By time and number, so that two of one time have an order.
    messages: BTreeMap<(u64, u64), Message>,
    sent: u64,
    versions: [u64; KEYS as usize],
    /// For each key, when a purge was acknowledged, and the version from which on answers are right.
    promises: Vec<(u64, u64, u64)>,
    outcome: Outcome,
}

impl World {
    pub(crate) fn new(kind: Kind, broken: Option<Rule>, believes_durable: bool, dice: Dice) -> Self {
        Self {
            kind,
            broken,
            believes_durable,
            dice,
            now_ms: 1,
            nodes: (0..NODES).map(|number| Node::new(number, broken)).collect(),
            servers: vec![Server::new("reign0", kind == Kind::Replicated)],
            messages: BTreeMap::new(),
            sent: 0,
            versions: [0; KEYS as usize],
            promises: Vec::new(),
            outcome: Outcome::default(),
        }
    }

    pub(crate) fn run(mut self) -> Outcome {
        while self.now_ms < END_MS && self.outcome.violation.is_none() {
            self.now_ms += STEP_MS;
            self.deliver();
            self.fail();
            self.replicate();
            for number in 0..NODES {
                self.live(number);
                self.request(number);
            }
        }
        if self.outcome.violation.is_none() {
            self.check_recovery();
        }
        self.outcome
    }

    fn send(&mut self, message: Message) {
        let delay = if self.dice.percent(3) { self.dice.range(100..3000) } else { self.dice.range(1..40) };
        self.sent += 1;
        self.messages.insert((self.now_ms + delay, self.sent), message);
    }

    /// Sends a message that may be lost.
    fn try_send(&mut self, message: Message) {
        if self.now_ms >= CALM_MS || !self.dice.percent(5) {
            self.send(message);
        }
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.messages.first_entry()
            && entry.key().0 <= self.now_ms
        {
            let message = entry.remove();
            self.receive(message);
        }
    }

    fn receive(&mut self, message: Message) {
        let times = if self.dice.percent(3) { 2 } else { 1 };
        match message {
            Message::Ask { from, server, asked_ms, about } if self.servers[server].is_alive => {
                for _ in 0..times {
                    let state = self.servers[server].state(asked_ms, about);
                    self.try_send(Message::State { to: from, server, state });
                }
            }
            Message::Append { from, server, ticket, purge } if self.servers[server].is_alive => {
                for _ in 0..times {
                    let number = self.servers[server].append(&from.0.to_string(), purge.clone());
                    let reign = self.servers[server].reign.clone();
                    self.try_send(Message::Appended { to: from, server, ticket, reign, number });
                }
            }
            Message::Read { from, server, after } if self.servers[server].is_alive => {
                for _ in 0..times {
                    let lines = self.servers[server].read(after);
                    self.try_send(Message::Lines { to: from, server, lines });
                }
            }
            Message::Ask { .. } | Message::Append { .. } | Message::Read { .. } => {}
            Message::State { to, server, state } => self.told(to, server, state),
            Message::Appended { to, server, ticket, reign, number } => {
                if let Some(process) = self.nodes[to.0].reached(to.1, self.now_ms)
                    && process.server == server
                {
                    process.outbox.written(ticket, &reign, number);
                }
            }
            Message::Lines { to, server, lines } => {
                let Some(process) = self.nodes[to.0].reached(to.1, self.now_ms) else { return };
                if process.server == server {
                    let actions = process.follower.lines(lines);
                    self.nodes[to.0].act(actions, self.now_ms, self.now_ms >= CALM_MS, &mut self.dice);
                    self.promise(to.0);
                }
            }
            Message::Filled { node, incarnation, mark, version, as_of, peers } => {
                if self.lives(node, incarnation) {
                    self.nodes[node].cache.store(mark, version);
                    let now = self.nodes[node].process.as_ref().and_then(|process| process.as_of(self.now_ms));
                    let as_of = if self.broken == Some(Rule::NumbersAtStart) { now } else { as_of };
                    let Some(as_of) = as_of else { return };
                    for peer in peers {
                        self.try_send(Message::PeerAnswer { peer, version, as_of: as_of.clone() });
                    }
                }
            }
            Message::PeerAsk { home, peer } => self.asked_by_peer(home, peer),
            Message::PeerAnswer { peer, version, as_of } => {
                if !self.lives(peer.node, peer.incarnation) {
                    return;
                }
                let node = &mut self.nodes[peer.node];
                if node.takes(self.now_ms, peer.key, &as_of) {
                    self.outcome.taken += 1;
                    node.cache.store(peer.mark, version);
                } else {
                    self.outcome.refused += 1;
                }
            }
        }
    }

    fn told(&mut self, to: (usize, u64), server: usize, state: State) {
        let Some(process) = self.nodes[to.0].reached(to.1, self.now_ms) else { return };
        if process.server != server {
            return;
        }
        process.outbox.reign(&state.reign);
        if state.is_replicated {
            process.answered_ms = self.now_ms;
            let acknowledged = process.outbox.acknowledged(&state.reign, state.head);
            process.unread.extend(acknowledged);
        }
        let before = process.follower.gaps();
        let actions = process.follower.state(state);
        self.outcome.gaps += process.follower.gaps() - before;
        self.nodes[to.0].act(actions, self.now_ms, self.now_ms >= CALM_MS, &mut self.dice);
        self.promise(to.0);
    }

    /// Answers the purges whose lines the node has read. A gap has made everything stale, so it counts as well.
    fn promise(&mut self, number: usize) {
        let Some(process) = &mut self.nodes[number].process else { return };
        let (last, waits) = (process.follower.number(), self.broken != Some(Rule::AppliesOwn));
        for (ticket, _) in process.unread.extract_if(.., |(_, line)| !waits || *line <= last) {
            let Some(at) = process.promised.iter().position(|(of, ..)| *of == ticket) else { continue };
            let (_, target, versions) = process.promised.swap_remove(at);
            self.outcome.acknowledged += 1;
            for key in (0..KEYS).filter(|key| target.covers(*key)) {
                self.promises.push((self.now_ms, key, versions[key as usize]));
            }
        }
    }

    fn lives(&self, node: usize, incarnation: u64) -> bool {
        self.nodes[node].process.as_ref().is_some_and(|process| process.incarnation == incarnation)
    }

    /// A node is asked by another one: it answers from its volume, or asks the origin. A fill that runs already is good for both.
    fn asked_by_peer(&mut self, home: usize, peer: Asker) {
        let node = &self.nodes[home];
        let Some(process) = &node.process else { return };
        let Some(as_of) = process.as_of(self.now_ms) else { return };
        if let Some(version) = node.cache.fresh(peer.key) {
            return self.try_send(Message::PeerAnswer { peer, version, as_of });
        }
        let own = process.incarnation;
        let running = self.messages.values_mut().find_map(|message| match message {
            Message::Filled { node, incarnation, mark, peers, .. } => {
                (*node == home && *incarnation == own && mark.key == peer.key).then_some(peers)
            }
            _ => None,
        });
        match running {
            Some(peers) => peers.push(peer),
            None => self.fill(home, own, peer.key, vec![peer]),
        }
    }

    /// Asks the origin, which answers at once. The answer is under way for a while.
    fn fill(&mut self, node: usize, incarnation: u64, key: u64, peers: Vec<Asker>) {
        let (mark, version) = (self.nodes[node].cache.begin(key), self.versions[key as usize]);
        let as_of = self.nodes[node].process.as_ref().and_then(|process| process.as_of(self.now_ms));
        self.send(Message::Filled { node, incarnation, mark, version, as_of, peers });
    }

    /// Breaks something.
    fn fail(&mut self) {
        let (node, last) = (self.dice.below(NODES as u64) as usize, self.servers.len() - 1);
        if self.now_ms >= CALM_MS {
            self.servers[..last].iter_mut().for_each(|server| server.is_alive = false);
            return;
        }
        match self.dice.below(2000) {
            0..4 => self.nodes[node].cut_until_ms = self.now_ms + self.dice.range(10..3 * MAX_BLIND_MS),
            4..8 => self.nodes[node].process = None,
            8..10 => self.take_over(),
            10 if self.kind != Kind::Replicated => {
                // Somebody empties the server.
                let reign = format!("reign{}e{}", last, self.now_ms);
                self.servers[last] = Server::new(&reign, false);
            }
            // An old server is switched off at last.
            11..20 => self.servers[..last].iter_mut().for_each(|server| server.is_alive = false),
            _ => {}
        }
    }

    fn take_over(&mut self) {
        self.outcome.takeovers += 1;
        let (number, waits) = (self.servers.len(), self.kind == Kind::Replicated);
        let old = self.servers.last_mut().expect("there is one");
        // Without a replica, the server has its own log again, or nothing.
        if self.kind == Kind::Single {
            old.replicated = if self.dice.percent(50) { old.head } else { 0 };
        }
        let next = old.successor(&format!("reign{number}"), waits);
        old.is_alive = self.kind == Kind::Replicated && self.dice.percent(50);
        old.is_replaced = true;
        // The machine of the server may be that of nodes, too: nobody writes their lost purges again.
        let lost = old.lines.iter().filter(|line| line.number > next.head && self.dice.percent(50));
        let authors: Vec<usize> = lost.filter_map(|line| line.purger.parse().ok()).collect();
        self.servers.push(next);
        for author in authors {
            self.nodes[author].process = None;
        }
    }

    fn replicate(&mut self) {
        let is_due = self.dice.percent(if self.kind == Kind::Lossy { 4 } else { 30 });
        if is_due && let Some(last) = self.servers.last_mut() {
            last.replicated = last.head;
        }
    }

    /// One turn of a node's driver.
    fn live(&mut self, number: usize) {
        let now_ms = self.now_ms;
        let alive: Vec<usize> = (0..self.servers.len()).filter(|server| self.servers[*server].is_alive).collect();
        let reconnects = alive[self.dice.below(alive.len() as u64) as usize];
        let node = &mut self.nodes[number];
        if node.process.is_none() && (now_ms >= CALM_MS || self.dice.percent(1)) {
            self.outcome.deaths += 1;
            node.start(now_ms, self.believes_durable, self.sent + 1, reconnects);
        }
        let Some(process) = &mut node.process else { return };
        if now_ms - process.answered_ms > 2 * ASK_EVERY_MS {
            (process.server, process.answered_ms) = (reconnects, now_ms);
        }
        let actions = process.follower.tick(now_ms);
        self.outcome.blind += actions.len() as u64;
        node.act(actions, now_ms, now_ms >= CALM_MS, &mut self.dice);
        let Some(process) = &mut self.nodes[number].process else { return };
        let (from, server) = ((number, process.incarnation), process.server);
        let is_cut = now_ms < self.nodes[number].cut_until_ms;
        let Some(process) = self.nodes[number].process.as_mut().filter(|_| !is_cut) else { return };
        let asks = std::mem::take(&mut process.asks) || now_ms % ASK_EVERY_MS < STEP_MS;
        let after = process.follower.number();
        let writes = process.outbox.unwritten().filter(|_| now_ms % 100 < STEP_MS);
        let unwritten: Vec<_> = writes.map(|one| (one.ticket, one.purge.to_vec())).collect();
        for (ticket, purge) in unwritten {
            self.try_send(Message::Append { from, server, ticket, purge });
        }
        if asks {
            self.try_send(Message::Ask { from, server, asked_ms: now_ms, about: after });
        }
        self.try_send(Message::Read { from, server, after });
    }

    /// A client asks, and an editor may change something.
    fn request(&mut self, number: usize) {
        let key = self.dice.below(KEYS);
        if self.nodes[number].process.as_ref().is_none_or(|process| !process.follower.is_ready()) {
            return;
        }
        if let Some(version) = self.nodes[number].cache.fresh(key) {
            self.outcome.hits += 1;
            self.check(number, key, version);
        } else if let Some(process) = &self.nodes[number].process {
            let (mark, incarnation) = (self.nodes[number].cache.begin(key), process.incarnation);
            let home = self.dice.below(2 * NODES as u64) as usize;
            if home < NODES && process.as_of(self.now_ms).is_some() {
                let peer = Asker { node: number, incarnation, mark, key };
                self.try_send(Message::PeerAsk { home, peer });
            } else {
                self.fill(number, incarnation, key, Vec::new());
            }
        }
        if self.dice.below(1000) < 6 {
            self.edit(number);
        }
    }

    /// Changes pages, and purges them at a node.
    fn edit(&mut self, number: usize) {
        let target = match self.dice.below(10) {
            0 => Target::Everything,
            1..4 => Target::Tag(self.dice.below(TAGS)),
            _ => Target::Key(self.dice.below(KEYS)),
        };
        for key in (0..KEYS).filter(|key| target.covers(*key)) {
            self.versions[key as usize] += 1;
        }
        let node = &mut self.nodes[number];
        let Some(process) = &mut node.process else { return };
        node.cache.purge(target);
        if let Ok(ticket) = process.outbox.push(target.encode()) {
            process.promised.push((ticket, target, self.versions.to_vec()));
        }
    }

    fn check(&mut self, number: usize, key: u64, version: u64) {
        let now_ms = self.now_ms;
        let is_broken = |(since, of, least): &&(u64, u64, u64)| {
            *of == key && version < *least && now_ms > *since + MAX_BLIND_MS + STEP_MS
        };
        if let Some((since, _, least)) = self.promises.iter().find(is_broken) {
            self.outcome.violation = Some(format!(
                "at {now_ms} ms node {number} gave version {version} of key {key}; {least} was promised at {since} ms"
            ));
        }
    }

    /// After a calm time, all nodes follow the server in office, and nothing waits.
    fn check_recovery(&mut self) {
        let (now_ms, server) = (self.now_ms, self.servers.len() - 1);
        for (number, node) in self.nodes.iter().enumerate() {
            let Some(process) = &node.process else { continue };
            let lags = process.follower.number() + 20 < self.servers[server].head;
            let is_elsewhere = process.server != server && !self.servers[process.server].is_alive;
            // Some answers in a row may be late, or come before the replica has acknowledged a purge.
            let is_lost = process.follower.confirmed_ms().is_none_or(|confirmed| confirmed + 2 * MAX_BLIND_MS < now_ms);
            if is_lost || lags || is_elsewhere {
                self.outcome.violation = Some(format!("node {number} has not recovered: {:?}", process.follower));
            }
        }
    }
}
