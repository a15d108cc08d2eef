//! What `GET /status` tells.

use std::time::Duration;

use eyewall::Cache;
use serde::Serialize;

use crate::serve::shared::{Shared, SharedSite};
use crate::tools::stat;

/// How the server is doing.
#[derive(Serialize)]
pub(super) struct Status {
    version: &'static str,
    process: u32,
    uptime_seconds: u64,
    sites: Vec<SiteStatus>,
    /// Answers of origins that others wait for, or that are on their way into the volume.
    flights: usize,
    /// What `eyewall stat --json` says.
    volume: serde_json::Value,
}

#[derive(Serialize)]
struct SiteStatus {
    hosts: Vec<String>,
    aliases: Vec<String>,
    root: Option<String>,
    origins: Vec<String>,
}

impl Status {
    /// It waits for locks.
    ///
    /// # Errors
    /// Those of the engine.
    pub(super) fn of(shared: &Shared, cache: &Cache, uptime: Duration) -> eyewall::Result<Self> {
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            process: std::process::id(),
            uptime_seconds: uptime.as_secs(),
            sites: shared.sites.iter().map(SiteStatus::of).collect(),
            flights: shared.pages.in_flight.count(),
            volume: stat::summary(cache)?,
        })
    }
}

impl SiteStatus {
    fn of(site: &SharedSite) -> Self {
        let settings = &site.site.settings;
        Self {
            hosts: settings.hosts.iter().map(|host| host.get_ref().to_string()).collect(),
            aliases: settings.aliases.iter().map(|alias| alias.get_ref().to_string()).collect(),
            root: settings.root.as_ref().map(|root| root.get_ref().display().to_string()),
            origins: settings.origins.iter().map(|url| url.get_ref().to_string()).collect(),
        }
    }
}
