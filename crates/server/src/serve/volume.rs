//! The server's volume, as the configuration says it.

use eyewall::{Cache, Options};
use toml::Spanned;

use crate::config::Volume;
use crate::config::settings::CACHE_SIZE_DEFAULT;

/// An existing volume keeps its size unless another one was asked for, which the engine then refuses. A broken one is put aside,
/// and a new one is made in its place, unless it is to be kept.
///
/// # Errors
/// Those of the engine.
pub(super) fn open(volume: &Volume, keeps_broken: bool) -> eyewall::Result<Cache> {
    let mut options = Options::new().survive_sigbus(true).verify_hits(volume.verify_hits);
    if let Some(bytes) = &volume.entry_bytes_max {
        options = options.entry_bytes_max(bytes.get_ref().0);
    }
    if let Some(bytes) = &volume.entry_size_hint {
        // It was read as one that fits.
        options = options.entry_size_hint(u32::try_from(bytes.0).unwrap_or(u32::MAX));
    }
    if let Some(bytes) = &volume.tier {
        options = options.tier(bytes.get_ref().0);
    }
    let size = volume.size.as_ref().map(|size| size.0);
    let made = options.clone().size(size.unwrap_or(CACHE_SIZE_DEFAULT));
    let Some(path) = volume.path.as_ref().map(Spanned::get_ref) else { return made.anonymous() };
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
            tracing::warn!(%volume, aside, "the volume was broken ({what}): it was put aside, and a new one was made");
            Ok(cache)
        }
        other => other,
    }
}
