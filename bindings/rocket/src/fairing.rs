//! The fairing that gives Rocket its volume.

use std::fmt;
use std::sync::Arc;

use eyewall_files::FileCache;
use eyewall_files::admission::Candidate;
use rocket::fairing::{self, Fairing, Info, Kind};
use rocket::figment::Figment;
use rocket::{Build, Data, Request, Rocket};

use crate::answer;
use crate::settings::{Error, Settings};

/// Says whether a file is to be kept.
type Admission = Arc<dyn Fn(&Candidate<'_>) -> bool + Send + Sync>;

/// Whether precompressed files are sent by folders that don't say it themselves; as state, beside the [`FileCache`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Precompressed(pub(crate) bool);

/// Opens a volume when Rocket is launched, and manages its [`FileCache`] and [`eyewall::Cache`] as state; [`crate::CachedFiles`] finds
/// it there. Where the volume can't be had, Rocket isn't launched, and the log says why.
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
    /// As it is configured.
    Settings(Option<Admission>),
    Given(FileCache),
}

impl Eyewall {
    /// With the settings of the table `eyewall` (`[default.eyewall]` in `Rocket.toml`):
    ///
    /// | key | what it says | unless it is set |
    /// |---|---|---|
    /// | `path` | the volume's file, which is created where there is none; below the folder of `Rocket.toml` | a volume in memory, for this process alone |
    /// | `size` | its size, and the cap of all that is kept: `"256 MiB"`, or bytes | 64 MiB; of one that is there, its own |
    /// | `put_aside_broken` | whether a broken volume is renamed and a new one takes its place ([`eyewall::Options::put_aside_broken`]) | false |
    /// | `verify_hits` | whether each hit is held against its checksum before it is sent ([`eyewall::Options::verify_hits`]) | false |
    /// | `min_file_size` | shorter files aren't kept | 0 |
    /// | `max_file_size` | longer files aren't kept | a quarter of the volume |
    /// | `freshness` | how changes are noticed: `"watched"` by what the kernel tells, or after so many seconds ([`crate::Freshness`]) | `"watched"` |
    /// | `precompressed` | whether `name.br`, `name.zst` and `name.gz` are sent in the place of `name` to who takes them | false |
    ///
    /// The volume survives the loss of its file's bytes ([`eyewall::Options::survive_sigbus`]). For other options, see
    /// [`Eyewall::with`].
    pub fn fairing() -> Self {
        Self { source: Source::Settings(None) }
    }

    /// With a file cache that is there, which is shared with the rest of the program. No settings are read.
    pub fn with(files: FileCache) -> Self {
        Self { source: Source::Given(files) }
    }

    /// Which files are kept: a closure, or one of [`crate::admission`]. It must not wait. For a file cache that was
    /// [given](Eyewall::with) this changes nothing: it has its own.
    pub fn admission(self, admits: impl Fn(&Candidate<'_>) -> bool + Send + Sync + 'static) -> Self {
        match self.source {
            Source::Settings(_) => Self { source: Source::Settings(Some(Arc::new(admits))) },
            Source::Given(_) => self,
        }
    }

    /// The file cache as it is when Rocket is launched with this configuration, for programs and tests that want it sooner. Waits
    /// for storage.
    ///
    /// # Errors
    /// [`Error`]: settings that can't be read, a volume that can't be opened.
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

    /// What is to be managed.
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
        // The program may have a volume of its own there.
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
