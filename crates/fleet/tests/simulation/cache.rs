//! The volume of a node, as a table: what is stored of each key, and which purges a fill has to look at.

/// How many keys there are. Keys with the same rest share a tag.
pub(crate) const KEYS: u64 = 6;
pub(crate) const TAGS: u64 = 2;

/// The tags of a key.
pub(crate) fn tags_of(key: u64) -> [String; 1] {
    [(key % TAGS).to_string()]
}

/// A purge, as the log has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Key(u64),
    Tag(u64),
    Everything,
}

impl Target {
    pub(crate) fn covers(self, key: u64) -> bool {
        match self {
            Self::Key(meant) => meant == key,
            Self::Tag(tag) => key % TAGS == tag,
            Self::Everything => true,
        }
    }

    /// The same as a note: whether it is everything, the address, or the tag.
    pub(crate) fn noted(self) -> (bool, Option<String>, Option<String>) {
        match self {
            Self::Key(key) => (false, Some(key.to_string()), None),
            Self::Tag(tag) => (false, None, Some(tag.to_string())),
            Self::Everything => (true, None, None),
        }
    }

    pub(crate) fn encode(self) -> Vec<u8> {
        match self {
            Self::Key(key) => vec![0, key as u8],
            Self::Tag(tag) => vec![1, tag as u8],
            Self::Everything => vec![2, 0],
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Self {
        match bytes {
            [0, key] => Self::Key((*key).into()),
            [1, tag] => Self::Tag((*tag).into()),
            _ => Self::Everything,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Slot {
    version: Option<u64>,
    is_fresh: bool,
    purges: u64,
}

/// It survives the death of its node.
#[derive(Clone, Default)]
pub(crate) struct Cache {
    slots: [Slot; KEYS as usize],
}

/// A fill that has begun.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    pub(crate) key: u64,
    purges: u64,
}

impl Cache {
    pub(crate) fn purge(&mut self, target: Target) {
        for (key, slot) in (0..).zip(&mut self.slots) {
            if target.covers(key) {
                slot.is_fresh = false;
                slot.purges += 1;
            }
        }
    }

    /// The version that answers a request without asking the origin.
    pub(crate) fn fresh(&self, key: u64) -> Option<u64> {
        let slot = &self.slots[key as usize];
        slot.version.filter(|_| slot.is_fresh)
    }

    /// The state of a key's purges, from which on a fill is judged.
    pub(crate) fn begin(&self, key: u64) -> Mark {
        Mark { key, purges: self.slots[key as usize].purges }
    }

    pub(crate) fn store(&mut self, mark: Mark, version: u64) {
        let slot = &mut self.slots[mark.key as usize];
        slot.version = Some(version);
        slot.is_fresh = slot.purges == mark.purges;
    }
}
