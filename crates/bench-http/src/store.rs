//! A page cache on a store of the engine's benchmark: the same server on a volume of Eyewall and on a file for each entry.
//!
//! A faster store makes a page faster by less, since HTTP and the kernel take most of the time of a request. Entries
//! hold bodies; the fields of a response are those of the bare server. With every store, a value is copied once into
//! the response, since the benchmark's stores only lend their bytes. A server made for one store needs no such copy:
//! `eyewall serve` makes none, and a file server reads into the response.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use eyewall_bench::store::{Handle, Place, Store};
use eyewall_bench::stores::{Files, Volume};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode, Uri};

use crate::error::Result;
use crate::listen;
use crate::objects::{Asked, Objects};
use crate::origin_client::Origin;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The origin for pages that aren't stored, as http://HOST:PORT
    origin: Uri,
    /// The store for the entries
    #[arg(long)]
    store: Kind,
    /// An empty directory for the store
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// The cap of the store in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    cap: u64,
    /// Bytes of a typical object
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 10)]
    typical: usize,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Kind {
    /// A volume
    Eyewall,
    /// A file for each entry, and a janitor
    FilePerEntry,
}

/// Serves until standard input ends.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let origin = Origin::at(&arguments.origin)?;
    let (cap_bytes, value_bytes) = (arguments.cap << 20, arguments.typical);
    let place = Place::new(&arguments.directory, cap_bytes, value_bytes);
    match arguments.store {
        Kind::Eyewall => serve(Volume::NAME, until_the_end(Volume::create(&place)?).handle(), origin),
        Kind::FilePerEntry => {
            serve(Files::NAME, until_the_end(Files::create(place.directory, place.cap_bytes)?).handle(), origin)
        }
    }
}

/// The store is used until the process ends, so it is never dropped.
fn until_the_end<S: Store>(store: S) -> &'static S {
    Box::leak(Box::new(store))
}

fn serve<H: Handle + Send + 'static>(name: &str, handle: H, origin: Origin) -> Result<()> {
    let pages = Arc::new(Pages { handle: Mutex::new(handle), objects: Objects::of_cache(), origin });
    listen::run(name, move |request| {
        let pages = Arc::clone(&pages);
        async move { pages.answer(request).await }
    })
}

struct Pages<H> {
    /// The handle of the only thread.
    handle: Mutex<H>,
    /// For the fields of responses.
    objects: Objects,
    origin: Origin,
}

impl<H: Handle + Send> Pages<H> {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let Some(Asked { bytes, .. }) = Asked::by(request.uri().path()) else {
            return failed(StatusCode::NOT_FOUND);
        };
        let key = request.uri().path().to_owned();
        let body = match self.stored(&key) {
            Ok(Some(body)) => body,
            Ok(None) => match self.fetched(&key, request).await {
                Ok(body) => body,
                Err(status) => return failed(status),
            },
            Err(failure) => {
                eprintln!("bench-http: {failure}");
                return failed(StatusCode::INTERNAL_SERVER_ERROR);
            }
        };
        let mut response = Response::new(Full::new(body));
        *response.headers_mut() = self.objects.get(bytes).fields;
        response
    }

    fn stored(&self, key: &str) -> eyewall_bench::error::Result<Option<Bytes>> {
        let mut body = None;
        let mut handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        handle.get(key.as_bytes(), |value| body = Some(Bytes::copy_from_slice(value)))?;
        Ok(body)
    }

    /// Fetches the body from the origin and stores it; or the status for the client.
    async fn fetched(&self, key: &str, request: Request<Incoming>) -> std::result::Result<Bytes, StatusCode> {
        let response = self.origin.answer(request).await.ok_or(StatusCode::BAD_GATEWAY)?;
        if response.status() != StatusCode::OK {
            return Err(response.status());
        }
        let body = response.into_body().collect().await.map_err(|_| StatusCode::BAD_GATEWAY)?.to_bytes();
        let mut handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(failure) = handle.put(key.as_bytes(), &body) {
            // The client still gets the page; the benchmark notices if a page is never a hit.
            eprintln!("bench-http: {failure}");
        }
        Ok(body)
    }
}

fn failed(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}
