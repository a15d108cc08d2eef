//! A node that follows the log.
//!
//! ```text
//!            state: no gap                       state: a gap, or nothing known
//! following ────────────> following   following ────────────────────────> SoftenAll, and on at the log's end
//!     │ not confirmed for too long                     ^
//!     v                                                │ state
//!   blind: SoftenAll from time to time ────────────────┘ confirmed: following
//! ```

use std::collections::VecDeque;

use crate::log::{Line, Place, Reign, State};

/// How many states may wait for their lines. Of more, the oldest is forgotten: a later one confirms as well.
const WAITING_MAX: usize = 64;

/// What a node relies on.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How long a node may go unconfirmed.
    pub max_blind_ms: u64,
    /// Whether a server that takes over has every acknowledged line.
    pub is_durable: bool,
}

/// What the driver has to do, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Apply the purge of this line.
    Apply(Line),
    /// Make everything stale that is stored, or on its way into the volume. `None`: the node is blind.
    SoftenAll(Option<Gap>),
    /// Ask for the state at once.
    Ask,
}

/// Why lines may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// The node has no place yet, or could not apply a line.
    NoPlace,
    /// The log has fewer lines than the node has applied.
    Shorter,
    /// The next line is gone.
    Trimmed,
    /// Another server has taken over, and may have lost lines.
    OtherServer,
    /// The node's last line isn't in the log.
    OtherHistory,
}

impl Gap {
    /// The reason in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoPlace => "this volume has no place in the log yet",
            Self::Shorter => "the log is shorter than before",
            Self::Trimmed => "the next lines of the log are gone",
            Self::OtherServer => "another server has the log, or it was restarted",
            Self::OtherHistory => "the log has other lines than before",
        }
    }
}

/// A node that follows the log. Times are of one clock that never goes back.
#[derive(Debug)]
pub struct Follower {
    settings: Settings,
    place: Option<Place>,
    /// States whose lines aren't all applied yet, in the order of their lines.
    waiting: VecDeque<Waiting>,
    /// When the latest state that was taken was asked for.
    asked_ms: u64,
    confirmed_ms: Option<u64>,
    /// Until when a node that has just started waits for its first state before it counts as blind.
    patient_until_ms: u64,
    softened_ms: Option<u64>,
    /// The next line belongs to another log. If the next state doesn't say why, it is a gap, too: otherwise the node would wait forever.
    is_elsewhere: bool,
    gaps: u64,
}

#[derive(Debug)]
struct Waiting {
    asked_ms: u64,
    head: u64,
    head_written_in: Reign,
}

impl Follower {
    /// A node at the place that was saved last, which isn't confirmed yet. It waits until `patient_until_ms` for its first state.
    pub fn new(settings: Settings, place: Option<Place>, patient_until_ms: u64) -> Self {
        Self {
            settings,
            place,
            waiting: VecDeque::new(),
            asked_ms: 0,
            confirmed_ms: None,
            patient_until_ms,
            softened_ms: None,
            is_elsewhere: false,
            gaps: 0,
        }
    }

    /// The place to save, and to read on from.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// The number of the last line that it has applied; 0 without a place.
    pub fn number(&self) -> u64 {
        self.place.as_ref().map_or(0, |place| place.number)
    }

    /// How often it has met a gap. The start with a volume that has no place yet isn't counted.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    /// The moment up to which it is confirmed.
    pub fn confirmed_ms(&self) -> Option<u64> {
        self.confirmed_ms
    }

    /// When it becomes blind, unless it is confirmed again. `None`: it isn't confirmed yet.
    pub fn blind_from_ms(&self) -> Option<u64> {
        self.confirmed_ms.map(|confirmed_ms| confirmed_ms + self.settings.max_blind_ms / 4 * 3)
    }

    /// Whether it isn't confirmed for too long.
    pub fn is_blind(&self, now_ms: u64) -> bool {
        now_ms >= self.blind_from_ms().unwrap_or(self.patient_until_ms)
    }

    /// Whether it may answer requests: it is confirmed, or has made everything stale.
    pub fn is_ready(&self) -> bool {
        self.confirmed_ms.is_some() || self.softened_ms.is_some()
    }

