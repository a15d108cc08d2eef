//! A folder as a service.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use eyewall_files::{Answered, FileCache, FilePath, Folder, FolderOptions, Refusal, Symlinks};
use eyewall_http::message;
use http::header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE};
use http::request::Parts;
use http::{HeaderName, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use tower_service::Service;

use super::body::Body;
use super::fallback::NoFallback;
use super::future::ResponseFuture;
use super::reply;

/// The parts of a request that select a representation.
const CONDITIONS: [HeaderName; 6] = [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE];

/// Serves a folder's files by the paths of requests.
///
/// Each setter creates a new folder, so call them at the start. Clones are the same service, and share what is
/// known of the folder.
///
/// Below a router that removes a prefix from the path (axum's `nest_service`), the rest is the path below the
/// root.
///
/// ```
/// use eyewall::Options;
/// use eyewall_tower::files::{FileCache, ServeDir, ServeFile, Symlinks};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let root = tempfile::tempdir()?;
/// # let root = root.path();
/// let files = FileCache::new(Options::new().size(64 << 20).anonymous()?); let site = ServeDir::new(root,
/// &files)?
///     .precompressed(true)
///     .symlinks(Symlinks::None)
///     .not_found_service(ServeFile::new(root.join("404.html"), &files));
/// # let _ = site;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ServeDir<F = NoFallback> {
    serving: Serving,
    fallback: Option<F>,
    /// Whether the fallback's responses are sent as 404.
    is_not_found: bool,
    falls_back_on_method: bool,
}

/// Everything except the fallback.
#[derive(Debug, Clone)]
struct Serving {
    folder: Folder,
    cache_name: Option<Arc<str>>,
}

/// The outcome of a request.
enum Outcome {
    Response(Response<Body>),
    /// There is no such file. The response, if no fallback answers instead.
    Nothing(fn(&http::Method) -> Response<Body>),
    /// The method is neither GET nor HEAD.
    Method,
}

impl ServeDir {
    /// Serves an existing folder. It is looked up by its path each time, so that a root that is a symbolic
    /// link can be switched to another folder meanwhile. A relative path starts at the present working
    /// directory.
    ///
    /// # Errors
    /// The system's error, with the folder's path: the folder is missing or can't be read. `Unsupported`
    /// before Linux 5.6, which lacks `openat2`.
    pub fn new(root: impl AsRef<Path>, files: &FileCache) -> io::Result<Self> {
        let root = root.as_ref();
        let folder = Folder::open(root, files, FolderOptions::default()).map_err(|error| {
            let shown = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
            io::Error::new(error.kind(), format!("can't serve the folder {}: {error}", shown.display()))
        })?;
        let serving = Serving { folder, cache_name: None };
        Ok(Self { serving, fallback: None, is_not_found: false, falls_back_on_method: false })
    }
}

impl<F> ServeDir<F> {
    /// Whether a folder is answered with its `index.html` if the path ends with a slash, and with a redirect
    /// to there if it doesn't. The default is true. If false, folders are not found.
    pub fn append_index_html_on_directories(self, yes: bool) -> Self {
        self.index(yes.then_some("index.html"))
    }

    /// Sets other names than `index.html`; the first that exists is sent.
    pub fn index(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.with(|options| options.index = names.into_iter().map(Into::into).collect())
    }

    /// Whether precompressed files (`name.br`, `name.zst`, `name.gz`) are sent in place of `name`, if the
    /// client accepts them and they aren't older. The default is false.
    pub fn precompressed(self, yes: bool) -> Self {
        self.with(|options| options.precompressed = yes)
    }

    /// Which symbolic links below the root to follow. The default is those that stay below it.
    pub fn symlinks(self, followed: Symlinks) -> Self {
        self.with(|options| options.symlinks = followed)
    }

    /// Whether to serve names that begin with a dot. The default is false.
    pub fn dotfiles(self, yes: bool) -> Self {
        self.with(|options| options.dotfiles = yes)
    }

