//! Checks that need more than one key, or the disk: `[server]` and `[cache]`, and the hosts of several sites.

use std::collections::HashMap;

use toml::Spanned;

use super::check_limits::burst;
use super::check_path::{file, folder, has_folder};
use super::listen::ListenAddress;
use super::problem::Fault;
use super::settings::{Admin, CACHE_SIZE_DEFAULT, Server, Settings, Volume};
use super::{access_log, check_site, check_tls, fleet, memory, site, trace};
use crate::units;

/// Reports all mistakes.
pub(super) fn settings(settings: &Settings, faults: &mut Vec<Fault>) {
    server(&settings.server, faults);
    cache(&settings.cache, faults);
    if let Some(found) = &settings.fleet {
        fleet::check(found, faults);
    }
    if settings.site.is_empty() {
        let hint = "add a table [[site]] with `origins` or a `root`";
        faults.push(Fault::absence(0..0, "there is no site to serve", hint));
    }
    for site in &settings.site {
        check_site::site(site, faults);
    }
    memory::check(&settings.server, &settings.site, faults);
    hosts(&settings.site, faults);
    check_tls::settings(settings, faults);
}

fn server(server: &Server, faults: &mut Vec<Fault>) {
    if server.listen.as_ref().is_some_and(Vec::is_empty) && server.https_addresses().is_empty() {
        let hint = "give at least one address, such as listen = [\"127.0.0.1:8080\"]";
        faults.push(Fault::absence(0..0, "`listen` of [server] is empty", hint));
    }
    let addresses: Vec<_> = server.http_addresses().iter().chain(server.https_addresses()).collect();
    for (index, address) in addresses.iter().enumerate() {
        let is_again = addresses[..index].iter().any(|before| before.get_ref() == address.get_ref());
        if is_again && !address.get_ref().is_any_port() {
            let list =
                if index < server.http_addresses().len() { "`listen` has" } else { "`listen` and `listen_tls` have" };
            faults.push(Fault::new(address.span(), format!("{list} {} twice", address.get_ref()), "remove one"));
        }
    }
    listeners(server, faults);
    if let Some(log) = &server.access_log {
        access_log::check(log.span(), &log.get_ref().path, faults);
    }
    if let Some(found) = &server.tracing {
        trace::check(found, faults);
    }
    if let Some(found) = &server.admin {
        admin(found, faults);
    }
    burst(server.limits.requests_per_second.as_ref(), server.limits.request_burst.as_ref(), faults);
    for path in server.sandbox_read.iter().chain(&server.sandbox_write) {
        folder(path, "the sandbox", faults);
    }
    if let Some(token) = &server.purge_token_file {
        file(token, "the token of PURGE", faults);
    }
}

/// Unix sockets, and the addresses with the PROXY protocol.
fn listeners(server: &Server, faults: &mut Vec<Fault>) {
    for address in server.http_addresses().iter().chain(server.https_addresses()) {
        if let ListenAddress::Unix(path) = address.get_ref()
            && !has_folder(path)
        {
            let message = format!("the folder of the socket {} doesn't exist", path.display());
            let hint =
                "create it first, or give another path; systemd creates the folders of a unit when it starts the unit";
            faults.push(Fault::new(address.span(), message, hint));
        }
    }
    for address in &server.proxy_protocol {
        let mut addresses = server.http_addresses().iter().chain(server.https_addresses());
        if !addresses.any(|other| other.get_ref() == address.get_ref()) {
            let message = format!("`proxy_protocol` has {}, which is not in `listen`", address.get_ref());
            faults.push(Fault::absence(address.span(), message, "add it to `listen`, or remove it here"));
        }
    }
    let of_network = |address: &&Spanned<ListenAddress>| matches!(address.get_ref(), ListenAddress::Tcp(_));
    let from = &server.proxy_protocol_from;
    match server.proxy_protocol.iter().find(of_network) {
        Some(address) if from.is_empty() => {
            let message = format!("nobody may connect to {}: `proxy_protocol_from` is empty", address.get_ref());
            let hint = "give the addresses of the proxies, such as proxy_protocol_from = [\"10.0.0.7\"]";
            faults.push(Fault::absence(address.span(), message, hint));
        }
        None if !from.is_empty() => {
            let hint = "give `proxy_protocol`, the addresses of `listen` that proxies use, or remove the key";
            faults.push(Fault::absence(0..0, "`proxy_protocol_from` has no effect without `proxy_protocol`", hint));
        }
        _ => {}
    }
}