    /// The time passes. Call it several times in each half of `max_blind`.
    pub fn tick(&mut self, now_ms: u64) -> Vec<Action> {
        if !self.is_blind(now_ms) {
            self.softened_ms = None;
            return Vec::new();
        }
        if self.softened_ms.is_some_and(|softened| now_ms.saturating_sub(softened) < self.settings.max_blind_ms / 2) {
            return Vec::new();
        }
        self.softened_ms = Some(now_ms);
        vec![Action::SoftenAll(None)]
    }

    /// A purge could not be applied. The next state makes everything stale.
    pub fn could_not_apply(&mut self) {
        self.gaps += 1;
        self.place = None;
        self.waiting.clear();
    }

    /// The server has answered.
    pub fn state(&mut self, state: State) -> Vec<Action> {
        // Messages may overtake each other.
        if state.asked_ms < self.asked_ms {
            return Vec::new();
        }
        let gap = match &self.place {
            None => Some(Gap::NoPlace),
            Some(place) if state.about == place.number => self.gap(place, &state),
            // The node has gone on since it asked. In one reign, it can't have left the log.
            Some(place) if state.reign == place.reign => None,
            Some(_) => return vec![Action::Ask],
        };
        self.asked_ms = state.asked_ms;
        self.is_elsewhere &= gap.is_none() && state.about != self.number();
        match (&mut self.place, gap) {
            (Some(place), None) => {
                place.reign = state.reign.clone();
                self.confirm_by(state);
                Vec::new()
            }
            (_, gap) => {
                self.gaps += u64::from(gap != Some(Gap::NoPlace));
                self.waiting.clear();
                self.place = Some(Place {
                    reign: state.reign.clone(),
                    number: state.head,
                    written_in: state.head_written_in.clone(),
                });
                self.confirm_by(state);
                vec![Action::SoftenAll(Some(gap.unwrap_or(Gap::NoPlace)))]
            }
        }
    }

    /// Why lines after this place may be missing.
    fn gap(&self, place: &Place, state: &State) -> Option<Gap> {
        let is_same_line = state.about_written_in.as_ref().map(|reign| *reign == place.written_in);
        if state.reign != place.reign && !self.settings.is_durable {
            Some(Gap::OtherServer)
        } else if state.head < place.number {
            Some(Gap::Shorter)
        } else if state.head > place.number && state.next != Some(place.number + 1) {
            Some(Gap::Trimmed)
        } else if self.is_elsewhere
            || is_same_line == Some(false)
            || is_same_line.is_none() && state.reign != place.reign
        {
            Some(Gap::OtherHistory)
        } else {
            None
        }
    }

    /// Lines that were read after the node's place, in their order.
    pub fn lines(&mut self, lines: impl IntoIterator<Item = Line>) -> Vec<Action> {
        let mut actions = Vec::new();
        for line in lines {
            let Some(place) = &mut self.place else { return vec![Action::Ask] };
            if line.number <= place.number {
                continue;
            }
            let follows = line.number == place.number + 1 && line.before == place.written_in;
            if !follows || line.reign != place.reign && !self.settings.is_durable {
                self.is_elsewhere |= line.number == place.number + 1;
                actions.push(Action::Ask);
                break;
            }
            self.is_elsewhere = false;
            (place.number, place.written_in) = (line.number, line.reign.clone());
            // A server that took over may have written it, before the node hears of that. What another node has read of the old server
            // since then is of another history.
            place.reign.clone_from(&line.reign);
            actions.push(Action::Apply(line));
            self.confirm_waiting();
        }
        actions
    }

    fn confirm_by(&mut self, state: State) {
        if !state.is_replicated {
            return;
        }
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
        }
        let State { asked_ms, head, head_written_in, .. } = state;
        self.waiting.push_back(Waiting { asked_ms, head, head_written_in });
        self.confirm_waiting();
    }

    /// Confirms by the states whose lines are all applied.
    fn confirm_waiting(&mut self) {
        let Some(place) = &self.place else { return };
        while let Some(first) = self.waiting.front()
            && first.head <= place.number
        {
            // A line of the same number in another log proves nothing.
            let is_last = first.head == place.number;
            let has_lines = *(if is_last { &first.head_written_in } else { &place.reign }) == place.written_in;
            if has_lines {
                self.confirmed_ms = self.confirmed_ms.max(Some(first.asked_ms));
            }
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
