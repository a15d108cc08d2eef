//! Reading, changing and writing an entry under its key's claim.

use crate::claim::Claim;
use crate::error::Result;
use crate::hit::Hit;
use crate::put::{Change, PutOptions, Updated};
use crate::read::{self, Use, Wanted};
use crate::volume::Volume;
use crate::write::{self, Condition, Draft, Outcome};

/// An update under way, which may have to go on in another volume when its own is resized.
pub(crate) struct Update<'u, F> {
    key: &'u [u8],
    options: &'u PutOptions<'u>,
    /// Until it has run.
    change: Option<F>,
    decided: Option<Decided>,
}

/// What the closure wants, and what it was shown.
struct Decided {
    change: Change,
    serial: Option<u64>,
    epoch: u32,
}

impl<'u, F> Update<'u, F>
where
    F: FnOnce(Option<&Hit<'_>>) -> Change,
{
    pub(crate) fn new(key: &'u [u8], options: &'u PutOptions<'u>, change: F) -> Self {
        Self { key, options, change: Some(change), decided: None }
    }

    /// Runs the update in `volume`; or ends it there, where the closure has run before its volume was resized.
    pub(crate) fn run(&mut self, volume: &Volume) -> Result<Updated> {
        write::check_key(volume, self.key)?;
        volume.check_writable()?;
        let claim = Claim::acquire(volume, &volume.place(self.key))?;
        if self.decided.is_none() {
            self.decide(volume, &claim)?;
            return self.store(volume, Condition::Claimed(claim.line()));
        }
        // The claim of the other volume is gone. What tells whether anybody came in between is the entry.
        let serial = self.decided.as_ref().and_then(|decided| decided.serial);
        self.store(volume, serial.map_or(Condition::Absent, Condition::Serial))
    }

    fn decide(&mut self, volume: &Volume, claim: &Claim<'_>) -> Result<()> {
        let epoch = volume.purges().epoch() as u32;
        let mut entry = read::get(volume, self.key, Use::Counts, Wanted::Fresh)?;
        while claim.renew() {
            entry = read::get(volume, self.key, Use::Peeks, Wanted::Fresh)?;
        }
        volume.check_intact()?;
        // Of a volume that was resized meanwhile, absence means nothing.
        volume.check_present()?;
        let Some(change) = self.change.take() else { unreachable!("it runs once") };
        let serial = entry.as_ref().map(Hit::serial);
        self.decided = Some(Decided { change: change(entry.as_ref()), serial, epoch });
        Ok(())
    }

    fn store(&self, volume: &Volume, condition: Condition) -> Result<Updated> {
        let Some(decided) = &self.decided else { unreachable!("decided before") };
        Ok(match &decided.change {
            Change::Keep => Updated::Kept,
            Change::Put(value) => {
                let draft = Draft::new(volume, self.key, value, self.options)?.begun_in(decided.epoch);
                match write::put(volume, &draft, condition)? {
                    Outcome::Stored(serial) => Updated::Stored(serial),
                    Outcome::Superseded(_) | Outcome::Unmet => Updated::Superseded,
                }
            }
            Change::Remove => match write::remove(volume, self.key, condition)? {
                Some(_) => Updated::Removed,
                None => Updated::Superseded,
            },
        })
    }
}
