//! axum with the `ServeDir` of tower-http, as both have it by default.

use axum::Router;
use tower_http::services::ServeDir;

use crate::error::Result;
use crate::on_axum;
use crate::serving::Serving;

/// Serves until a signal.
pub(crate) fn serve(serving: &Serving) -> Result<()> {
    let router = Router::new().nest_service("/files", ServeDir::new(&serving.root));
    on_axum::serve(serving, "tower-http-servedir", router)
}
