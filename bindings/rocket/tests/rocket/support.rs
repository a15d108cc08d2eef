//! A folder of files, and clients of a Rocket that serves it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eyewall::Options;
use eyewall_rocket::{CachedFile, CachedFiles, Eyewall, FileCache, FileCacheOptions};
use rocket::http::{Header, Status};
use rocket::local::asynchronous::{Client, LocalResponse};
use rocket::{Build, Config, Rocket, State, get, routes};
use tempfile::TempDir;

/// Bytes that differ from place to place, and from seed to seed.
pub(crate) fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..length.div_ceil(8)).flat_map(|_| next().to_le_bytes()).take(length).collect()
}

pub(crate) fn volume(size: u64) -> eyewall::Cache {
    Options::new().size(size).anonymous().unwrap()
}

/// Uses only the test's own configuration, and no log.
pub(crate) fn config() -> Config {
    Config { log_level: rocket::config::LogLevel::Off, ..Config::debug_default() }
}

pub(crate) struct Site {
    folder: TempDir,
    pub(crate) files: FileCache,
}

impl Site {
    /// With a volume of 8 MiB.
    pub(crate) fn new(options: FileCacheOptions) -> Self {
        Self::with(options.build(volume(8 << 20)))
    }

    pub(crate) fn with(files: FileCache) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), files }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder itself.
    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Waits until a file may be kept and has an entity tag: bytes that have changed within the last tick of the system's clock
    /// could change again without a trace.
    pub(crate) fn settle(&self, name: &str) {
        self.settle_for(name, Duration::from_millis(100));
    }

    pub(crate) fn settle_for(&self, name: &str, wait: Duration) {
        let metadata = fs::metadata(self.path(name)).unwrap();
        let changed = UNIX_EPOCH + Duration::new(metadata.ctime() as u64, metadata.ctime_nsec() as u32);
        while SystemTime::now() < changed + wait {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Serves the folder at `/`, and its files as `CachedFile` below `/named`.
    pub(crate) fn rocket(&self) -> Rocket<Build> {
        rocket::custom(config())
            .attach(Eyewall::with(self.files.clone()))
            .manage(Root(self.root().to_owned()))
            .mount("/", CachedFiles::from(self.root()))
            .mount("/named", routes![named])
    }

    pub(crate) async fn client(&self) -> Client {
        Client::untracked(self.rocket()).await.unwrap()
    }
}

struct Root(PathBuf);

#[get("/<path..>")]
async fn named(path: PathBuf, root: &State<Root>, files: &State<FileCache>) -> Option<CachedFile> {
    CachedFile::open(root.0.join(path), files).await.ok()
}

/// Both types that serve a file.
pub(crate) const WAYS: [&str; 2] = ["", "/named"];

pub(crate) async fn get<'c>(client: &'c Client, target: &str, fields: &[(&'static str, &str)]) -> LocalResponse<'c> {
    with_fields(client.get(target.to_owned()), fields).dispatch().await
}

pub(crate) async fn head<'c>(client: &'c Client, target: &str, fields: &[(&'static str, &str)]) -> LocalResponse<'c> {
    with_fields(client.head(target.to_owned()), fields).dispatch().await
}

fn with_fields<'c>(
    request: rocket::local::asynchronous::LocalRequest<'c>,
    fields: &[(&'static str, &str)],
) -> rocket::local::asynchronous::LocalRequest<'c> {
    fields.iter().fold(request, |request, &(name, value)| request.header(Header::new(name, value.to_owned())))
}

pub(crate) fn field(response: &LocalResponse<'_>, name: &str) -> String {
    response.headers().get(name).collect::<Vec<_>>().join(", ")
}

/// The status of a GET, and its body as text.
pub(crate) async fn text(client: &Client, target: &str) -> (Status, String) {
    let response = get(client, target, &[]).await;
    let status = response.status();
    (status, response.into_string().await.unwrap_or_default())
}
