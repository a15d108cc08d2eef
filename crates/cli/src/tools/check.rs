//! `eyewall check`: shows the effect of a configuration, or all its mistakes.

use std::fmt::Write as _;
use std::io::Write as _;

use eyewall_server::config::Spanned;
use eyewall_server::config::access_log::{LogTarget, Share};
use eyewall_server::config::compression::Compress;
use eyewall_server::config::listen::ListenAddress;
use eyewall_server::config::log_format::LogFormat;
use eyewall_server::config::origin::Http2;
use eyewall_server::config::settings::{CACHE_SIZE_DEFAULT, Limits, Sandbox};
use eyewall_server::config::site::Symlinks;
use eyewall_server::config::tls::{SiteTls, TlsVersion};
use eyewall_server::config::{Config, Problem, Server, Site, Volume, load, rule, site};
use eyewall_server::units;
use serde::Serialize;

use super::check_limits;
use crate::args::Check;
use crate::{Error, Outcome, output};

/// The output of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    problems: &'a [Problem],
    warnings: &'a [Problem],
    /// Missing if there are problems.
    config: Option<&'a Config>,
}

pub(crate) fn run(check: &Check) -> Result<Outcome, Error> {
    let loaded = load(&check.file);
    if check.json {
        let problems = loaded.as_ref().err().map(Vec::as_slice).unwrap_or_default();
        let config = loaded.as_ref().ok();
        let warnings = config.map(|config| config.warnings.as_slice()).unwrap_or_default();
        output::json_to_stdout(&Report { problems, warnings, config })?;
    }
    let config = loaded.map_err(|problems| Error::Config { path: check.file.clone(), problems })?;
    if !check.json {
        let text = in_words(&config);
        output::text_to_stdout(|stdout| stdout.write_all(text.as_bytes()))?;
    }
    Ok(Outcome::Done)
}

/// Paragraphs of lines, each a name and its text.
#[derive(Default)]
struct Paper {
    text: String,
}

impl Paper {
    /// The first line of a paragraph.
    fn title(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(title);
        self.text.push('\n');
    }

    fn line(&mut self, name: &str, words: &str) {
        // Never fails on a string.
        let _ = writeln!(self.text, "  {name:<10} {words}");
    }
}

fn in_words(config: &Config) -> String {
    let mut paper = Paper::default();
    server(&mut paper, config);
    volume(&mut paper, &config.cache);
    for site in &config.sites {
        show_site(&mut paper, site);
    }
    for warning in &config.warnings {
        let _ = write!(paper.text, "\nwarning: {warning}");
    }
    paper.text
}

/// The log, the administration, the metrics and the sandbox.
fn of_operators(paper: &mut Paper, server: &Server) {
    if let Some(log) = &server.access_log {
        let log = log.get_ref();
        let format = match log.format {
            LogFormat::Combined => "combined",
            LogFormat::Json => "JSON",
            LogFormat::Custom(_) => "a format of your own",
        };
        let place = match &log.path {
            LogTarget::Stdout => "standard output".to_owned(),
            target => target.to_string(),
        };
        let sample = if log.sample == Share(1.0) { String::new() } else { format!(", a share of {}", log.sample.0) };
        paper.line("log", &format!("{place}, {format}{sample}"));
    }
    if let Some(admin) = &server.admin {
        let admin = admin.get_ref();
        let socket = admin.socket.as_ref().map(|path| path.get_ref().display().to_string());
        let listen = admin.listen.as_ref().map(|address| format!("http://{}, with a token", address.get_ref()));
        paper.line("admin", &list(socket.into_iter().chain(listen)));
    }
    if let Some(address) = &server.metrics_listen {
        paper.line("metrics", &format!("http://{}/metrics", address.get_ref()));
    }
    match server.sandbox {
        Sandbox::Off => {}
        Sandbox::On => paper.line("sandbox", "as much of Landlock and seccomp as the kernel supports"),
        Sandbox::Strict => paper.line("sandbox", "Landlock and seccomp, or the server doesn't start"),
    }
}

