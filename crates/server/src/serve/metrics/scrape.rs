//! What a scrape reads.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::{SystemTime, UNIX_EPOCH};

use eyewall_fleet_redis::NodeState;

use super::counters::{CLASSES, SiteCounters};
use super::families::{self, Family};
use super::origins::{OriginCounters, Reason};
use super::page::{Format, Page};
use super::process::Process;
use super::volume;
use crate::serve::outcome::Verdict;
use crate::serve::shared::Shared;

/// All metrics of the server, as a page. It may wait for locks.
pub(super) fn scrape(shared: &Shared, format: Format) -> String {
    let mut page = Page::new(format);
    let metrics = &shared.metrics;
    of_sites(&mut page, &metrics.sites());
    of_origins(&mut page, shared);
    volume::write(&mut page, shared);
    of_certificates(&mut page, shared);
    of_fleet(&mut page, shared);
    of_server(&mut page, shared);
    of_process(&mut page, metrics.started);
    page.end()
}

fn of_sites(page: &mut Page, sites: &BTreeMap<Box<str>, SiteCounters>) {
    let mut requests = page.family(&families::REQUESTS);
    for (site, counters) in sites {
        for (verdict, status, tally) in counters.answers() {
            requests.add(&[site, verdict.label(), &status.to_string()], tally.requests.get());
        }
    }
    let mut bytes = page.family(&families::RESPONSE_BYTES);
    for (site, counters) in sites {
        for (verdict, status, tally) in counters.answers() {
            bytes.add(&[site, verdict.label(), &status.to_string()], tally.bytes.get());
        }
    }
    let mut first_bytes = page.family(&families::FIRST_BYTE);
    for (site, counters) in sites {
        for (verdict, histogram) in Verdict::ALL.into_iter().zip(&counters.first_bytes) {
            // Each has many lines, and most sites never need most of them.
            if matches!(verdict, Verdict::Hit | Verdict::Miss) || histogram.count() > 0 {
                first_bytes.add_histogram(&[site, verdict.label()], histogram);
            }
        }
    }
    let mut of_each = |family: &'static Family, value: fn(&SiteCounters) -> u64| {
        let mut samples = page.family(family);
        for (site, counters) in sites {
            samples.add(&[site], value(counters));
        }
    };
    of_each(&families::COLLAPSED, |site| site.collapsed.get());
    of_each(&families::REMEMBERED, |site| site.remembered.get());
}

fn of_origins(page: &mut Page, shared: &Shared) {
    let all: Vec<_> = {
        let origins = super::lock(&shared.metrics.origins);
        origins.iter().map(|(labels, counters)| (labels.clone(), counters.clone())).collect()
    };
    let mut responses = page.family(&families::ORIGIN_RESPONSES);
    for ((site, origin), counters) in &all {
        for (class, count) in CLASSES.iter().zip(&counters.responses) {
            responses.add(&[site, origin, class], count.get());
        }
    }
    let mut of_each = |family: &'static Family, value: fn(&OriginCounters) -> u64| {
        let mut samples = page.family(family);
        for ((site, origin), counters) in &all {
            samples.add(&[site, origin], value(counters));
        }
    };
    of_each(&families::ORIGIN_BYTES, |origin| origin.bytes.get());
    of_each(&families::ORIGIN_RETRIES, |origin| origin.repeated.get());
    of_each(&families::ORIGIN_CONNECTED, |origin| origin.connections.get());
    of_each(&families::ORIGIN_CONNECTIONS, OriginCounters::open);
    let mut errors = page.family(&families::ORIGIN_ERRORS);
    for ((site, origin), counters) in &all {
        for (reason, count) in Reason::ALL.into_iter().zip(&counters.errors) {
            errors.add(&[site, origin, reason.label()], count.get());
        }
    }
    let mut first_bytes = page.family(&families::ORIGIN_FIRST_BYTE);
    for ((site, origin), counters) in &all {
        first_bytes.add_histogram(&[site, origin], &counters.first_byte);
    }
    let mut up = page.family(&families::ORIGIN_UP);
    for site in &shared.sites {
        let label = site.site.label();
        for (url, is_well) in site.origins.iter().flat_map(|origins| origins.health()) {
            up.add(&[&label, &url.to_string()], u8::from(is_well));
        }
    }
}

