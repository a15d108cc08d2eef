//! Rocket with a route that opens a `NamedFile`, as in Rocket's guide.

use std::path::PathBuf;

use rocket::State;
use rocket::fs::NamedFile;

use crate::error::Result;
use crate::on_rocket;
use crate::serving::Serving;

#[rocket::get("/<file..>")]
async fn file(file: PathBuf, root: &State<PathBuf>) -> Option<NamedFile> {
    NamedFile::open(root.join(file)).await.ok()
}

/// Serves until a signal.
pub(crate) fn serve(serving: &Serving) -> Result<()> {
    let rocket = on_rocket::configured(serving).manage(serving.root.clone());
    on_rocket::serve(serving, "rocket-namedfile", rocket.mount("/files", rocket::routes![file]))
}
