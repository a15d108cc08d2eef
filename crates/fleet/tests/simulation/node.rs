//! A node: the protocol with a simulated volume and the simplest driver.

use eyewall_fleet::{Action, Follower, Limits, Outbox, Place, Settings, Ticket};

use crate::cache::{Cache, Target};
use crate::dice::Dice;

pub(crate) const MAX_BLIND_MS: u64 = 2000;
pub(crate) const ASK_EVERY_MS: u64 = MAX_BLIND_MS / 8;

pub(crate) struct Node {
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
    /// The server that it is connected to, and when that last answered.
    pub(crate) server: usize,
    pub(crate) answered_ms: u64,
    pub(crate) asks: bool,
    /// The purges that nobody has acknowledged yet: what they cover, and the versions that they are about.
    pub(crate) promised: Vec<(Ticket, Target, Vec<u64>)>,
}

impl Node {
    pub(crate) fn new() -> Self {
        Self { cache: Cache::default(), saved: None, process: None, cut_until_ms: 0 }
    }

    pub(crate) fn start(&mut self, now_ms: u64, is_durable: bool, incarnation: u64, server: usize) {
        let settings = Settings { max_blind_ms: MAX_BLIND_MS, is_durable };
        let place = self.saved.as_deref().map(|text| Place::parse(text).expect("it was saved so"));
        let limits = Limits { pending: 30, kept: if is_durable { 0 } else { 10 } };
        self.process = Some(Process {
            incarnation,
            follower: Follower::new(settings, place, now_ms + MAX_BLIND_MS / 4),
            outbox: Outbox::new(limits, Target::Everything.encode()),
            server,
            answered_ms: now_ms,
            asks: false,
            promised: Vec::new(),
        });
    }

    /// Carries out what the follower wants. Before the calm time, the process may die after any step.
    pub(crate) fn act(&mut self, actions: Vec<Action>, is_calm: bool, dice: &mut Dice) {
        let Some(process) = &mut self.process else { return };
        for action in actions {
            match action {
                Action::Apply(line) => self.cache.purge(Target::decode(&line.purge)),
                Action::SoftenAll(_) => self.cache.purge(Target::Everything),
                Action::Ask => process.asks = true,
            }
            if !is_calm && dice.below(3000) == 0 {
                self.process = None;
                return;
            }
        }
        self.saved = process.follower.place().map(Place::to_text);
    }

    /// The process, if a message for this incarnation reaches it.
    pub(crate) fn reached(&mut self, incarnation: u64, now_ms: u64) -> Option<&mut Process> {
        let is_cut = now_ms < self.cut_until_ms;
        self.process.as_mut().filter(|process| process.incarnation == incarnation && !is_cut)
    }
}
