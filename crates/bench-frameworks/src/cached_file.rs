//! Rocket with the route of [`crate::named_file`], with a `CachedFile` of `eyewall-rocket`.

use std::path::PathBuf;

use eyewall_rocket::{CachedFile, FileCache};
use rocket::State;

use crate::error::Result;
use crate::on_rocket;
use crate::serving::Serving;

#[rocket::get("/<file..>")]
async fn file(file: PathBuf, root: &State<PathBuf>, cache: &State<FileCache>) -> Option<CachedFile> {
    CachedFile::open(root.join(file), cache).await.ok()
}

/// Serves until a signal.
pub(crate) fn serve(serving: &Serving) -> Result<()> {
    let rocket = on_rocket::configured(serving).manage(serving.root.clone()).manage(serving.files()?);
    on_rocket::serve(serving, "rocket-eyewall", rocket.mount("/files", rocket::routes![file]))
}