    /// Adds the field `Cache-Status` (RFC 9211) to responses, with this name of the cache. By default they
    /// don't have it.
    pub fn cache_status(mut self, name: impl Into<Arc<str>>) -> Self {
        self.serving.cache_name = Some(name.into());
        self
    }

    /// Sets the service that answers requests for missing files, and for paths that no file can have. It gets
    /// the original request.
    pub fn fallback<G>(self, fallback: G) -> ServeDir<G> {
        let Self { serving, falls_back_on_method, .. } = self;
        ServeDir { serving, fallback: Some(fallback), is_not_found: false, falls_back_on_method }
    }

    /// Like `fallback`, but sends its responses as 404, whatever their status. The service doesn't get the
    /// request's conditions and ranges, which apply only to what exists (RFC 9110, sections 13.2.1 and 14.2).
    pub fn not_found_service<G>(self, service: G) -> ServeDir<G> {
        ServeDir { is_not_found: true, ..self.fallback(service) }
    }

    /// Whether the fallback also gets requests whose method is neither GET nor HEAD. The default is false:
    /// they get a 405.
    pub fn call_fallback_on_method_not_allowed(self, yes: bool) -> Self {
        Self { falls_back_on_method: yes, ..self }
    }

    fn with(mut self, set: impl FnOnce(&mut FolderOptions)) -> Self {
        let mut options = self.serving.folder.options().clone();
        set(&mut options);
        self.serving.folder = self.serving.folder.with_options(options);
        self
    }
}

impl Serving {
    async fn serve(&self, request: &Parts) -> Outcome {
        let method = &request.method;
        if !reply::is_answered(method) {
            return Outcome::Method;
        }
        let path = match FilePath::parse(request.uri.path(), self.folder.serves_dotfiles()) {
            Ok(path) => path,
            Err(Refusal::Malformed) => return Outcome::Nothing(reply::malformed),
            Err(Refusal::Hidden) => return Outcome::Nothing(reply::not_found),
        };
        let asked = message::Request { method, fields: &request.headers };
        match self.folder.answer(&path, asked).await {
            Ok(Answered::File(answer)) => Outcome::Response(reply::file(method, *answer, self.cache_name.as_deref())),
            Ok(Answered::Folder) => {
                let location = path.folder_location();
                let name = location.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                Outcome::Response(reply::to_folder(method, name, request.uri.query()))
            }
            Ok(Answered::Nothing) => Outcome::Nothing(reply::not_found),
            Err(error) => Outcome::Response(reply::failed(method, &error)),
        }
    }
}

impl<F, B, G> Service<Request<B>> for ServeDir<F>
where
    F: Service<Request<B>, Response = Response<G>, Error = Infallible> + Clone + Send + 'static,
    F::Future: Send,
    B: Send + 'static,
    G: http_body::Body<Data = Bytes> + Send + 'static,
    G::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.fallback.as_mut().map_or(Poll::Ready(Ok(())), |fallback| fallback.poll_ready(context))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // Call the instance that was polled ready; its clone may not be.
        let fallback = self.fallback.as_mut().map(|ready| {
            let clone = ready.clone();
            mem::replace(ready, clone)
        });
        let (serving, falls_back_on_method, is_not_found) =
            (self.serving.clone(), self.falls_back_on_method, self.is_not_found);
        ResponseFuture::of(async move {
            let (mut parts, body) = request.into_parts();
            let alone = match serving.serve(&parts).await {
                Outcome::Response(response) => return response,
                Outcome::Method if !falls_back_on_method => return reply::method_not_allowed(&parts.method),
                Outcome::Method => reply::method_not_allowed,
                Outcome::Nothing(alone) => alone,
            };
            let Some(mut fallback) = fallback else { return alone(&parts.method) };
            if is_not_found {
                for name in &CONDITIONS {
                    // Append all values of the field.
                    parts.headers.remove(name);
                }
            }
            let Ok(response) = fallback.call(Request::from_parts(parts, body)).await;
            let mut response = response.map(|body| Body::other(body.map_err(io::Error::other).boxed_unsync()));
            if is_not_found {
                *response.status_mut() = StatusCode::NOT_FOUND;
            }
            response
        })
    }
}
