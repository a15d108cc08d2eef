//! Request collapsing over processes: the claim of a key in the volume, which no entry is stored under.
//!
//! ```text
//! COLLAPSE_KEY fill      claimed for as long as somebody asks for what has this collapse key
//! ```
//! Those that wait in other processes wait on a thread that may: one for each key, whoever waits there for that in turn.

use std::sync::Arc;
use std::time::Duration;

use eyewall::Writer;

use super::answer::Pages;

/// None: another process has it still, or the volume has no place for it. Who gives up waiting leaves no thread behind that waits.
pub(super) async fn claim(pages: &Arc<Pages>, collapse_key: &[u8], patience: Duration) -> Option<Writer> {
    let key = [collapse_key, b" fill"].concat();
    let pages = Arc::clone(pages);
    // Lives as long as this is waited for.
    let waiting = Arc::new(());
    let wanted = Arc::downgrade(&waiting);
    let claiming = move || {
        let is_wanted = || wanted.strong_count() > 0;
        pages.store.claim(&key, patience, &is_wanted)
    };
    // Its thread has logged a panic already.
    let claimed = tokio::task::spawn_blocking(claiming).await.ok().flatten();
    drop(waiting);
    claimed
}
