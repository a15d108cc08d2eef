//! Opens the server's volume by its configuration.

use std::os::fd::OwnedFd;

use eyewall::{Cache, Options};
use toml::Spanned;

use crate::config::Volume;
use crate::config::settings::CACHE_SIZE_DEFAULT;

/// Opens or creates the volume. The engine refuses another size than that of an existing volume. Unless `keep_broken` is set, a
/// broken volume is renamed, and a new one is created in its place. `memory` is the descriptor of a volume in memory of the process
/// before.
///
/// # Errors
/// The engine's.
pub(super) fn open(volume: &Volume, keeps_broken: bool, memory: Option<OwnedFd>) -> eyewall::Result<Cache> {
    let mut options = Options::new().survive_sigbus(true).verify_hits(volume.verify_hits);
    if let Some(bytes) = &volume.entry_bytes_max {
        options = options.entry_bytes_max(bytes.get_ref().0);
    }
    if let Some(bytes) = &volume.entry_size_hint {
        // The configuration has checked that it fits.
        options = options.entry_size_hint(u32::try_from(bytes.0).unwrap_or(u32::MAX));
    }
    if let Some(bytes) = &volume.tier {
        options = options.tier(bytes.get_ref().0);
    }
    let size = volume.size.as_ref().map(|size| size.0);
    let made = options.clone().size(size.unwrap_or(CACHE_SIZE_DEFAULT));
    let Some(path) = volume.path.as_ref().map(Spanned::get_ref) else { return in_memory(&made, memory) };
    let opened = match size {
        Some(_) => made.open(path),
        None => options.create(false).open(path),
    };
    match opened {
        Err(eyewall::Error::NotFound { .. }) => made.open(path),
        Err(eyewall::Error::Corrupt { path: broken, what }) if !keeps_broken => {
            let cache = made.put_aside_broken(true).open(path)?;
            let aside = cache.put_aside().map_or_else(String::new, |aside| aside.display().to_string());
            let volume = broken.display();
            tracing::warn!(%volume, aside, "the volume was broken ({what}): renamed it, and created a new one");
            Ok(cache)
        }
        other => other,
    }
}

fn in_memory(options: &Options, memory: Option<OwnedFd>) -> eyewall::Result<Cache> {
    match memory.map(|memory| options.shared(memory)) {
        Some(Ok(cache)) => Ok(cache),
        Some(Err(error)) => {
            tracing::warn!(
                "the cache in memory begins empty, because that of the process before can't be used: {error}"
            );
            options.anonymous()
        }
        None => options.anonymous(),
    }
}
