//! Actions of the follower, carried out on the volume.

use std::sync::Mutex;

use eyewall_fleet::{Action, Gap, Notes};

use crate::Volume;
use crate::handle::locked;

/// What became of some actions.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// A purge could not be applied.
    pub(crate) has_failed: bool,
    /// A purge of another node was applied.
    pub(crate) has_purged: bool,
    /// Everything was made stale because of a gap.
    pub(crate) gap: Option<Gap>,
}

/// Whether an action has to do with the volume or the notes.
pub(crate) fn is_work(action: &Action, process: &str, has_notes: bool) -> bool {
    match action {
        Action::Ask => false,
        Action::SoftenAll(_) => true,
        // A purge of this process was applied before it was written.
        Action::Apply(line) => has_notes || line.purger != process,
    }
}

/// Carries out actions in their order, until one fails: those that are [work](is_work) of this process. With `notes`, lines are noted, and
/// those of this process applied again.
pub(crate) fn carry_out(
    volume: &dyn Volume,
    process: &str,
    notes: Option<&Mutex<Notes>>,
    actions: Vec<Action>,
) -> Applied {
    let mut applied = Applied::default();
    for action in actions {
        let is_done = match action {
            // The node itself does that.
            Action::Ask => true,
            Action::SoftenAll(gap) => {
                if let Some(notes) = notes.filter(|_| gap.is_some()) {
                    locked(notes).gap();
                }
                applied.gap = gap.or(applied.gap);
                volume.soften(gap)
            }
            Action::Apply(line) => {
                if let Some(notes) = notes {
                    volume.note(&line, &mut locked(notes));
                }
                applied.has_purged |= line.purger != process;
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
