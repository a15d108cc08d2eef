//! The fairing that provides Rocket with a volume.

use std::fmt;
use std::sync::Arc;

use eyewall_files::FileCache;
use eyewall_files::admission::Candidate;
use rocket::fairing::{self, Fairing, Info, Kind};
use rocket::figment::Figment;
use rocket::{Build, Data, Request, Rocket};

use crate::answer;
use crate::settings::{Error, Settings};

/// Decides whether to cache a file.
type Admission = Arc<dyn Fn(&Candidate<'_>) -> bool + Send + Sync>;

/// Whether folders send precompressed files by default; managed as state beside the [`FileCache`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Precompressed(pub(crate) bool);

/// Opens a volume when Rocket launches, and manages its [`FileCache`] and [`eyewall::Cache`] as state.
/// [`crate::CachedFiles`] finds it there. If the volume can't be opened, Rocket doesn't launch, and the log says
/// why.
///
/// ```no_run
/// use eyewall_rocket::{CachedFiles, Eyewall};
///
/// #[rocket::launch]
/// fn rocket() -> _ {
///     rocket::build().attach(Eyewall::fairing()).mount("/", CachedFiles::from("static"))
/// }
/// ```
pub struct Eyewall {
    source: Source,
}

enum Source {
    /// By Rocket's configuration.
    Settings(Option<Admission>),
    Given(FileCache),
}

impl Eyewall {
    /// Reads the settings from the table `eyewall` (`[default.eyewall]` in `Rocket.toml`):
    ///
    /// | key | meaning | default |
    /// |---|---|---|
    /// | `path` | the volume's file, relative to `Rocket.toml`; created if missing | a volume in memory, for this process alone |
    /// | `size` | the volume's size, a hard cap: `"256 MiB"`, or bytes | 64 MiB; an existing volume keeps its size |
    /// | `put_aside_broken` | rename a broken volume and create a new one ([`eyewall::Options::put_aside_broken`]) | false |
    /// | `verify_hits` | verify the checksum of each hit before sending it ([`eyewall::Options::verify_hits`]) | false |
    /// | `min_file_size` | shorter files aren't kept | 0 |
    /// | `max_file_size` | longer files aren't kept | a quarter of the volume |
    /// | `freshness` | how to notice changes: `"watched"`, by inotify; or after a number of seconds ([`crate::Freshness`]) | `"watched"` |
    /// | `precompressed` | send `name.br`, `name.zst` or `name.gz` in place of `name` to clients that accept them | false |
    ///
    /// The volume survives the loss of its file's bytes ([`eyewall::Options::survive_sigbus`]). For other
    /// options, see [`Eyewall::with`].
    pub fn fairing() -> Self {
        Self { source: Source::Settings(None) }
    }

    /// Uses an existing file cache, which the rest of the program may share. It reads no settings.
    pub fn with(files: FileCache) -> Self {
        Self { source: Source::Given(files) }
    }

    /// Sets which files are cached: by a closure, or one of [`crate::admission`]. It must not block. It
    /// doesn't affect a file cache that was [given](Eyewall::with), which has its own.
    pub fn admission(self, admits: impl Fn(&Candidate<'_>) -> bool + Send + Sync + 'static) -> Self {
        match self.source {
            Source::Settings(_) => Self { source: Source::Settings(Some(Arc::new(admits))) },
            Source::Given(_) => self,
        }
    }

    /// Opens the file cache for this configuration, for programs and tests that need it before the launch. It
    /// waits for storage.
    ///
    /// # Errors
    /// [`Error`]: the settings can't be read, or the volume can't be opened.
    pub fn open(&self, figment: &Figment) -> Result<FileCache, Error> {
        Ok(self.open_with_settings(figment)?.0)
    }

    fn open_with_settings(&self, figment: &Figment) -> Result<(FileCache, Precompressed), Error> {
        match &self.source {
            Source::Given(files) => Ok((files.clone(), Precompressed(false))),
            Source::Settings(admits) => {
                let settings = Settings::of(figment)?;
                let mut options = settings.file_options();
                if let Some(admits) = admits.clone() {
                    options = options.admission(move |file| admits(file));
                }
                Ok((options.build(settings.open()?), Precompressed(settings.precompressed)))
            }
        }
    }

    /// The state to manage.
    fn opened_for(&self, rocket: &Rocket<Build>) -> Result<(FileCache, Precompressed), Error> {
        if rocket.state::<FileCache>().is_some() {
            return Err(Error::Managed);
        }
        self.open_with_settings(rocket.figment())
    }
}

#[rocket::async_trait]
impl Fairing for Eyewall {
    fn info(&self) -> Info {
        Info { name: "Eyewall", kind: Kind::Ignite | Kind::Request | Kind::Singleton }
    }

    async fn on_ignite(&self, rocket: Rocket<Build>) -> fairing::Result {
        let (files, precompressed) = match self.opened_for(&rocket) {
            Ok(opened) => opened,
            Err(error) => {
                tracing::error!("Eyewall: {error}");
                return Err(rocket);
            }
        };
        let cache = files.cache();
        let place = cache.path().map_or("in memory".into(), |path| path.display().to_string());
        tracing::info!("Eyewall: the volume {place} has {} bytes", cache.size());
        // The program may manage a volume of its own.
        let rocket = match rocket.state::<eyewall::Cache>() {
            None => rocket.manage(files.cache().clone()),
            Some(_) => rocket,
        };
        Ok(rocket.manage(files).manage(precompressed))
    }

    async fn on_request(&self, request: &mut Request<'_>, _: &mut Data<'_>) {
        answer::note_method(request);
    }
}

impl fmt::Debug for Eyewall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Eyewall");
        if let Source::Given(files) = &self.source {
            debug.field("files", files);
        }
        debug.finish_non_exhaustive()
    }
}
