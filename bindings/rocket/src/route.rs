//! Answers requests to a mounted folder.

use std::io;
use std::sync::{Arc, OnceLock};

use eyewall_files::{Answer, Answered, FileCache, FilePath, Folder};
use eyewall_http::message::Request as Asked;
use rocket::http::Status;
use rocket::http::uri::Origin;
use rocket::response::Redirect;
use rocket::route::{Handler, Outcome};
use rocket::tokio::task::spawn_blocking;
use rocket::{Data, Request};

use crate::answer;
use crate::fairing::Precompressed;
use crate::files::CachedFiles;

/// The folder that a route serves.
#[derive(Clone)]
pub(crate) struct Served {
    settings: Arc<CachedFiles>,
    opened: Arc<OnceLock<Root>>,
}

/// The type of the root.
#[derive(Clone)]
pub(crate) enum Root {
    Folder(Folder),
    File,
}

/// The outcome of a request.
enum Fate {
    Answer(Box<Answer>),
    /// Redirect to the path with a slash at its end.
    Redirect(String),
    /// Forward to the next route.
    Forward,
}

#[rocket::async_trait]
impl Handler for Served {
    async fn handle<'r>(&self, request: &'r Request<'_>, data: Data<'r>) -> Outcome<'r> {
        match self.answer(request).await {
            Ok(Fate::Answer(answer)) => Outcome::Success(answer::response(*answer)),
            Ok(Fate::Redirect(location)) => Outcome::from(request, Redirect::permanent(location)),
            Ok(Fate::Forward) => Outcome::forward(data, Status::NotFound),
            Err(error) if is_absence(&error) => Outcome::forward(data, Status::NotFound),
            Err(error) => {
                tracing::error!("Eyewall: can't send {}: {error}", request.uri());
                Outcome::Error(Status::InternalServerError)
            }
        }
    }
}

impl Served {
    pub(crate) fn new(settings: CachedFiles) -> Self {
        Self { settings: Arc::new(settings), opened: Arc::default() }
    }

    async fn answer(&self, request: &Request<'_>) -> io::Result<Fate> {
        let Some(files) = self.settings.files().or_else(|| request.rocket().state()) else {
            return Err(io::Error::other("Rocket's state has no FileCache: attach Eyewall::fairing()"));
        };
        let (method, fields) = (answer::method(request).unwrap_or(http::Method::GET), answer::fields(request));
        let asked = Asked { method: &method, fields: &fields };
        let Mounted { base, below } = Mounted::of(request);
        let folder = match self.root(request, files).await? {
            Root::Folder(folder) => folder,
            Root::File if below == "/" => {
                let answer = files.answer(self.settings.root(), asked).await?;
                return Ok(Fate::Answer(Box::new(answer)));
            }
            Root::File => return Ok(Fate::Forward),
        };
        let Ok(mut path) = FilePath::parse(&below, folder.serves_dotfiles()) else { return Ok(Fate::Forward) };
        loop {
            match folder.answer(&path, asked).await? {
                Answered::File(answer) => return Ok(Fate::Answer(answer)),
                Answered::Nothing => return Ok(Fate::Forward),
                Answered::Folder if self.settings.is_normalized() => {
                    let query = request.uri().query().map_or(String::new(), |query| format!("?{query}"));
                    return Ok(Fate::Redirect(format!("{base}{}{query}", path.folder_location())));
                }
                Answered::Folder => match FilePath::parse(&path.folder_location(), folder.serves_dotfiles()) {
                    Ok(index) => path = index,
                    Err(_) => return Ok(Fate::Forward),
                },
            }
        }
    }

    /// The root; the first request after it exists opens it.
    async fn root(&self, request: &Request<'_>, files: &FileCache) -> io::Result<Root> {
        if let Some(root) = self.opened.get() {
            return Ok(root.clone());
        }
        let precompressed = request.rocket().state::<Precompressed>().is_some_and(|precompressed| precompressed.0);
        let (settings, files) = (Arc::clone(&self.settings), files.clone());
        let opening = spawn_blocking(move || settings.open(&files, precompressed));
        let root = opening.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
        Ok(self.opened.get_or_init(|| root).clone())
    }
}

/// The path of a request, split at the mount point.
struct Mounted {
    /// Without a slash at its end.
    base: String,
    below: String,
}

impl Mounted {
    fn of(request: &Request<'_>) -> Self {
        let base_count = request.route().map_or(0, |route| segments(route.uri.base()).count());
        Self::split(request.uri(), base_count)
    }

    fn split(uri: &Origin<'_>, base_count: usize) -> Self {
        let path = uri.path().as_str();
        let (mut base, mut below) = (String::new(), String::new());
        for (place, segment) in segments(path).enumerate() {
            let part = if place < base_count { &mut base } else { &mut below };
            part.push('/');
            part.push_str(segment);
        }
        if below.is_empty() || path.ends_with('/') {
            below.push('/');
        }
        Self { base, below }
    }
}

/// Without empty segments, as Rocket counts them.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

/// Whether an error means that the file counts as missing: it is gone, unreadable for this user, or the root is
/// not a folder.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied)
}
