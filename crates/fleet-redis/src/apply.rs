//! Actions of the follower, carried out on the volume.

use eyewall_fleet::{Action, Gap};

use crate::Volume;

/// What became of some actions.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// A purge could not be applied.
    pub(crate) has_failed: bool,
    /// A purge of another node was applied.
    pub(crate) has_purged: bool,
    /// There was a gap that another connection may have caused.
    pub(crate) has_gap: bool,
}

/// Carries out actions in their order, until one fails. `process` is this one, whose purges are applied already.
pub(crate) fn carry_out(volume: &dyn Volume, process: &str, actions: Vec<Action>) -> Applied {
    let mut applied = Applied::default();
    for action in actions {
        let is_done = match action {
            // The node itself does that.
            Action::Ask => true,
            Action::SoftenAll(gap) => {
                applied.has_gap |= gap.is_some_and(|gap| gap != Gap::NoPlace);
                volume.soften(gap)
            }
            // It was applied before it was written.
            Action::Apply(line) if line.purger == process => true,
            Action::Apply(line) => {
                applied.has_purged = true;
                volume.apply(&line)
            }
        };
        if !is_done {
            applied.has_failed = true;
            break;
        }
    }
    applied
}