fn admin(found: &Spanned<Admin>, faults: &mut Vec<Fault>) {
    let admin = found.get_ref();
    match (&admin.socket, &admin.listen) {
        (None, None) => {
            let hint = "give `socket`, a path, or `listen` with a `token_file`";
            faults.push(Fault::absence(found.span(), "[server.admin] has no address", hint));
        }
        (Some(_), Some(listen)) => {
            faults.push(Fault::new(listen.span(), "`socket` and `listen` exclude each other", "remove one of them"));
        }
        (Some(socket), None) => {
            if !has_folder(socket.get_ref()) {
                let message = format!("the folder of the socket {} doesn't exist", socket.get_ref().display());
                faults.push(Fault::new(
                    socket.span(),
                    message,
                    "create it first, or give another path; systemd creates the folders of a unit when it starts the unit",
                ));
            }
            if let Some(token) = &admin.token_file {
                file(token, "the token", faults);
            }
        }
        (None, Some(listen)) => {
            if !listen.get_ref().ip().is_loopback() {
                let message = format!("other machines can reach {}", listen.get_ref());
                faults.push(Fault::new(listen.span(), message, "give a loopback address, such as 127.0.0.1:8081"));
            }
            match &admin.token_file {
                None => {
                    let hint =
                        "give `token_file`: without a token, every user of this machine could administer the server";
                    faults.push(Fault::absence(listen.span(), "`listen` of [server.admin] needs a token", hint));
                }
                Some(token) => file(token, "the token", faults),
            }
        }
    }
}

fn cache(cache: &Volume, faults: &mut Vec<Fault>) {
    if let Some(path) = &cache.path {
        if path.get_ref().is_dir() {
            let message = format!("{} is a folder", path.get_ref().display());
            faults.push(Fault::new(path.span(), message, "give the path of the volume's file, in an existing folder"));
        } else if !has_folder(path.get_ref()) {
            let message = format!("the folder of the volume {} doesn't exist", path.get_ref().display());
            faults.push(Fault::new(
                path.span(),
                message,
                "create it first, or give another path; systemd creates the folders of a unit when it starts the unit",
            ));
        }
    }
    if let Some(max) = &cache.entry_bytes_max {
        // The size of an existing volume is unknown here; the engine checks that when it opens the volume.
        let size = cache.size.map_or(CACHE_SIZE_DEFAULT, |size| size.0);
        let is_known = cache.size.is_some() || cache.path.as_ref().is_none_or(|path| !path.get_ref().exists());
        if is_known && !(96..=size / 4).contains(&max.get_ref().0) {
            let message = format!("`entry_bytes_max` is {}, but the volume has {}", max.get_ref(), units::size(size));
            let hint = format!("give 96 to {}, a quarter of the volume", size / 4);
            faults.push(Fault::new(max.span(), message, hint));
        }
    }
    if let (Some(tier), None) = (&cache.tier, &cache.path) {
        let hint = "give `path` of [cache], or remove `tier`";
        faults.push(Fault::absence(tier.span(), "a volume in memory can't have a tier", hint));
    }
}

/// Checks that each host has one site.
fn hosts(sites: &[Spanned<site::Site>], faults: &mut Vec<Fault>) {
    let mut first: HashMap<String, usize> = HashMap::new();
    for (number, found) in sites.iter().enumerate() {
        let site = found.get_ref();
        let hosts = site.hosts.iter().map(|host| (host.get_ref().to_string(), host.span()));
        let aliases = site.aliases.iter().map(|alias| (alias.get_ref().to_string(), alias.span()));
        for (host, span) in hosts.chain(aliases) {
            let Some(before) = first.insert(host.clone(), number) else { continue };
            let is_left_out = span.is_empty();
            let span = if is_left_out { found.span() } else { span };
            let (message, hint) = if before == number {
                (format!("this site has `{host}` twice"), "remove one")
            } else if is_left_out {
                (
                    format!("sites {} and {} are both for all other hosts", before + 1, number + 1),
                    "give one of them `hosts`",
                )
            } else {
                (
                    format!("`{host}` is a host of the {} site already", ordinal(before + 1)),
                    "remove it from one of the sites",
                )
            };
            faults.push(Fault::new(span, message, hint));
        }
    }
}

fn ordinal(number: usize) -> String {
    match number {
        1 => "first".to_owned(),
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        _ => format!("{number}th"),
    }
}
