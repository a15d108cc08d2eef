//! A node: the protocol with a simulated volume and the simplest driver.

use eyewall_fleet::{Action, AsOf, Covers, Follower, Limits, Line, Notes, Outbox, Place, Settings, Subject, Ticket};

use crate::cache::{Cache, Target, tags_of};
use crate::dice::Dice;

pub(crate) const MAX_BLIND_MS: u64 = 2000;
pub(crate) const ASK_EVERY_MS: u64 = MAX_BLIND_MS / 8;

/// How late lines are noted without the rule.
const NOTED_LATE_MS: u64 = 300;

/// A rule for responses of other nodes. Each of them is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A foreign response is judged by the notes.
    Judges,
    /// A line is noted before it is applied.
    NotesFirst,
    /// A node applies its own lines again, and then answers.
    AppliesOwn,
    /// The number of a response is that of the fill's start.
    NumbersAtStart,
    /// A response of a node that follows another reign is refused, unless the log is durable.
    SameReign,
}

pub(crate) struct Node {
    number: usize,
    /// A rule that it breaks.
    broken: Option<Rule>,
    /// What survives a death: the volume with the saved place.
    pub(crate) cache: Cache,
    saved: Option<String>,
    /// `None` while the process is dead.
    pub(crate) process: Option<Process>,
    /// Until when no message arrives.
    pub(crate) cut_until_ms: u64,
}

pub(crate) struct Process {
    pub(crate) incarnation: u64,
    pub(crate) follower: Follower,
    pub(crate) outbox: Outbox,
    pub(crate) notes: Notes,
    /// Lines to note later, and when they were applied.
    unnoted: Vec<(u64, Line)>,
    /// Purges that the log has, with the numbers of their lines, until the node has read them.
    pub(crate) unread: Vec<(Ticket, u64)>,
    /// The server that it is connected to, and when that last answered.
    pub(crate) server: usize,
    pub(crate) answered_ms: u64,
    pub(crate) asks: bool,
    /// The purges that nobody has acknowledged yet: what they cover, and the versions that they are about.
    pub(crate) promised: Vec<(Ticket, Target, Vec<u64>)>,
}

impl Process {
    /// Whether it asks others, and answers them.
    fn follows(&self, now_ms: u64) -> bool {
        self.follower.confirmed_ms().is_some() && !self.follower.is_blind(now_ms)
    }

    fn note(&mut self, line: &Line) {
        let (is_everything, address, tag) = Target::decode(&line.purge).noted();
        let covers = is_everything.then_some(Covers::Everything).into_iter();
        let covers = covers.chain(address.as_deref().map(Covers::Address)).chain(tag.as_deref().map(Covers::Tag));
        self.notes.add(line, covers);
    }

    /// Up to where its volume is right, for others.
    pub(crate) fn as_of(&self, now_ms: u64) -> Option<AsOf> {
        self.notes.as_of().filter(|_| self.follows(now_ms)).cloned()
    }
}

impl Node {
    pub(crate) fn new(number: usize, broken: Option<Rule>) -> Self {
        Self { number, broken, cache: Cache::default(), saved: None, process: None, cut_until_ms: 0 }
    }

    pub(crate) fn start(&mut self, now_ms: u64, is_durable: bool, incarnation: u64, server: usize) {
        let settings = Settings { max_blind_ms: MAX_BLIND_MS, is_durable };
        let place = self.saved.as_deref().map(|text| Place::parse(text).expect("it was saved so"));
        let limits = Limits { pending: 30, kept: if is_durable { 0 } else { 10 } };
        let mut notes = Notes::new(20, is_durable || self.broken == Some(Rule::SameReign));
        if let Some(place) = &place {
            notes.applied(place);
        }
        self.process = Some(Process {
            incarnation,
            follower: Follower::new(settings, place, now_ms + MAX_BLIND_MS / 4),
            outbox: Outbox::new(limits, Target::Everything.encode()),
            notes,
            unnoted: Vec::new(),
            unread: Vec::new(),
            server,
            answered_ms: now_ms,
            asks: false,
            promised: Vec::new(),
        });
    }

    /// Carries out what the follower wants. Before the calm time, the process may die after any step.
    pub(crate) fn act(&mut self, actions: Vec<Action>, now_ms: u64, is_calm: bool, dice: &mut Dice) {
        let Some(process) = &mut self.process else { return };
        for (applied_ms, line) in std::mem::take(&mut process.unnoted) {
            if applied_ms + NOTED_LATE_MS <= now_ms {
                process.note(&line);
            } else {
                process.unnoted.push((applied_ms, line));
            }
        }
        for action in actions {
            match action {
                Action::Apply(line) => {
                    if self.broken == Some(Rule::NotesFirst) {
                        process.unnoted.push((now_ms, line.clone()));
                    } else {
                        process.note(&line);
                    }
                    if self.broken != Some(Rule::AppliesOwn) || line.purger != self.number.to_string() {
                        self.cache.purge(Target::decode(&line.purge));
                    }
                }
                Action::SoftenAll(gap) => {
                    if gap.is_some() {
                        process.notes.gap();
                    }
                    self.cache.purge(Target::Everything);
                }
                Action::Ask => process.asks = true,
            }
            if !is_calm && dice.below(3000) == 0 {
                self.process = None;
                return;
            }
        }
        if let Some(place) = process.follower.place().filter(|_| process.unnoted.is_empty()) {
            process.notes.applied(place);
        }
        self.saved = process.follower.place().map(Place::to_text);
    }

    /// Whether it takes a response that another node has made.
    pub(crate) fn takes(&self, now_ms: u64, key: u64, as_of: &AsOf) -> bool {
        let (address, tags) = (key.to_string(), tags_of(key));
        let subject = Subject { address: &address, key: address.as_bytes(), tags: &tags };
        let process = self.process.as_ref().filter(|process| process.follows(now_ms));
        process.is_some_and(|process| self.broken == Some(Rule::Judges) || process.notes.allows(as_of, subject))
    }

    /// The process, if a message for this incarnation reaches it.
    pub(crate) fn reached(&mut self, incarnation: u64, now_ms: u64) -> Option<&mut Process> {
        let is_cut = now_ms < self.cut_until_ms;
        self.process.as_mut().filter(|process| process.incarnation == incarnation && !is_cut)
    }
}
