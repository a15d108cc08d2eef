//! The limits of a configuration, as `eyewall check` shows them.

use std::fmt::Display;

use eyewall_server::config::Site;
use eyewall_server::config::names::Network;
use eyewall_server::config::settings::Limits;
use eyewall_server::units;

use super::check::list;

/// The limits for clients that hold for the whole server; `None` without any.
pub(super) fn of_server(limits: &Limits) -> Option<String> {
    let memory = limits.memory.as_ref().map(|size| format!("{} of memory", units::size(size.get_ref().0)));
    let connections = [
        (limits.connections.as_ref().map(|number| number.0), ""),
        (limits.connections_per_listener.as_ref().map(|number| number.0), " at each address"),
        (limits.connections_per_client.as_ref().map(|number| number.0), " for each client"),
    ];
    let connections = connections
        .into_iter()
        .filter_map(|(number, whose)| Some(format!("{}{whose}", units::counted(number?, "connection", "connections"))));
    let burst = limits.request_burst.as_ref().map(|burst| burst.get_ref().0);
    let rate = limits.requests_per_second.as_ref().map(|rate| of_rate(rate.0, burst, "each client"));
    joined(memory.into_iter().chain(connections).chain(rate).chain(of_networks(&limits.allow, &limits.deny)))
}

/// The limits of a site; `None` without any.
pub(super) fn of_site(site: &Site) -> Option<String> {
    let limits = &site.limits;
    let burst = limits.request_burst.as_ref().map(|burst| burst.get_ref().0);
    let rate = limits.requests_per_second.as_ref().map(|rate| of_rate(rate.0, burst, "each client"));
    let burst = limits.total_request_burst.as_ref().map(|burst| burst.get_ref().0);
    let total = limits.total_requests_per_second.as_ref().map(|rate| of_rate(rate.0, burst, "all clients together"));
    let origin = limits.origin_requests.as_ref().map(|number| {
        let requests = units::counted(number.get_ref().0, "request", "requests");
        format!("{requests} to the origins at once")
    });
    joined(rate.into_iter().chain(total).chain(of_networks(&limits.allow, &limits.deny)).chain(origin))
}

fn of_rate(rate: u64, burst: Option<u64>, whose: &str) -> String {
    let requests = units::counted(rate, "request", "requests");
    format!("{requests} a second from {whose}, {} at once", units::count(burst.unwrap_or(rate)))
}

fn of_networks(allow: &[Network], deny: &[Network]) -> impl Iterator<Item = String> {
    let named =
        |words: &str, networks: &[Network]| (!networks.is_empty()).then(|| format!("{words} {}", list(networks)));
    named("only clients from", allow).into_iter().chain(named("no clients from", deny))
}

fn joined(parts: impl Iterator<Item = impl Display>) -> Option<String> {
    let parts: Vec<String> = parts.map(|part| part.to_string()).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
