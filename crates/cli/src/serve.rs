//! `eyewall serve`: runs the server of `eyewall-server`, configured by the command line or by a file.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use eyewall_server::config::Spanned;
use eyewall_server::config::log::{Log, LogLevels};
use eyewall_server::config::origin::{OriginSettings, Tls};
use eyewall_server::config::value::{Period, SizeWithin, Within};
use eyewall_server::config::{self, Admin, Config, Problem, Settings, site};
use eyewall_server::{Inherited, Server, units};

use crate::args::Serve;
use crate::{Error, Outcome, log, volume};

pub(crate) fn run(cache: Option<&Path>, serve: &Serve) -> Result<Outcome, Error> {
    let inherited = Inherited::from_parent().map_err(Error::Inherit)?;
    let wrong = |problems| match &serve.config {
        Some(path) => Error::Config { path: path.clone(), problems },
        None => Error::Flags(problems),
    };
    let config = configured(cache, serve).map_err(wrong).inspect_err(|error| {
        if let Some(inherited) = &inherited {
            inherited.fail(&error.to_string());
        }
    })?;
    let of_file = config.server.log.as_ref().map(|log| log.get_ref().clone()).unwrap_or_default();
    let log = log::start(&levels(&of_file, serve.verbose), of_file.format);
    let source = {
        let (cache, serve) = (cache.map(Path::to_owned), serve.clone());
        move || configured(cache.as_deref(), &serve)
    };
    let builder = Server::builder().config(config).reload_from(source).log_levels(move |levels| log.set(levels));
    let builder = builder.keep_broken(serve.keep_broken);
    let builder = builder.successor(program(), std::env::args_os().skip(1).collect()).inherit(inherited);
    let builder = match &serve.config {
        Some(path) => builder.source_file(path.clone()),
        None => builder,
    };
    let server = builder.signals(true).service(true).start()?;
    volume::warn_of_storage(server.cache());
    announce(&server);
    server.wait()?;
    Ok(Outcome::Done)
}

/// The path of this program for a successor. It may be another program by then: a path that the caller gave, and that may be a
/// symbolic link, is not resolved.
fn program() -> PathBuf {
    let called = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let found = match called.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => std::path::absolute(&called).ok(),
        _ => std::env::var_os("PATH").and_then(|path| {
            std::env::split_paths(&path).map(|folder| folder.join(&called)).find(|program| program.is_file())
        }),
    };
    found.filter(|program| program.is_file()).or_else(|| std::env::current_exe().ok()).unwrap_or(called)
}

/// The configuration of the file, or of the command line. `cache` overrides the file's path of the volume, and `--sandbox` its setting.
fn configured(cache: Option<&Path>, serve: &Serve) -> Result<Config, Vec<Problem>> {
    let Some(path) = &serve.config else {
        return of_flags(cache, serve);
    };
    let mut config = config::load(path)?;
    if let Some(cache) = cache {
        config.cache.path = Some(Spanned::new(0..0, cache.to_owned()));
    }
    if let Some(sandbox) = serve.sandbox {
        config.server.sandbox = sandbox.into();
    }
    Ok(config)
}

/// The configuration of a command line.
///
/// # Errors
/// Mistakes that only the file system shows, such as a folder that doesn't exist.
fn of_flags(cache: Option<&Path>, flags: &Serve) -> Result<Config, Vec<Problem>> {
    Config::of_settings(settings(cache, flags))
}

/// The command line as settings of a configuration file: one site for all hosts.
fn settings(cache: Option<&Path>, flags: &Serve) -> Settings {
    let nowhere = |path: &Path| Spanned::new(0..0, path.to_owned());
    let mut settings = Settings::default();
    settings.server.listen = Some(flags.listen.iter().map(|address| Spanned::new(0..0, address.clone())).collect());
    settings.server.workers = flags.workers.map(|workers| Within(workers.get().into()));
    settings.server.admin = flags
        .admin
        .as_deref()
        .map(|socket| Spanned::new(0..0, Admin { socket: Some(nowhere(socket)), ..Admin::default() }));
    settings.server.purge_from.clone_from(&flags.purge_from);
    settings.server.purge_token_file = flags.purge_token_file.as_deref().map(nowhere);
    settings.server.access_log = flags.access_log().map(|log| Spanned::new(0..0, log));
    settings.server.sandbox = flags.sandbox.map(Into::into).unwrap_or_default();
    settings.cache.path = cache.map(nowhere);
    settings.cache.size = flags.size.map(SizeWithin);
    let mut site = site::Site { root: flags.root.as_deref().map(nowhere), ..site::Site::default() };
    for origin in &flags.origin {
        site.origins.push(Spanned::new(0..0, origin.clone()));
    }
    if !flags.origin.is_empty() {
        let timeout = Period(flags.origin_timeout);
        let tls = flags
            .origin_ca
            .as_deref()
            .map(|ca_file| Spanned::new(0..0, Tls { ca_file: Some(nowhere(ca_file)), ..Tls::default() }));
        let host_header = flags.origin_host.clone().unwrap_or_default();
        let usual = OriginSettings::default();
        let connect_timeout = usual.connect_timeout.min(timeout);
        let asked = OriginSettings { connect_timeout, timeout, host_header, tls, ..usual };
        site.origin = Some(Spanned::new(0..0, asked));
    }
    site.cache.store_set_cookie = flags.store_set_cookie;
    settings.site = vec![Spanned::new(0..0, site)];
    settings
}

