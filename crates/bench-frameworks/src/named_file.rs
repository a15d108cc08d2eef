//! Rocket with a route that opens a `NamedFile`, as its guide has it.

use std::net::SocketAddr;
use std::path::PathBuf;

use rocket::fairing::AdHoc;
use rocket::fs::NamedFile;
use rocket::{Build, Config, Rocket, State};

use crate::error::{Error, Result};
use crate::serving::{Serving, tell};

/// What connections that are still open are given to end, in seconds; then as much again.
const GRACE_SECONDS: u32 = 1;

#[rocket::get("/<file..>")]
async fn file(file: PathBuf, root: &State<PathBuf>) -> Option<NamedFile> {
    NamedFile::open(root.join(file)).await.ok()
}

/// Serves until a signal comes.
pub(crate) fn serve(serving: &Serving) -> Result<()> {
    let rocket = configured(serving).manage(serving.root.clone());
    run(serving, "rocket-namedfile", rocket.mount("/files", rocket::routes![file]))
}

/// Rocket as released, without its log. It hears signals itself.
fn configured(serving: &Serving) -> Rocket<Build> {
    let mut config = Config {
        address: serving.listen.ip(),
        port: serving.listen.port(),
        workers: serving.workers(),
        log_level: rocket::log::LogLevel::Off,
        ..Config::release_default()
    };
    (config.shutdown.grace, config.shutdown.mercy) = (GRACE_SECONDS, GRACE_SECONDS);
    rocket::custom(config)
}

/// Rocket on a runtime of its own.
fn run(serving: &Serving, name: &'static str, rocket: Rocket<Build>) -> Result<()> {
    let told = AdHoc::on_liftoff("first line", move |rocket| {
        Box::pin(async move {
            let config = rocket.config();
            if let Err(failure) = tell(name, SocketAddr::new(config.address, config.port)) {
                eprintln!("bench-frameworks: {failure}");
                rocket.shutdown().notify();
            }
        })
    });
    let launched = serving.runtime()?.block_on(rocket.attach(told).launch());
    launched.map(drop).map_err(|failure| match failure.kind() {
        rocket::error::ErrorKind::Bind(source) => {
            serving.refused()(std::io::Error::new(source.kind(), source.to_string()))
        }
        _ => Error::Rocket(failure.to_string()),
    })
}
