//! Restricts the files that this thread, and all that it starts, can open: by Landlock.

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, make_bitflags,
};

use super::{Access, Extent, Place};

/// Of Linux 6.2. Later versions add the ioctls of devices, of which a server can open none, and the network.
const VERSION: ABI = ABI::V3;

/// How much is in force, and what is missing.
pub(super) fn restrict(places: &[Place]) -> (Extent, Option<String>) {
    match restricted(places) {
        Ok(RestrictionStatus { ruleset: RulesetStatus::FullyEnforced, .. }) => (Extent::Whole, None),
        Ok(RestrictionStatus { ruleset: RulesetStatus::PartiallyEnforced, .. }) => {
            let lack = "the Landlock of this kernel is older than that of Linux 6.2, and lets the process truncate files \
                        in any folder";
            (Extent::Partial, Some(lack.to_owned()))
        }
        Ok(_) => (Extent::None, Some("this kernel has no Landlock, or its `lsm` parameter leaves it out".to_owned())),
        Err(error) => (Extent::None, Some(format!("Landlock failed: {error}"))),
    }
}

fn restricted(places: &[Place]) -> Result<RestrictionStatus, RulesetError> {
    let mut rules = Ruleset::default().handle_access(AccessFs::from_all(VERSION))?.create()?;
    for place in places {
        // A place that this user can't reach is not opened up to the process either.
        let Ok(opened) = PathFd::new(&place.path) else { continue };
        let is_folder = place.path.is_dir();
        let rights = rights(place.access);
        // The kernel refuses a folder's rights for a file.
        let rights = if is_folder { rights } else { rights & AccessFs::from_file(VERSION) };
        rules = rules.add_rule(PathBeneath::new(opened, rights))?;
    }
    rules.restrict_self()
}

/// What Landlock calls it.
pub(super) fn rights(access: Access) -> BitFlags<AccessFs> {
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    match access {
        Access::Read => read,
        Access::Run => read | AccessFs::Execute,
        Access::Write => {
            let files = make_bitflags!(AccessFs::{WriteFile | Truncate | MakeReg | RemoveFile | MakeSym});
            read | files | make_bitflags!(AccessFs::{MakeDir | RemoveDir | Refer})
        }
        Access::Log => make_bitflags!(AccessFs::{WriteFile | MakeReg}),
        Access::Socket => make_bitflags!(AccessFs::{MakeSock | RemoveFile}),
    }
}