fn server(paper: &mut Paper, config: &Config) {
    let server = &config.server;
    paper.title("server");
    let http = server.http_addresses().iter().map(|address| listener(server, address.get_ref(), "http"));
    let https = server.https_addresses().iter().map(|address| listener(server, address.get_ref(), "https"));
    paper.line("listen", &list(http.chain(https)));
    let workers = server.workers.map_or_else(|| "one for each core".to_owned(), |workers| workers.0.to_string());
    paper.line("workers", &workers);
    let Limits { header_count, header_bytes, head_timeout, idle_timeout, body_bytes_max, .. } = &server.limits;
    let Limits { body_rate_min, body_grace, body_timeout, stream_bytes, .. } = &server.limits;
    let body = body_bytes_max.map_or_else(|| "any length".to_owned(), |max| format!("up to {}", units::size(max.0)));
    let pace = match body_rate_min.0 {
        0 => "at any rate".to_owned(),
        bytes => format!("at {} a second after {}", units::size(bytes), units::duration(body_grace.0)),
    };
    let time = if body_timeout.0.is_zero() {
        "in any time".to_owned()
    } else {
        format!("within {}", units::duration(body_timeout.0))
    };
    let streams = match stream_bytes.0 {
        0 => "any memory".to_owned(),
        bytes => units::size(bytes),
    };
    paper.line(
        "limits",
        &format!(
            "{} fields in {}, which may take {}; bodies of {body}, {pace}, {time}; idle for {}; HTTP/2 responses in {streams}",
            header_count.0,
            units::size(header_bytes.0),
            units::duration(head_timeout.0),
            units::duration(idle_timeout.0)
        ),
    );
    if let Some(limits) = check_limits::of_server(&server.limits) {
        paper.line("clients", &limits);
    }
    of_operators(paper, server);
    if config.sites.iter().any(|site| site.tls.is_some()) {
        https_state(paper, server);
    }
    if !server.trusted_proxies.is_empty() {
        paper.line("proxies", &format!("{} are trusted", list(&server.trusted_proxies)));
    }
    let networks = (!server.purge_from.is_empty()).then(|| format!("from {}", list(&server.purge_from)));
    let token = server.purge_token_file.as_ref().map(|_| "with a token".to_owned());
    let ways: Vec<String> = networks.into_iter().chain(token).collect();
    paper.line("PURGE", &if ways.is_empty() { "closed".to_owned() } else { ways.join(", or ") });
    fleet(paper, config);
}

fn fleet(paper: &mut Paper, config: &Config) {
    if let Some(fleet) = config.fleet.as_ref().map(Spanned::get_ref) {
        let servers = list(fleet.redis.iter().map(Spanned::get_ref));
        paper.line(
            "fleet",
            &format!("{} at {servers}, blind after {}", fleet.name.0, units::duration(fleet.max_blind.get_ref().0)),
        );
    }
}

fn listener(server: &Server, address: &ListenAddress, scheme: &str) -> String {
    let shown = match address {
        ListenAddress::Tcp(address) => format!("{scheme}://{address}"),
        ListenAddress::Unix(_) => format!("{address} with mode {}", server.socket_mode),
    };
    let has_header = server.proxy_protocol.iter().any(|other| other.get_ref() == address);
    let proxies = match address {
        _ if !has_header => String::new(),
        ListenAddress::Tcp(_) => format!(" by the PROXY protocol from {}", list(&server.proxy_protocol_from)),
        ListenAddress::Unix(_) => " by the PROXY protocol".to_owned(),
    };
    shown + &proxies
}

/// The settings of HTTPS that all sites share.
fn https_state(paper: &mut Paper, server: &Server) {
    let tls = server.tls.as_ref().map(|tls| tls.get_ref().clone()).unwrap_or_default();
    let version = match tls.version_min {
        TlsVersion::Tls12 => "1.2",
        TlsVersion::Tls13 => "1.3",
    };
    paper.line("TLS", &format!("{version} or newer; state in {}", tls.state.display()));
    if let Some(acme) = &server.acme {
        paper.line("ACME", &acme.get_ref().directory);
    }
}

