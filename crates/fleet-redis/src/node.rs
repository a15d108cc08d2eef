//! This node: what it does when something arrives, and when time passes.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use eyewall_fleet::{Action, AsOf, Follower, Gap, Limits, Line, Notes, Outbox, Settings as Reliance, Ticket};
use eyewall_region::clock;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};

use crate::apply::{Applied, carry_out, is_work};
use crate::handle::{Order, Orders, Places, Waiting, Written, locked, random_word};
use crate::link::{Event, Link, Task};
use crate::redis_log::{Answer, Known, Log};
use crate::status::{NodeState, NodeStatus, Said, Seen};
use crate::unread::Unread;
use crate::{Settings, Volume};

/// How many purges may wait for the log.
const PENDING_MAX: usize = 10_000;
/// How many of them nobody waits for, so that they don't push out those of operators.
const UNAWAITED_MAX: usize = PENDING_MAX / 2;
/// How many written purges are kept, to be written again if the log loses them.
const KEPT_MAX: usize = 10_000;
/// How many purges are written at once.
const BATCH_MAX: usize = 256;
/// How often the node asks at most and at least.
const TICKS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));
/// The time between two questions of a node that has no purges to write: many lines are confirmed by one.
const ASK_SPACING: Duration = Duration::from_millis(2);
/// The time between two saves of the place. One that is too low only costs the reading of lines that were applied before.
const SAVE_SPACING: Duration = Duration::from_millis(100);
/// How many earlier lines a node notes that takes responses of others.
const EARLIER_MAX: usize = 20_000;
/// The longest time that a server waits for the log when it starts.
const PATIENCE_MAX: Duration = Duration::from_secs(5);

/// The node, and its ends of all channels.
pub(crate) struct Node {
    follower: Follower,
    outbox: Outbox,
    volume: Arc<dyn Volume>,
    /// This process, whose purges are applied already.
    process: Arc<str>,
    every: Duration,
    /// Those that wait for purges that the log does not have yet.
    waiting: HashMap<Ticket, Waiting>,
    /// Those that wait for purges that the log has, until this node has read them (N10).
    unread: Vec<(Written, Waiting)>,
    /// What purges cover that no client waits for.
    unawaited: Arc<Unread>,
    /// A soft purge of everything.
    everything: Vec<u8>,
    /// What lines cover, if the volume takes responses of others.
    notes: Option<Arc<Mutex<Notes>>>,
    earlier: Earlier,
    listing: Vec<oneshot::Sender<Vec<NodeStatus>>>,
    connection: Connection,
    /// When the last question was asked.
    asked: Instant,
    /// When to ask again, if that was wanted too soon.
    ask_at: Option<Instant>,
    /// When the place was saved last.
    saved: Option<Instant>,
    /// A connection's loss has been logged.
    has_warned: bool,
    said: Said,
    seen: Arc<Mutex<Seen>>,
    places: Arc<Mutex<Places>>,
    /// When the node became blind, if it is.
    blind_since_ms: Option<u64>,
    /// Told once, when the node may answer requests.
    ready: Option<std::sync::mpsc::Sender<()>>,
    orders: mpsc::Receiver<Order>,
    tasks: mpsc::Sender<Task>,
    events: mpsc::Receiver<Event>,
    after: watch::Sender<Option<u64>>,
    link: Option<Link>,
}

/// Lines of before the node's start, or before a gap, that it notes.
#[derive(Debug)]
struct Earlier {
    /// How many more it may note.
    left: usize,
    /// Some are on their way.
    is_under_way: bool,
    /// A server that takes over has every acknowledged line.
    is_durable: bool,
}

/// The state of the connection.
#[derive(Debug, Default)]
struct Connection {
    is_up: bool,
    /// Lines are read over it.
    is_reading: bool,
    asking: Asking,
}

/// Whether a question is under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Asking {
    #[default]
    Nothing,
    Once,
    /// Another one follows.
    Again,
}

