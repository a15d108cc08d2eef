//! axum with the `ServeDir` of `eyewall-tower`.

use axum::Router;
use eyewall_tower::ServeDir;

use crate::error::{Error, Result};
use crate::on_axum;
use crate::serving::Serving;

/// Serves until a signal.
pub(crate) fn serve(serving: &Serving) -> Result<()> {
    let folder = ServeDir::new(&serving.root, &serving.files()?).map_err(Error::io("the folder"))?;
    on_axum::serve(serving, "tower-eyewall", Router::new().nest_service("/files", folder))
}