fn volume(paper: &mut Paper, cache: &Volume) {
    paper.title("cache");
    let is_there = cache.path.as_ref().is_some_and(|path| path.get_ref().exists());
    let path = cache.path.as_ref().map_or_else(|| "memory".to_owned(), |path| path.get_ref().display().to_string());
    paper.line("volume", &path);
    let size = match cache.size {
        Some(size) => units::size(size.0),
        None if is_there => "unchanged".to_owned(),
        None => units::size(CACHE_SIZE_DEFAULT),
    };
    paper.line("size", &size);
    if let Some(max) = &cache.entry_bytes_max {
        paper.line("entries", &format!("up to {}", units::size(max.get_ref().0)));
    }
    if let Some(tier) = &cache.tier {
        paper.line("tier", &units::size(tier.get_ref().0));
    }
    let scrub = cache.scrub.0;
    let pace = if scrub.is_zero() { "off".to_owned() } else { format!("every {}", units::duration(scrub)) };
    let hits = if cache.verify_hits { "; each hit is verified" } else { "" };
    paper.line("scrub", &(pace + hits));
}

fn show_site(paper: &mut Paper, site: &Site) {
    paper.title(&format!("site {}", list(site.hosts.iter().map(Spanned::get_ref))));
    if !site.aliases.is_empty() {
        let aliases = list(site.aliases.iter().map(Spanned::get_ref));
        paper.line("aliases", &format!("{aliases}, the same as {}", site.name().unwrap_or_default()));
    }
    if let Some(root) = &site.root {
        let links = match site.followed_links() {
            Symlinks::None => "no links",
            Symlinks::Below => "links within the folder",
        };
        let hidden = if site.serves_dotfiles() { "dotfiles" } else { "no dotfiles" };
        let precompressed = if site.serves_precompressed() { "; precompressed files" } else { "" };
        paper.line("root", &root.get_ref().display().to_string());
        paper.line("", &format!("index {}; {links}, {hidden}{precompressed}", list(site.index_names())));
    }
    if !site.origins.is_empty() {
        origins(paper, site);
    }
    https(paper, site);
    if let Some(preset) = site.preset {
        paper.line("preset", preset.name());
    }
    key(paper, &site.key);
    times(paper, &site.cache);
    compression(paper, site);
    if let Some(languages) = &site.accept_language {
        paper.line("languages", &list(languages.get_ref()));
    }
    if let Some(limits) = check_limits::of_site(site) {
        paper.line("clients", &limits);
    }
    error_pages(paper, site);
    for (number, rule) in site.rule.iter().enumerate() {
        let name = if number == 0 { "rules" } else { "" };
        paper.line(name, &rule_in_words(number, rule.get_ref()));
    }
}

fn origins(paper: &mut Paper, site: &Site) {
    paper.line("origins", &list(site.origins.iter().map(Spanned::get_ref)));
    let settings = site.origin_settings();
    let tries = units::counted(settings.retries.0, "retry", "retries");
    let connect = units::duration(settings.connect_timeout.0);
    let answer = units::duration(settings.timeout.0);
    let http2 = match settings.http2 {
        Http2::Auto => "",
        Http2::Always => "; HTTP/2",
        Http2::Never => "; HTTP/1.1",
    };
    paper
        .line("", &format!("{connect} to connect, {answer} to answer, {tries}; Host: {}{http2}", settings.host_header));
    if let Some(health) = &settings.health {
        paper.line("", &format!("health check {} every {}", health.path, units::duration(health.interval.0)));
    }
}

fn https(paper: &mut Paper, site: &site::Site) {
    let certificates = match site.tls.as_ref().map(Spanned::get_ref) {
        Some(SiteTls::Auto) => Some("certificates by ACME".to_owned()),
        Some(SiteTls::Files(files)) => {
            let files = files.iter().filter_map(|files| files.certificate.as_ref());
            Some(list(files.map(|path| path.get_ref().display())))
        }
        None => None,
    };
    let redirect = site.redirects_to_https().then(|| "requests over HTTP are redirected".to_owned());
    let hsts = site.hsts.as_ref().map(|period| format!("HSTS for {}", period.get_ref()));
    let parts: Vec<String> = certificates.into_iter().chain(redirect).chain(hsts).collect();
    if !parts.is_empty() {
        paper.line("https", &parts.join("; "));
    }
}

fn key(paper: &mut Paper, key: &site::Key) {
    let mut parts = vec!["scheme, host, path, query".to_owned()];
    if !key.strip_query.is_empty() {
        parts.push(format!("without {}", list(&key.strip_query)));
    }
    if key.strip_trackers {
        parts.push("without tracking parameters".to_owned());
    }
    if key.sort_query {
        parts.push("sorted".to_owned());
    }
    if !key.ignore_cookies.is_empty() {
        parts.push(format!("without the cookies {}", list(&key.ignore_cookies)));
    }
    if key.ignore_analytics == Some(true) {
        parts.push("without analytics cookies".to_owned());
    }
    if !key.cookies.is_empty() {
        parts.push(format!("and the cookies {}", list(&key.cookies)));
    }
    if !key.headers.is_empty() {
        parts.push(format!("and the fields {}", list(key.headers.iter().map(Spanned::get_ref))));
    }
    paper.line("key", &parts.join("; "));
}

