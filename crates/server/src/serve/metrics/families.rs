//! The names of all metrics. docs/operations/monitoring.md has the same list, which a test compares.

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Metrics of one name.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The names of its labels, except `le`.
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

macro_rules! families {
    ($($constant:ident: $kind:ident $name:literal $labels:tt $help:literal;)*) => {
        $(pub(super) const $constant: Family =
            Family { name: $name, kind: Kind::$kind, labels: &$labels, help: $help };)*
        /// All of them, in the order of the page.
        #[cfg(test)]
        const ALL: &[Family] = &[$($constant),*];
    };
}

families! {
    REQUESTS: Counter "eyewall_requests_total" ["site", "verdict", "status"]
        "Requests whose response began, by what the cache did.";
    RESPONSE_BYTES: Counter "eyewall_response_bytes_total" ["site", "verdict", "status"]
        "Bytes of bodies that were sent to clients.";
    FIRST_BYTE: Histogram "eyewall_first_byte_seconds" ["site", "verdict"]
        "Time from the head of a request to the head of its response.";
    COLLAPSED: Counter "eyewall_collapsed_requests_total" ["site"]
        "Requests that were answered by the response to another request.";
    REMEMBERED: Counter "eyewall_remembered_failures_total" ["site"]
        "Requests that were answered by a remembered failure of an origin.";

    ORIGIN_RESPONSES: Counter "eyewall_origin_responses_total" ["site", "origin", "status"]
        "Responses of origins, by the class of their status.";
    ORIGIN_BYTES: Counter "eyewall_origin_response_bytes_total" ["site", "origin"]
        "Bytes of bodies that came from origins.";
    ORIGIN_ERRORS: Counter "eyewall_origin_errors_total" ["site", "origin", "reason"]
        "Requests to origins that got no response, or a part of one.";
    ORIGIN_RETRIES: Counter "eyewall_origin_retries_total" ["site", "origin"]
        "Requests that were sent to this origin after an attempt without a response.";
    ORIGIN_FIRST_BYTE: Histogram "eyewall_origin_first_byte_seconds" ["site", "origin"]
        "Time from a request to the head of the origin's response, with connecting.";
    ORIGIN_CONNECTED: Counter "eyewall_origin_connections_total" ["site", "origin"]
        "Connections that were opened to origins.";
    ORIGIN_CONNECTIONS: Gauge "eyewall_origin_open_connections" ["site", "origin"]
        "Connections to origins that are open.";
    ORIGIN_UP: Gauge "eyewall_origin_up" ["site", "origin"]
        "1 if requests go to the origin, 0 if it is left out because it fails.";

    VOLUME_FAILED: Gauge "eyewall_volume_failed" []
        "1 if the volume has failed and the server goes on without it, otherwise 0.";
    VOLUME_SIZE: Gauge "eyewall_volume_size_bytes" []
        "Size of the volume, which is fixed.";
    VOLUME_DATA: Gauge "eyewall_volume_data_bytes" []
        "Bytes of the volume that entries can use.";
    VOLUME_LIVE: Gauge "eyewall_volume_live_bytes" []
        "Bytes of entries that can be found.";
    VOLUME_ENTRIES: Gauge "eyewall_volume_entries" []
        "Entries that can be found.";
    VOLUME_INDEX: Gauge "eyewall_volume_index_slots" ["state"]
        "Slots of the index: live ones, ghosts of evicted entries, and free ones.";
    VOLUME_LOOKUPS: Counter "eyewall_volume_lookups_total" ["result"]
        "Look-ups of all processes that have the volume open, by hit and miss.";
    VOLUME_PUTS: Counter "eyewall_volume_puts_total" []
        "Entries stored.";
    VOLUME_REFUSED: Counter "eyewall_volume_refused_puts_total" []
        "Puts that were refused because readers held too much.";
    VOLUME_BUSY: Counter "eyewall_volume_busy_total" []
        "Operations that gave up while they waited for a lock.";
    VOLUME_EVICTIONS: Counter "eyewall_volume_evictions_total" ["reason"]
        "Entries that were dropped: cold, expired, damaged, purged, or without a slot of the index.";
    VOLUME_EVICTION_AGE: Gauge "eyewall_volume_eviction_age_seconds" []
        "Age of the entry that was evicted last.";
    VOLUME_WRITTEN: Counter "eyewall_volume_written_bytes_total" ["cause"]
        "Bytes written to the volume, by puts and by copies of entries that stay. All of them by those of puts are the write amplification.";
    VOLUME_PINS: Gauge "eyewall_volume_pins" []
        "Entries that are held now, by hits and by puts under way.";
    VOLUME_PURGES: Counter "eyewall_volume_purges_total" []
        "Purges of tags, of prefixes and of everything.";
    VOLUME_OVERFLOWS: Counter "eyewall_volume_purge_overflows_total" []
        "Purges that removed more than they asked for.";
    VOLUME_REPAIRS: Counter "eyewall_volume_repairs_total" []
        "Parts of the volume that were repaired after a process had died.";
    VOLUME_RESETS: Counter "eyewall_volume_resets_total" []
        "Parts of the volume that were emptied because they were damaged.";
    VOLUME_PROCESSES: Gauge "eyewall_volume_processes" []
        "Processes that have the volume open for writing.";
    SCRUBBED: Counter "eyewall_scrubbed_bytes_total" []
        "Bytes of entries that the scrubs of this server have checked.";
    SCRUB_DROPPED: Counter "eyewall_scrub_dropped_total" []
        "Damaged entries that the scrubs of this server have dropped.";
    TIER_LIVE: Gauge "eyewall_tier_live_bytes" []
        "Bytes of copies in the tier.";
    TIER_HITS: Counter "eyewall_tier_hits_total" []
        "Look-ups that the tier answered.";
    TIER_EVICTIONS: Counter "eyewall_tier_evictions_total" []
        "Copies in the tier that were evicted for others.";

    CERTIFICATE_EXPIRY: Gauge "eyewall_certificate_expiry_timestamp_seconds" ["site", "file"]
        "Time at which a certificate ends to be valid, in seconds since 1970.";
    CERTIFICATE_FAILURES: Gauge "eyewall_certificate_renewal_failures" ["site", "file"]
        "Attempts to renew a certificate that failed since the last success.";

    FLEET_FOLLOWING: Gauge "eyewall_fleet_following" []
        "1 if the node follows the purge log of its fleet, 0 if it is blind and revalidates.";
    FLEET_PENDING: Gauge "eyewall_fleet_pending_purges" []
        "Purges that the log doesn't have yet.";
    FLEET_GAPS: Counter "eyewall_fleet_gaps_total" []
        "Times at which lines of the log may have been missing.";
    FLEET_BLIND: Counter "eyewall_fleet_blind_seconds_total" []
        "Time for which the node was blind.";
    LEVEL_REQUESTS: Counter "eyewall_second_level_requests_total" ["result"]
        "Misses that asked the second level, or skipped it.";

    CONNECTED: Counter "eyewall_connections_accepted_total" []
        "Connections of clients that were accepted.";
    CONNECTIONS: Gauge "eyewall_connections" ["protocol"]
        "Connections of clients that are open.";
    FLIGHTS: Gauge "eyewall_flights" []
        "Responses of origins that other requests wait for, or that are being stored.";
    WORKER_BUSY: Counter "eyewall_worker_busy_seconds_total" ["worker"]
        "Time for which a worker had work. Its rate is the busy share.";
    LOG_LOST: Counter "eyewall_access_log_lost_lines_total" ["log"]
        "Lines of an access log that were not written, because it was too slow or failed.";
    SPANS: Counter "eyewall_spans_exported_total" []
        "Spans that the collector has taken.";
    SPANS_LOST: Counter "eyewall_spans_lost_total" []
        "Spans that the collector has not taken, because it was too slow, failed or rejected them.";
    BUILD: Gauge "eyewall_build_info" ["version"]
        "1, with the version as a label.";
    ANONYMOUS: Gauge "eyewall_anonymous_memory_bytes" []
        "Memory of the process that is no file and no volume.";
    RESIDENT: Gauge "process_resident_memory_bytes" []
        "Memory of the process, with the part of the volume that it has touched.";
    DESCRIPTORS: Gauge "process_open_fds" []
        "Descriptors that are open.";
    DESCRIPTORS_MAX: Gauge "process_max_fds" []
        "The most descriptors that the process may open.";
    THREADS: Gauge "process_threads" []
        "Threads of the process.";
    CPU: Counter "process_cpu_seconds_total" []
        "Processor time of the process.";
    START: Gauge "process_start_time_seconds" []
        "Time at which the server began, in seconds since 1970.";
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = include_str!("../../../../../docs/operations/monitoring.md");

    #[test]
    fn each_metric_is_documented_and_no_other() {
        let row = |family: &Family| {
            let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
            let labels = if labels.is_empty() { "-".to_owned() } else { labels.join(", ") };
            format!("| `{}` | {} | {labels} | {} |", family.name, family.kind.word(), family.help.trim_end_matches('.'))
        };
        let expected: Vec<String> = ALL.iter().map(row).collect();
        let is_row = |line: &&str| line.starts_with("| `eyewall_") || line.starts_with("| `process_");
        let documented: Vec<&str> = DOCUMENT.lines().filter(is_row).collect();
        assert_eq!(documented, expected, "the table should be:\n{}", expected.join("\n"));
    }

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        for Family { name, kind, help, .. } in ALL {
            assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
            assert!(help.ends_with('.') && !name.contains("milli"), "{name}");
        }
    }
}