impl Node {
    /// # Errors
    /// The system's, if it has no random numbers.
    pub(crate) fn new(
        settings: &Settings,
        orders: Orders,
        volume: Arc<dyn Volume>,
        ready: std::sync::mpsc::Sender<()>,
    ) -> io::Result<Self> {
        let Orders { receiver: orders, seen, places, notes, unread: unawaited } = orders;
        let process = random_word()?;
        let max_blind = settings.max_blind;
        let reliance = Reliance { max_blind_ms: max_blind.as_millis() as u64, is_durable: settings.durable };
        let patience = (max_blind / 4).min(PATIENCE_MAX).as_millis() as u64;
        let follower = Follower::new(reliance, volume.saved(), clock::since_boot_ms() + patience);
        let kept = if settings.durable { 0 } else { KEPT_MAX };
        let node = settings.node.clone().unwrap_or_else(machine);
        let said = Said { node, process: std::process::id(), peer_url: settings.peer_url.clone(), ..Said::default() };
        locked(&seen).name.clone_from(&settings.name);
        let ((tasks, link_tasks), (link_events, events)) = (mpsc::channel(16), mpsc::channel(16));
        let (after, link_after) = watch::channel(None);
        let link = Link {
            log: Log::new(settings)?,
            servers: settings.servers.clone(),
            process: process.clone(),
            live_for: max_blind,
            tasks: link_tasks,
            events: link_events,
            after: link_after,
        };
        Ok(Self {
            follower,
            outbox: Outbox::new(Limits { pending: PENDING_MAX, kept }, settings.everything.clone()),
            volume,
            process: process.into(),
            every: (max_blind / 16).clamp(TICKS.0, TICKS.1),
            waiting: HashMap::new(),
            unread: Vec::new(),
            unawaited,
            everything: settings.everything.clone(),
            notes: settings.takes_foreign.then_some(notes),
            earlier: Earlier { left: EARLIER_MAX, is_under_way: false, is_durable: settings.durable },
            listing: Vec::new(),
            connection: Connection::default(),
            asked: Instant::now(),
            ask_at: None,
            saved: None,
            has_warned: false,
            said,
            seen,
            places,
            blind_since_ms: None,
            ready: Some(ready),
            orders,
            tasks,
            events,
            after,
            link: Some(link),
        })
    }