/// Says what was started. Scripts read the address in the first line.
fn announce(server: &Server) {
    let mut text = String::new();
    for address in server.addresses() {
        let _ = writeln!(text, "listening on http://{address}/");
    }
    for address in server.tls_addresses() {
        let _ = writeln!(text, "listening on https://{address}/");
    }
    for socket in server.unix_sockets() {
        let _ = writeln!(text, "listening on unix:{}", socket.display());
    }
    for site in &server.config().sites {
        let _ = writeln!(text, "serving      {}", in_words(site));
    }
    let cache = server.cache();
    let place = cache.path().map_or_else(|| "in memory".to_owned(), |path| path.display().to_string());
    let (size, largest) = (units::size(cache.size()), units::size(cache.entry_bytes_max()));
    let _ = writeln!(text, "cache        {place}, {size}, entries up to {largest}");
    if let Some(admin) = server.admin() {
        let _ = writeln!(text, "admin        {admin}");
    }
    if let Some(address) = server.metrics() {
        let _ = writeln!(text, "metrics      http://{address}/metrics");
    }
    if let Some(sandbox) = server.sandbox() {
        let _ = writeln!(text, "sandbox      {sandbox}");
    }
    text.push_str("stop with Ctrl-C\n");
    // The parent process need not read it.
    let _ = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
}

/// The sources of a site's responses, and its hosts.
fn in_words(site: &site::Site) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let root = site.root.iter().map(|root| format!("the folder {}", absolute(root.get_ref()).display()));
    let urls: Vec<String> = site.origins.iter().map(|url| url.get_ref().to_string()).collect();
    let origins = (!urls.is_empty()).then(|| format!("the origin {}", urls.join(", ")));
    let sources: Vec<String> = root.chain(origins).collect();
    let hosts: Vec<String> = site.hosts.iter().map(|host| host.get_ref().to_string()).collect();
    let hosts = if hosts == ["*"] { String::new() } else { format!(" for {}", hosts.join(", ")) };
    format!("{}{hosts}", sources.join(", then "))
}

/// The levels of a log whose configuration names none.
pub(crate) fn usual_levels(is_verbose: bool) -> LogLevels {
    // Both are levels.
    LogLevels::of_all(if is_verbose { "debug" } else { "warn" }).unwrap_or_default()
}

/// The levels by a configuration.
fn levels(log: &Log, is_verbose: bool) -> LogLevels {
    log.level.clone().unwrap_or_else(|| usual_levels(is_verbose))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Arguments, Verb};

    #[test]
    fn flags_and_file_make_the_same_configuration() {
        let flags = |words: &str| {
            let words = ["eyewall", "serve"].into_iter().chain(words.split_whitespace());
            let Verb::Serve(serve) = Arguments::try_parse_from(words).unwrap().verb else {
                panic!("it is another verb");
            };
            of_flags(None, &serve)
        };
        let by_flags = flags("--origin http://127.0.0.1:3000 --listen [::1]:81 --size 1M --origin-timeout 7s").unwrap();
        let text = "[server]\nlisten = [\"[::1]:81\"]\n[cache]\nsize = \"1M\"\n[[site]]\norigins = [\"http://127.0.0.1:3000\"]\n\
                    [site.origin]\ntimeout = \"7s\"\n";
        let json = |config: &Config| serde_json::to_value(config).unwrap();
        assert_eq!(json(&by_flags), json(&config::parse(text).unwrap()));
        let problems = flags("--root /nowhere/at/all").unwrap_err();
        assert!(problems[0].place.is_none() && problems[0].message.contains("/nowhere/at/all"), "{problems:?}");
    }
}