fn times(paper: &mut Paper, cache: &site::SiteCache) {
    let spans = [
        ("if the origin sets none", cache.default_ttl.map(|ttl| ttl.0)),
        ("at least", cache.ttl_min.as_ref().map(|ttl| ttl.get_ref().0)),
        ("at most", cache.ttl_max.as_ref().map(|ttl| ttl.get_ref().0)),
        ("stale while revalidated", cache.stale_while_revalidate.map(|window| window.0)),
        ("stale if the origin fails", cache.stale_if_error.map(|window| window.0)),
    ];
    let mut parts: Vec<String> = spans
        .into_iter()
        .filter_map(|(name, span)| Some(format!("{name} {}", units::duration(span?))))
        .chain(cache.negative_ttl.iter().map(|(status, ttl)| format!("{status} {}", units::duration(ttl.0))))
        .collect();
    if parts.is_empty() {
        parts.push("set by the origin".to_owned());
    }
    if !cache.stale_when_unreachable.0.is_zero() {
        parts.push(format!("stale if the origin is unreachable {}", units::duration(cache.stale_when_unreachable.0)));
    }
    if cache.ignore_reload {
        parts.push("clients' reload fields are ignored".to_owned());
    }
    if cache.store_set_cookie {
        parts.push("Set-Cookie is stored".to_owned());
    }
    paper.line("times", &parts.join("; "));
}

fn compression(paper: &mut Paper, site: &site::Site) {
    let Some(found) = site.compression() else { return };
    let codings = Compress(found.codings);
    let (least, most) = (units::size(found.bytes_min), units::size(found.bytes_max));
    let by_rules = if site.codings().is_empty() { " by rules" } else { "" };
    let types = units::counted(found.types.len() as u64, "pattern", "patterns");
    paper.line("compressed", &format!("in {codings}{by_rules}; {least} to {most}; types by {types}"));
}

fn error_pages(paper: &mut Paper, site: &Site) {
    if site.error_page.is_empty() {
        return;
    }
    let pages = list(site.error_page.iter().map(|(status, page)| format!("{status} {}", page.get_ref())));
    let intercepts = site.intercept_errors.as_ref().is_some_and(|intercepts| *intercepts.get_ref());
    let of_origin = if intercepts { "; also for errors that the origin sends" } else { "" };
    paper.line("errors", &(pages + of_origin));
}

/// A rule in the order of the file: its name, its conditions, its effects.
fn rule_in_words(number: usize, rule: &rule::Rule) -> String {
    let mut words = rule.name.as_ref().map_or_else(|| format!("rule-{}", number + 1), ToString::to_string);
    let mut before = ':';
    // Numbers, texts and lists always have a JSON form.
    let fields = serde_json::to_value(rule).unwrap_or_default();
    for name in rule::RULE_KEYS.iter().filter(|name| **name != "name") {
        let value = &fields[*name];
        let is_nothing = value.is_null()
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(serde_json::Map::is_empty);
        if !is_nothing {
            let _ = write!(words, "{before} {name} {}", value_in_words(value));
            before = ';';
        }
    }
    words
}

/// Of a long list, only the first few.
fn value_in_words(value: &serde_json::Value) -> String {
    const SHOWN_MAX: usize = 4;
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(values) => {
            let mut words = list(values.iter().take(SHOWN_MAX).map(value_in_words));
            if values.len() > SHOWN_MAX {
                let _ = write!(words, " and {} more", values.len() - SHOWN_MAX);
            }
            words
        }
        serde_json::Value::Object(pairs) => {
            list(pairs.iter().map(|(name, value)| format!("{name}={}", value_in_words(value))))
        }
        other => other.to_string(),
    }
}

/// Names in a line.
pub(super) fn list(parts: impl IntoIterator<Item = impl ToString>) -> String {
    parts.into_iter().map(|part| part.to_string()).collect::<Vec<_>>().join(", ")
}
