//! Checks of the settings of HTTPS: certificates, names, addresses.

use std::path::PathBuf;
use std::time::SystemTime;

use eyewall_tls::acme::AcmeError;
use eyewall_tls::{Identity, IdentityError};
use toml::Spanned;

use super::check_path::file;
use super::names::HostPattern;
use super::problem::Fault;
use super::settings::{Server, Settings};
use super::site::Site;
use super::tls::{Acme, CertificateFiles, SiteTls};
use crate::units::counted;

/// Reports all mistakes.
pub(super) fn settings(settings: &Settings, faults: &mut Vec<Fault>) {
    let with_tls = || settings.site.iter().filter(|site| site.get_ref().tls.is_some());
    let (has_tls, has_auto) = (with_tls().next().is_some(), with_tls().any(|site| site.get_ref().is_auto()));
    server(&settings.server, has_tls, has_auto, faults);
    if let Some(first) = with_tls().next().and_then(|site| site.get_ref().tls.as_ref())
        && settings.server.listen.is_some()
        && settings.server.https_addresses().is_empty()
    {
        let hint = "give `listen_tls` in [server], or leave out `listen` for ports 80 and 443 of all addresses";
        faults.push(Fault::absence(first.span(), "`tls` has no effect: no address speaks HTTPS", hint));
    }
    for site in &settings.site {
        words(site, &settings.server, faults);
        match site.get_ref().tls.as_ref().map(Spanned::get_ref) {
            Some(SiteTls::Files(all)) => files(site, all, faults),
            Some(SiteTls::Auto) => names(site, settings.server.acme.as_ref(), faults),
            None => {}
        }
    }
    if has_auto {
        authority(settings, faults);
        reach(settings, faults);
    }
}

fn server(server: &Server, has_tls: bool, has_auto: bool, faults: &mut Vec<Fault>) {
    let hint = "give a site `tls`, or remove it";
    if let Some(first) = server.https_addresses().first().filter(|_| !has_tls) {
        faults.push(Fault::absence(first.span(), "`listen_tls` has no effect: no site has a certificate", hint));
    }
    if let Some(table) = server.tls.as_ref().filter(|_| !has_tls) {
        faults.push(Fault::absence(table.span(), "[server.tls] has no effect: no site has `tls`", hint));
    }
    if let Some(table) = server.acme.as_ref().filter(|_| !has_auto) {
        let hint = "give a site tls = \"auto\", or remove the table";
        faults.push(Fault::absence(table.span(), "[server.acme] has no effect: no site has tls = \"auto\"", hint));
    }
    let Some(acme) = server.acme.as_ref().map(Spanned::get_ref) else { return };
    if let Some(path) = &acme.ca_file {
        file(path, "the certificates of the authority", faults);
    }
    if let Some(path) = &acme.dns_command {
        file(path, "the command for TXT records", faults);
    }
    if let Some(path) = &acme.external_account_key_file {
        file(path, "the key of the account", faults);
    }
    if acme.external_account_id.is_some() != acme.external_account_key_file.is_some()
        && let Some(table) = &server.acme
    {
        let hint = "give both, as the authority gave them, or neither";
        let message = "`external_account_id` and `external_account_key_file` belong together";
        faults.push(Fault::new(table.span(), message, hint));
    }
}

/// Checks the words that make browsers use HTTPS.
fn words(site: &Spanned<Site>, server: &Server, faults: &mut Vec<Fault>) {
    let site = site.get_ref();
    let words = [
        ("redirect_to_https", site.redirect_to_https.as_ref().filter(|yes| *yes.get_ref()).map(Spanned::span)),
        ("hsts", site.hsts.as_ref().map(Spanned::span)),
    ];
    // A trusted proxy may say that its client uses HTTPS.
    let has_https = site.tls.is_some() || !server.trusted_proxies.is_empty();
    for (name, span) in words.into_iter().filter_map(|(name, span)| Some((name, span?))).filter(|_| !has_https) {
        let message = format!("`{name}` has no effect: this site has no `tls`");
        faults.push(Fault::absence(span, message, "give it `tls`, or name the proxy in `trusted_proxies`"));
    }
}

/// Checks the certificates of a site, as the server loads them.
fn files(site: &Spanned<Site>, all: &[CertificateFiles], faults: &mut Vec<Fault>) {
    let Some(tls) = &site.get_ref().tls else { return };
    if all.is_empty() {
        faults.push(Fault::absence(tls.span(), "`tls` is an empty list", "give a certificate, or remove it"));
    }
    for given in all {
        let (Some(path), Some(identity)) = (&given.certificate, given.identity()) else {
            let hint = "give `certificate`, the file with the certificate in PEM, or write tls = \"auto\"";
            let span = given.key.as_ref().map_or_else(|| tls.span(), Spanned::span);
            faults.push(Fault::absence(span, "`tls` of this site has no `certificate`", hint));
            continue;
        };
        let error = match Identity::load(&identity) {
            Ok(identity) => {
                warn_of(path, &identity, faults);
                continue;
            }
            Err(error) => error,
        };
        let at = |path: &Option<Spanned<PathBuf>>| path.as_ref().map(Spanned::span);
        let span = match &error {
            IdentityError::NoKey { .. } | IdentityError::KeyUnusable { .. } | IdentityError::KeyMismatch { .. } => {
                at(&given.key)
            }
            IdentityError::Unreadable { path, .. } | IdentityError::NotPem { path, .. } => {
                let all = [&given.key, &given.ocsp];
                let named = all.into_iter().find(|given| given.as_ref().is_some_and(|given| given.get_ref() == path));
                named.and_then(at)
            }
            _ => None,
        };
        faults.push(of_identity(span.unwrap_or_else(|| path.span()), &error, given.key.is_none()));
    }
}