fn of_certificates(page: &mut Page, shared: &Shared) {
    let of_site = |number: usize| (shared.sites[number].site.label(), shared.certificates(number));
    let sites: Vec<_> = (0..shared.sites.len()).map(of_site).collect();
    let all = || sites.iter().flat_map(|(site, all)| all.iter().map(move |certificate| (site, certificate)));
    let mut expiry = page.family(&families::CERTIFICATE_EXPIRY);
    for (site, certificate) in all() {
        if let Some(expires) = certificate.expires() {
            expiry.add(&[site, certificate.file()], seconds(expires) as u64);
        }
    }
    let mut failures = page.family(&families::CERTIFICATE_FAILURES);
    for (site, certificate) in all() {
        failures.add(&[site, certificate.file()], certificate.failures());
    }
}

fn of_fleet(page: &mut Page, shared: &Shared) {
    if let Some(seen) = shared.fleet.as_ref().map(|fleet| fleet.this()) {
        let said = seen.said;
        alone(page, &families::FLEET_FOLLOWING, u8::from(said.state == NodeState::Following));
        alone(page, &families::FLEET_PENDING, said.pending);
        alone(page, &families::FLEET_GAPS, said.gaps);
        alone(page, &families::FLEET_BLIND, said.blind_ms as f64 / 1e3);
    }
    if let Some(status) = shared.second_level.as_ref().map(|level| level.status()) {
        let mut requests = page.family(&families::LEVEL_REQUESTS);
        for (result, count) in [
            ("hit", status.hits),
            ("miss", status.misses),
            ("failure", status.failures),
            ("skipped", status.skipped),
            ("outdated", status.outdated),
        ] {
            requests.add(&[result], count);
        }
    }
}

fn of_server(page: &mut Page, shared: &Shared) {
    let metrics = &shared.metrics;
    let figures = metrics.connections();
    alone(page, &families::CONNECTED, figures.accepted);
    let mut open = page.family(&families::CONNECTIONS);
    for (protocol, count) in [("http1", figures.http1), ("http2", figures.http2), ("tunnel", figures.tunnels)] {
        open.add(&[protocol], count);
    }
    alone(page, &families::FLIGHTS, shared.pages.in_flight());
    let mut busy = page.family(&families::WORKER_BUSY);
    for (number, time) in metrics.busy().into_iter().enumerate() {
        busy.add(&[&number.to_string()], time.as_secs_f64());
    }
    let mut lost = page.family(&families::LOG_LOST);
    for (log, lines) in shared.sinks.lost() {
        lost.add(&[&log], lines);
    }
    alone(page, &families::SPANS, shared.exporters.exported());
    alone(page, &families::SPANS_LOST, shared.exporters.lost());
    page.family(&families::BUILD).add(&[env!("CARGO_PKG_VERSION")], 1);
}

fn of_process(page: &mut Page, started: SystemTime) {
    let process = Process::of_this();
    for (family, value) in [
        (&families::ANONYMOUS, process.anonymous_bytes),
        (&families::RESIDENT, process.resident_bytes),
        (&families::DESCRIPTORS, process.descriptors),
        (&families::DESCRIPTORS_MAX, process.descriptors_max),
        (&families::THREADS, process.threads),
    ] {
        if let Some(value) = value {
            alone(page, family, value);
        }
    }
    if let Some(seconds) = process.cpu_seconds {
        alone(page, &families::CPU, seconds);
    }
    alone(page, &families::START, seconds(started));
}

/// Adds a family with one sample.
pub(super) fn alone(page: &mut Page, family: &'static Family, value: impl Display) {
    page.family(family).add(&[], value);
}

/// Since 1970.
fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
