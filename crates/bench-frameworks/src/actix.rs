//! actix-web with the service `Files` of actix-files, as both have it by default.

use actix_files::Files;
use actix_web::{App, HttpServer};

use crate::error::{Error, Result};
use crate::serving::{Serving, tell};

/// How long open connections may take to end.
const GRACE_SECONDS: u64 = 1;

/// Serves until a signal, which actix handles itself.
pub(crate) fn serve(serving: &Serving) -> Result<()> {
    let root = serving.root.clone();
    actix_web::rt::System::new().block_on(async {
        let server = HttpServer::new(move || App::new().service(Files::new("/files", root.clone())))
            .workers(serving.workers())
            .shutdown_timeout(GRACE_SECONDS)
            // Rocket does so by default.
            .tcp_nodelay(true)
            .bind(serving.listen)
            .map_err(serving.refused())?;
        for address in server.addrs() {
            tell("actix-files", address)?;
        }
        server.run().await.map_err(Error::io("serving"))
    })
}
