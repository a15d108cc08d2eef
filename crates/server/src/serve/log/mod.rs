//! The access log: a line for each request, in NCSA combined format, in JSON, or in a form of the operator's.
//!
//! ```text
//! logs: by site ──> lines: a form, a sample, a sink
//! connection ──> entry    from the head of a request until the last byte of its response has left
//!                  └────> a queue of `batching` ──> writer: a thread for each sink, which batches ──> a file, standard output, or syslog
//! form, escape: the form of a line         origin_time: the time of the origin
//! ```
//!
//! No worker ever waits for a sink. If the writer doesn't keep up, lines are dropped and counted. A line waits for others
//! at most a second, and a graceful end writes all lines.
//!
//! # What is absent
//! Rotation: SIGUSR1 and SIGHUP reopen files, as logrotate and similar tools need it. The bytes of an upgraded connection. Secrets: no
//! form can name a field that usually has one.

mod entry;
mod escape;
mod form;
mod logged_request;
mod origin_time;
mod sinks;
mod syslog;
#[cfg(test)]
mod tests;
mod writer;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use http::StatusCode;

use super::{batching, random};
use crate::config::Config;
use crate::config::access_log::{AccessLog, SiteAccessLog};
use crate::serve::error::Error;
use crate::sites::Sites;
pub(crate) use entry::Entry;
use form::Form;
pub(crate) use logged_request::LoggedRequest;
pub(crate) use origin_time::{counted, measured};
use sinks::Sink;
pub(crate) use sinks::{LastLines, Sinks};
use toml::Spanned;

/// If this many bytes wait, lines are dropped: the disk, or the reader of standard output, is too slow.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// This many bytes are written without waiting for more.
const BATCH_BYTES: usize = 256 << 10;

/// Bytes of whole lines that wait for the writer.
type Queue = batching::Queue<u8>;

/// The access logs by one configuration.
#[derive(Default)]
pub(crate) struct Logs {
    /// That of requests which belong to no site.
    server: Option<Lines>,
    /// In the order of the configuration.
    sites: Vec<OfSite>,
    /// Whether a site has another log than the server.
    differ: bool,
}

struct OfSite {
    label: Box<str>,
    lines: Option<Lines>,
}

/// The form of lines, and where they go.
#[derive(Clone)]
pub(crate) struct Lines {
    sink: Arc<Sink>,
    form: Arc<Form>,
    /// The share of the requests that have a line.
    sample: f64,
}

impl Logs {
    /// Opens the sinks that aren't open yet.
    ///
    /// # Errors
    /// [`Error::AccessLog`], if a sink can't be opened; [`Error::Start`], if the system gives no thread or signal.
    pub(crate) fn open(config: &Config, by_host: &Sites, sinks: &Sinks) -> Result<Self, Error> {
        let open = |log: &AccessLog| {
            let (form, sample) = (Arc::new(Form::of(&log.format)), log.sample.0);
            sinks.open(&log.path).map(|sink| Lines { sink, form, sample })
        };
        let server = config.server.access_log.as_ref().map(Spanned::get_ref);
        let lines = server.map(open).transpose()?;
        let mut sites = Vec::new();
        for site in by_host {
            let own = site.settings.access_log.as_ref();
            let of_site = match own {
                Some(_) => SiteAccessLog::of_site(own, server).as_ref().map(open).transpose()?,
                None => lines.clone(),
            };
            sites.push(OfSite { label: site.label().into(), lines: of_site });
        }
        let differ = by_host.iter().any(|site| site.settings.access_log.is_some());
        Ok(Self { server: lines, sites, differ })
    }

    /// Whether any request has a line.
    pub(crate) fn is_on(&self) -> bool {
        self.server.is_some() || self.sites.iter().any(|site| site.lines.is_some())
    }

    /// Whether it matters to which site a request belongs.
    pub(crate) fn differ(&self) -> bool {
        self.differ
    }

    /// The log of a site, if its requests have one.
    fn of(&self, site: Option<usize>) -> Option<&Lines> {
        match site.and_then(|site| self.sites.get(site)) {
            Some(site) => site.lines.as_ref(),
            None => self.server.as_ref(),
        }
    }

    /// The name of a site.
    pub(crate) fn label(&self, site: Option<usize>) -> Option<&str> {
        self.sites.get(site?).map(|site| &*site.label)
    }

    /// The line of a request for this site whose head was whole at that time.
    pub(crate) fn entry(
        &self,
        site: Option<usize>,
        request: &LoggedRequest<'_>,
        client: IpAddr,
        started: Instant,
    ) -> Option<Entry> {
        self.of(site).map(|lines| Entry::new(lines.clone(), request, client, started))
    }

    /// The line of a hit of the fast path with this head, if it is to have one.
    pub(crate) fn entry_of_hit(
        &self,
        site: Option<usize>,
        request: &LoggedRequest<'_>,
        (client, started): (IpAddr, Instant),
        (status, head): (StatusCode, &[u8]),
    ) -> Option<Entry> {
        let lines = self.of(site).filter(|lines| status.is_server_error() || lines.is_sampled())?;
        let mut entry = Entry::new(lines.clone(), request, client, started).certain();
        entry.answered_by_hit(status, head, self.label(site));
        Some(entry)
    }

    /// Writes the line of bytes that were not a request, and were refused with this status.
    pub(crate) fn refused(&self, client: IpAddr, status: StatusCode) {
        drop(self.server.clone().map(|lines| Entry::of_refusal(lines, client, status)));
    }
}

impl Lines {
    fn is_sampled(&self) -> bool {
        random::is_within(self.sample)
    }
}

fn new_queue() -> Queue {
    Queue::new(batching::Lengths { waiting_max: WAITING_BYTES_MAX, batch: BATCH_BYTES })
}