    /// Follows the log until `stopped`.
    pub(crate) async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        if let Some(link) = self.link.take() {
            tokio::spawn(link.run());
        }
        let mut ticks = tokio::time::interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = &mut stopped => return,
                Some(event) = self.events.recv() => self.event(event).await,
                Some(order) = self.orders.recv() => self.order(order),
                _ = ticks.tick() => self.tick().await,
                () = tokio::time::sleep_until(self.ask_at.unwrap_or(self.asked)), if self.ask_at.is_some() => {
                    self.ask_at = None;
                    self.ask();
                }
            }
            self.tell();
        }
    }

    async fn tick(&mut self) {
        let actions = self.follower.tick(clock::since_boot_ms());
        // A look-up of the place keeps it in the volume.
        self.saved = None;
        self.act(actions).await;
        self.write_missing();
        self.ask();
    }

    /// Writes one purge of everything in the place of those that found no place, once there is one.
    fn write_missing(&mut self) {
        if self.outbox.pending() < UNAWAITED_MAX
            && let Some(pending) = self.unawaited.missing()
        {
            self.append(self.everything.clone(), Waiting::Nobody(pending));
        }
    }

    /// Takes a purge for the log. If the outbox is full, dropping the sender tells a client.
    fn append(&mut self, purge: Vec<u8>, waits: Waiting) {
        let is_unawaited = matches!(waits, Waiting::Nobody(_));
        let has_place = !is_unawaited || self.outbox.pending() < UNAWAITED_MAX;
        match has_place.then(|| self.outbox.push(purge)) {
            Some(Ok(ticket)) => {
                self.waiting.insert(ticket, waits);
            }
            _ if is_unawaited => self.unawaited.is_missing(),
            _ => {}
        }
    }

    fn order(&mut self, order: Order) {
        match order {
            Order::Append { purge, waits } => {
                self.append(purge, waits);
                self.ask();
            }
            Order::NoteEarlier => {
                self.earlier.left = EARLIER_MAX;
                if self.connection.is_up {
                    self.begin_noting(false);
                }
            }
            Order::Nodes(listed) => {
                if self.connection.is_up && self.tasks.try_send(Task::Nodes).is_ok() {
                    self.listing.push(listed);
                }
            }
        }
    }

    async fn event(&mut self, event: Event) {
        match event {
            Event::Connected(server) => {
                self.connection = Connection { is_up: true, ..Connection::default() };
                let mut seen = locked(&self.seen);
                (seen.server, seen.trouble) = (Some(server), None);
                drop(seen);
                self.ask();
            }
            Event::Lost(trouble) => self.lost(trouble),
            Event::Answered(answer) => self.answered(answer).await,
            Event::Nodes(known) => self.list(&known),
            Event::Earlier(lines) => self.note_earlier(lines).await,
            Event::Lines(lines) => {
                let actions = self.follower.lines(lines);
                self.act(actions).await;
                self.read_on();
                // So that the others know, and this node is confirmed.
                self.ask();
            }
        }
    }

    fn lost(&mut self, trouble: String) {
        if !std::mem::replace(&mut self.has_warned, true) {
            tracing::warn!("the purge log of the fleet can't be reached: {trouble}");
        }
        self.connection = Connection::default();
        self.earlier.is_under_way = false;
        self.listing.clear();
        let mut seen = locked(&self.seen);
        (seen.server, seen.trouble) = (None, Some(trouble));
    }

    async fn answered(&mut self, answer: Answer) {
        let Answer { written, state } = answer;
        let asked = std::mem::take(&mut self.connection.asking);
        if std::mem::take(&mut self.has_warned) {
            tracing::warn!("the purge log of the fleet can be reached again");
        }
        self.outbox.reign(&state.reign);
        for (ticket, reign, number) in written {
            self.outbox.written(ticket, &reign, number);
        }
        if state.is_replicated {
            for (ticket, number) in self.outbox.acknowledged(&state.reign, state.head) {
                if let Some(waiting) = self.waiting.remove(&ticket) {
                    self.unread.push((Written { number, reign: state.reign.as_str().to_owned() }, waiting));
                }
            }
            locked(&self.seen).trouble = None;
        } else {
            locked(&self.seen).trouble = Some("too few replicas have acknowledged what was written".to_owned());
        }
        let actions = self.follower.state(state);
        let has_gap = actions.iter().any(|action| matches!(action, Action::SoftenAll(Some(_))));
        self.act(actions).await;
        self.read_on();
        self.begin_noting(has_gap);
        let is_more = self.outbox.unwritten().next().is_some();
        if is_more || asked == Asking::Again {
            self.ask();
        }
    }

    /// Lets the notes reach back before the node's start, or before a gap. Otherwise it could take only responses that were made since.
    fn begin_noting(&mut self, has_gap: bool) {
        if has_gap {
            self.earlier.left = EARLIER_MAX;
        }
        if self.notes.is_some() && self.earlier.left == EARLIER_MAX && self.follower.number() > 0 {
            self.ask_earlier(self.follower.number());
        }
    }

    fn ask_earlier(&mut self, number: u64) {
        if self.tasks.try_send(Task::Earlier(number)).is_ok() {
            self.earlier.left = self.earlier.left.saturating_sub(1);
            self.earlier.is_under_way = true;
        }
    }

    /// Notes earlier lines. Those of another reign are of no use if that one's last lines may be lost.
    async fn note_earlier(&mut self, lines: Vec<Line>) {
        self.earlier.is_under_way = false;
        let (Some(place), Some(notes)) = (self.follower.place(), self.notes.clone()) else { return };
        let (reign, is_durable, most) = (place.reign.clone(), self.earlier.is_durable, self.earlier.left);
        let (volume, read, last) = (Arc::clone(&self.volume), lines.len(), lines.last().map(|line| line.number));
        let noting = tokio::task::spawn_blocking(move || {
            let is_of_use = |line: &&Line| is_durable || line.reign == reign;
            let is_noted = |line: &&Line| volume.note_earlier(line, &mut locked(&notes));
            lines.iter().take(most).take_while(is_of_use).take_while(is_noted).count()
        });
        // The thread has logged its panic.
        let noted = noting.await.unwrap_or(0);
        self.earlier.left = self.earlier.left.saturating_sub(noted);
        if let Some(last) = last.filter(|last| noted == read && *last > 1 && self.earlier.left > 0) {
            self.ask_earlier(last - 1);
        }
    }

    fn list(&mut self, known: &[Known]) {
        let mut nodes: Vec<NodeStatus> = known.iter().filter_map(NodeStatus::of).collect();
        nodes.sort_by(|one, other| (&one.said.node, one.said.process).cmp(&(&other.said.node, other.said.process)));
        for listing in self.listing.drain(..) {
            let _ = listing.send(nodes.clone());
        }
    }

    /// Lets the link read on after the present place.
    fn read_on(&mut self) {
        if self.connection.is_up && self.follower.place().is_some() {
            self.connection.is_reading = true;
            self.after.send_replace(Some(self.follower.number()));
        }
    }

    /// Asks for the state, and writes purges that wait.
    fn ask(&mut self) {
        if !self.connection.is_up {
            return;
        }
        if self.connection.asking != Asking::Nothing {
            self.connection.asking = Asking::Again;
            return;
        }
        let (unwritten, now) = (self.outbox.unwritten().take(BATCH_MAX), Instant::now());
        let purges: Vec<_> = unwritten.map(|unwritten| (unwritten.ticket, unwritten.purge.to_vec())).collect();
        if purges.is_empty() && now < self.asked + ASK_SPACING {
            self.ask_at = Some(self.asked + ASK_SPACING);
            return;
        }
        (self.asked, self.ask_at) = (now, None);
        // It has no maps, and no numbers that JSON can't have.
        let said = serde_json::to_string(&self.said_now()).unwrap_or_default();
        let task = Task::Ask { purges, about: self.follower.number(), said };
        if self.tasks.try_send(task).is_ok() {
            self.connection.asking = Asking::Once;
        }
    }

    /// Carries out what the follower wants, and saves the place.
    async fn act(&mut self, mut actions: Vec<Action>) {
        let asks = actions.contains(&Action::Ask);
        let place = self.follower.place().cloned();
        let (volume, process, notes) = (Arc::clone(&self.volume), Arc::clone(&self.process), self.notes.clone());
        let has_softened = actions.iter().any(|action| matches!(action, Action::SoftenAll(_)));
        let saves = has_softened || self.saved.is_none_or(|saved| saved.elapsed() >= SAVE_SPACING);
        let saved = place.clone().filter(|_| saves);
        if saves {
            self.saved = Some(Instant::now());
        }
        actions.retain(|action| is_work(action, &process, notes.is_some()));
        let has_work = saves || !actions.is_empty();
        let acting = has_work.then(|| {
            tokio::task::spawn_blocking(move || {
                let applied = carry_out(&*volume, &process, notes.as_deref(), actions);
                if let Some(place) = saved.filter(|_| !applied.has_failed) {
                    volume.save(&place);
                }
                applied
            })
        });
        let applied = match acting {
            // The thread has logged its panic.
            Some(acting) => acting.await.unwrap_or(Applied { has_failed: true, ..Applied::default() }),
            None => Applied::default(),
        };
        if applied.has_failed {
            self.follower.could_not_apply();
        }
        if let Some(notes) = &self.notes {
            let mut notes = locked(notes);
            match place.filter(|_| !applied.has_failed) {
                Some(place) => notes.applied(&place),
                None => notes.gap(),
            }
        }
        self.publish();
        self.answer_read(applied.gap.is_some());
        if applied.has_purged {
            self.said.last_purge_ms = Some(clock::wall_ms());
        }
        let has_gap = applied.gap.is_some_and(|gap| gap != Gap::NoPlace);
        if has_gap && self.connection.is_reading {
            // The lines may come over a connection to a log that is gone.
            self.connection = Connection::default();
            let _ = self.tasks.try_send(Task::Reconnect);
        }
        if asks {
            self.ask();
        }
        self.note_blindness();
    }

    /// Answers the purges that this node has read, or all of them after a gap, which has made everything stale.
    fn answer_read(&mut self, has_softened: bool) {
        let (last, waits) = (self.follower.number(), self.notes.is_some() && !has_softened);
        for (written, waiting) in self.unread.extract_if(.., |(written, _)| !waits || written.number <= last) {
            match waiting {
                // It may have gone.
                Waiting::Client(client) => drop(client.send(written)),
                Waiting::Nobody(pending) => drop(pending),
            }
        }
    }

    /// Tells how far the node is.
    fn publish(&self) {
        let mut places = locked(&self.places);
        places.applied = self.follower.place().map(AsOf::of);
        places.blind_from_ms = self.follower.blind_from_ms();
    }

    fn note_blindness(&mut self) {
        let now_ms = clock::since_boot_ms();
        match (self.follower.is_blind(now_ms), self.blind_since_ms) {
            (true, None) => {
                self.blind_since_ms = Some(now_ms);
                tracing::warn!(
                    "cut off from the purge log for too long: stored responses are revalidated until it can be reached again"
                );
            }
            (false, Some(since_ms)) => {
                self.blind_since_ms = None;
                self.said.blind_ms += now_ms - since_ms;
                tracing::warn!(blind_ms = now_ms - since_ms, "this node follows the purge log again");
            }
            _ => {}
        }
    }

    fn said_now(&self) -> Said {
        let state = match (self.blind_since_ms, self.follower.confirmed_ms()) {
            (Some(_), _) => NodeState::Blind,
            (None, Some(_)) => NodeState::Following,
            (None, None) => NodeState::Starting,
        };
        let since_ms = self.blind_since_ms.map_or(0, |since_ms| clock::since_boot_ms().saturating_sub(since_ms));
        let place = self.follower.place();
        Said {
            state,
            line: self.follower.number(),
            reign: place.map(|place| place.reign.as_str().to_owned()).unwrap_or_default(),
            pending: self.outbox.pending(),
            gaps: self.follower.gaps(),
            blind_ms: self.said.blind_ms + since_ms,
            ..self.said.clone()
        }
    }

    /// Tells other threads how it is doing.
    fn tell(&mut self) {
        if self.follower.is_ready()
            && !self.earlier.is_under_way
            && let Some(ready) = self.ready.take()
        {
            let _ = ready.send(());
        }
        let confirmed_ms = self.follower.confirmed_ms();
        let mut seen = locked(&self.seen);
        seen.said = self.said_now();
        seen.confirmed_ms = confirmed_ms;
    }
}

/// The name of this machine.
fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
