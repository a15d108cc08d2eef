//! axum, on a runtime of its own.

use axum::Router;
use axum::serve::ListenerExt as _;

use crate::error::{Error, Result};
use crate::serving::{Serving, ending, tell};

/// Serves until a signal.
pub(crate) fn serve(serving: &Serving, name: &str, router: Router) -> Result<()> {
    serving.runtime()?.block_on(async {
        let listener = serving.bind().await?;
        let address = listener.local_addr().map_err(Error::io("the port"))?;
        let ending = ending()?;
        tell(name, address)?;
        // Rocket sets this by default. An error means that the connection is gone, so ignore it.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        axum::serve(listener, router).with_graceful_shutdown(ending).await.map_err(Error::io("serving"))
    })
}
