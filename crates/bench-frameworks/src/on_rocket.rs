//! Rocket, on a runtime of its own.

use std::io;
use std::net::SocketAddr;

use rocket::error::ErrorKind;
use rocket::fairing::AdHoc;
use rocket::{Build, Config, Rocket};

use crate::error::{Error, Result};
use crate::serving::{Serving, tell};

/// How many seconds open connections may take to end; then as many again.
const GRACE_SECONDS: u32 = 1;

/// Rocket's release configuration, without its log.
pub(crate) fn configured(serving: &Serving) -> Rocket<Build> {
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

/// Serves until a signal, which Rocket handles itself.
pub(crate) fn serve(serving: &Serving, name: &'static str, rocket: Rocket<Build>) -> Result<()> {
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
        ErrorKind::Bind(source) => serving.refused()(io::Error::new(source.kind(), source.to_string())),
        _ => Error::Rocket(failure.to_string()),
    })
}