/// The faults of a certificate that the server can use. It logs them itself.
fn warn_of(path: &Spanned<PathBuf>, identity: &Identity, faults: &mut Vec<Fault>) {
    let now = SystemTime::now();
    for warning in identity.warnings(now) {
        let (message, hint) = warning.split_once("; ").unwrap_or((warning, "renew it"));
        faults.push(Fault { is_logged: true, ..Fault::warning(path.span(), message, hint) });
    }
    if identity.ends_soon(now) {
        let left = match identity.days_left(now) {
            0 => "less than a day".to_owned(),
            days => counted(days, "day", "days"),
        };
        let hint = "renew it; the server reads the new file by itself";
        let message = format!("this certificate expires in {left}");
        faults.push(Fault { is_logged: true, ..Fault::warning(path.span(), message, hint) });
    }
}

fn of_identity(span: std::ops::Range<usize>, error: &IdentityError, lacks_key: bool) -> Fault {
    let text = error.to_string();
    match (error, text.split_once("; ")) {
        (IdentityError::NoKey { .. }, _) if lacks_key => {
            Fault::new(span, "this certificate has no `key`", "give `key`, the file with the private key in PEM")
        }
        (_, Some((message, hint))) => Fault::new(span, message, hint),
        (_, None) => Fault::new(span, text, "give a file that this user may read"),
    }
}

/// Checks whether an authority can give certificates for the hosts of a site.
fn names(site: &Spanned<Site>, acme: Option<&Spanned<Acme>>, faults: &mut Vec<Fault>) {
    let Some(tls) = &site.get_ref().tls else { return };
    let has_dns = acme.is_some_and(|acme| acme.get_ref().has_dns());
    for host in &site.get_ref().hosts {
        let span = if host.span().is_empty() { tls.span() } else { host.span() };
        match host.get_ref() {
            HostPattern::Any => {
                let hint =
                    "name the hosts in `hosts`, such as hosts = [\"example.org\"], or give the files of a certificate";
                let message = "tls = \"auto\" needs names: no authority gives a certificate for all hosts";
                faults.push(Fault::new(span, message, hint));
            }
            HostPattern::Below(_) if !has_dns => {
                let hint = "give `dns_command` in [server.acme], or name each host";
                let message = format!("tls = \"auto\" gets a certificate for `{}` by dns-01 only", host.get_ref());
                faults.push(Fault::new(span, message, hint));
            }
            HostPattern::Below(_) | HostPattern::Name(_) => {}
        }
    }
}

/// Warns of limits that keep an authority away, which connects to each host from addresses that nobody knows before.
fn reach(Settings { server, site, .. }: &Settings, faults: &mut Vec<Fault>) {
    let has_dns = server.acme.as_ref().is_some_and(|acme| acme.get_ref().has_dns());
    // A proxy may connect in its place.
    let has_proxies = !server.trusted_proxies.is_empty() || !server.proxy_protocol_from.is_empty();
    if server.limits.allow.is_empty() || has_dns || has_proxies {
        return;
    }
    let first = site.iter().map(Spanned::get_ref).find(|site| site.is_auto()).and_then(|site| site.tls.as_ref());
    let message =
        "`allow` of [server.limits] closes the connections by which an authority checks the hosts of tls = \"auto\"";
    let hint = "write `allow` into [site.limits], which lets the checks pass, or give `dns_command` in [server.acme]";
    faults.extend(first.map(|tls| Fault::warning(tls.span(), message, hint)));
}

/// Checks the settings of the authority by the library that uses them.
fn authority(settings: &Settings, faults: &mut Vec<Fault>) {
    let defaults = Acme::default();
    let table = settings.server.acme.as_ref();
    let acme = table.map_or(&defaults, Spanned::get_ref);
    // An unreadable file is reported already.
    let Ok(acme) = acme.settings(PathBuf::new()) else { return };
    let fault = |error, span: std::ops::Range<usize>| match error {
        AcmeError::Setting { what, reason } => Some(Fault::absence(span, format!("{what} can't be used"), reason)),
        _ => None,
    };
    // The settings alone, with a name that no authority would refuse.
    if let Err(error) = acme.check(&[vec!["example.org".to_owned()]]) {
        faults.extend(fault(error, table.map_or(0..0, Spanned::span)));
        return;
    }
    for site in settings.site.iter().filter(|site| site.get_ref().is_auto()) {
        // Wildcards were checked with their places.
        for name in site.get_ref().certificate_names().into_iter().filter(|name| !name.starts_with("*.")) {
            if let Err(error) = acme.check(&[vec![name]]) {
                faults.extend(fault(error, site.span()));
            }
        }
    }
}
