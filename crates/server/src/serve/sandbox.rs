//! What a configuration needs of the sandbox, and the check of another configuration by a process that is inside.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use toml::Spanned;

use super::error::Error;
use crate::config::listen::ListenAddress;
use crate::config::settings::Sandbox;
use crate::config::site::Site;
use crate::config::tls::{CertificateFiles, ServerTls, SiteTls};
use crate::config::{Config, Server};
use crate::sandbox::{self, Access, Place, SandboxError};

/// Where systems keep programs and their libraries.
const PROGRAMS: [&str; 10] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store"];
/// What the C library, the resolver, the trust store and the engine read.
const SYSTEM: [&str; 11] = [
    "/etc",
    "/proc",
    "/sys",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/run/nscd",
    "/var/lib/ca-certificates",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
];
/// Environment variables that name certificates to trust.
const TRUST: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// A path that a setting names.
struct Need {
    setting: &'static str,
    path: PathBuf,
    is_folder: bool,
    access: Access,
}

/// Closes the sandbox that the configuration asks for, unless this process is inside one already. `programs` are those that it starts,
/// `files` those that it reads besides the settings.
///
/// # Errors
/// [`Error::Sandbox`].
pub(crate) fn close(config: &Config, is_service: bool, programs: &[&Path], files: &[PathBuf]) -> Result<(), Error> {
    let mode = config.server.sandbox;
    if mode == Sandbox::Off || sandbox::closed().is_some() {
        return Ok(());
    }
    if !is_service {
        return Err(SandboxError::NotAService.into());
    }
    let programs = programs.iter().map(|program| Need::file("", program, Access::Run));
    let files = files.iter().map(|file| Need::file("", file, Access::Read));
    let mut places = of_system();
    for need in needs(config).into_iter().chain(programs).chain(files) {
        if need.is_folder && need.access == Access::Write {
            // Its own error follows when it is used.
            let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&need.path);
        }
        places.push(need.place());
        places.extend(need.switched());
    }
    places.retain(|place| place.path.exists());
    Ok(sandbox::close(places, mode == Sandbox::Strict)?)
}

/// Checks that a process in a sandbox can use a configuration. Outside of one, it can use any.
///
/// # Errors
/// [`Error::Outside`] for the first path that isn't in the sandbox, and [`Error::Sandbox`].
pub(crate) fn admit(config: &Config) -> Result<(), Error> {
    let Some(closed) = sandbox::closed() else { return Ok(()) };
    if config.server.sandbox == Sandbox::Strict {
        sandbox::demand_whole(closed)?;
    }
    match needs(config).into_iter().find(|need| !closed.has(&need.place())) {
        Some(Need { setting, path, .. }) => Err(Error::Outside { setting, path }),
        None => Ok(()),
    }
}

impl Need {
    fn file(setting: &'static str, path: &Path, access: Access) -> Self {
        Self { setting, path: path.to_owned(), is_folder: false, access }
    }

    fn folder(setting: &'static str, path: &Path, access: Access) -> Self {
        Self { is_folder: true, ..Self::file(setting, path, access) }
    }

    /// A file needs its folder, because another may take its place.
    fn place(&self) -> Place {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        match path.parent() {
            // A device never moves, and the others are none of ours.
            Some(folder) if !self.is_folder && folder != Path::new("/dev") => Place::new(folder, self.access),
            _ => Place::new(&path, self.access),
        }
    }

    /// If parts of the path are symbolic links: the folders of their targets. A deployment switches such a link to another folder there.
    fn switched(&self) -> Vec<Place> {
        let Ok(path) = std::path::absolute(&self.path) else { return Vec::new() };
        let is_read = matches!(self.access, Access::Read | Access::Run);
        let parts = path.ancestors().filter(|part| is_read || (*part == path && !self.is_folder));
        let links = parts.filter(|part| part.is_symlink());
        links.filter_map(|link| folder_of_target(link).map(|folder| Place::new(&folder, self.access))).collect()
    }
}

/// The folder that a link's target is in. That is neither the whole file system nor a folder such as `/data`, unless the link is there, too.
fn folder_of_target(link: &Path) -> Option<PathBuf> {
    let target = link.canonicalize().ok()?;
    let folder = target.parent()?;
    let above = folder.parent()?;
    let is_top = above == Path::new("/");
    let has_link = link.parent().and_then(|folder| folder.canonicalize().ok()).is_some_and(|of_link| of_link == folder);
    (!is_top || has_link).then(|| folder.to_owned())
}

fn of_system() -> Vec<Place> {
    let programs = PROGRAMS.iter().map(|path| Place::new(Path::new(path), Access::Run));
    let read = SYSTEM.iter().map(|path| Place::new(Path::new(path), Access::Read));
    let trust = TRUST.iter().filter_map(std::env::var_os);
    let trust: Vec<PathBuf> = trust.flat_map(|paths| std::env::split_paths(&paths).collect::<Vec<_>>()).collect();
    let trust = trust.iter().map(|path| Place::new(path, Access::Read));
    let null = Place::new(Path::new("/dev/null"), Access::Write);
    programs.chain(read).chain(trust).chain([null]).collect()
}

fn needs(config: &Config) -> Vec<Need> {
    let mut needs = Vec::new();
    of_server(&config.server, &mut needs);
    if let Some(fleet) = config.fleet.as_ref().map(Spanned::get_ref) {
        let files = [
            ("fleet.password_file", &fleet.password_file),
            ("fleet.sentinel_password_file", &fleet.sentinel_password_file),
            ("fleet.ca_file", &fleet.ca_file),
            ("fleet.key_file", &fleet.key_file),
            ("fleet.peer_cert_file", &fleet.peer_cert_file),
            ("fleet.peer_key_file", &fleet.peer_key_file),
            ("fleet.peer_ca_file", &fleet.peer_ca_file),
        ];
        for (setting, path) in files {
            needs.extend(path.as_ref().map(|path| Need::file(setting, path.get_ref(), Access::Read)));
        }
        for (setting, path) in fleet.second_level.iter().flat_map(|table| table.get_ref().files()) {
            needs.extend(path.map(|path| Need::file(setting, path.get_ref(), Access::Read)));
        }
    }
    if let Some(path) = &config.cache.path {
        needs.push(Need::file("cache.path", path.get_ref(), Access::Write));
        if config.cache.tier.is_some() {
            needs.push(Need::folder("cache.tier", Path::new("/dev/shm"), Access::Write));
        }
    }
    if config.sites.iter().any(|site| site.tls.is_some()) {
        of_tls(&config.server, &mut needs);
    }
    for site in &config.sites {
        of_site(site, &mut needs);
    }
    needs
}

fn of_server(server: &Server, needs: &mut Vec<Need>) {
    for address in server.http_addresses().iter().chain(server.https_addresses()) {
        if let ListenAddress::Unix(path) = address.get_ref() {
            needs.push(Need::file("server.listen", path, Access::Socket));
        }
    }
    let log = server.access_log.as_ref().and_then(|log| log.get_ref().path.file());
    needs.extend(log.map(|path| Need::file("server.access_log", path, Access::Log)));
    if let Some(tracing) = server.tracing.as_ref().map(Spanned::get_ref) {
        for (setting, path) in [
            ("server.tracing.server_timing_token_file", &tracing.server_timing_token_file),
            ("server.tracing.otlp_headers_file", &tracing.otlp_headers_file),
        ] {
            needs.extend(path.iter().map(|path| Need::file(setting, path.get_ref(), Access::Read)));
        }
    }
    if let Some(admin) = server.admin.as_ref().map(Spanned::get_ref) {
        needs.extend(admin.socket.iter().map(|path| Need::file("server.admin.socket", path.get_ref(), Access::Socket)));
        needs.extend(
            admin.token_file.iter().map(|path| Need::file("server.admin.token_file", path.get_ref(), Access::Read)),
        );
    }
    let token = server.purge_token_file.iter();
    needs.extend(token.map(|path| Need::file("server.purge_token_file", path.get_ref(), Access::Read)));
    needs.extend(
        server.sandbox_read.iter().map(|path| Need::folder("server.sandbox_read", path.get_ref(), Access::Read)),
    );
    needs.extend(
        server.sandbox_write.iter().map(|path| Need::folder("server.sandbox_write", path.get_ref(), Access::Write)),
    );
}

/// The state of TLS, and the authority.
fn of_tls(server: &Server, needs: &mut Vec<Need>) {
    let defaults = ServerTls::default();
    let tls = server.tls.as_ref().map_or(&defaults, Spanned::get_ref);
    needs.push(Need::folder("server.tls.state", &tls.state, Access::Write));
    needs.extend(tls.tickets.iter().map(|path| Need::file("server.tls.tickets", path, Access::Write)));
    let Some(acme) = server.acme.as_ref().map(Spanned::get_ref) else { return };
    needs.extend(acme.ca_file.iter().map(|path| Need::file("server.acme.ca_file", path.get_ref(), Access::Read)));
    let key = acme.external_account_key_file.iter();
    needs.extend(key.map(|path| Need::file("server.acme.external_account_key_file", path.get_ref(), Access::Read)));
    if let Some(command) = &acme.dns_command {
        needs.push(Need::file("server.acme.dns_command", command.get_ref(), Access::Run));
        // Shells and the tools of providers have temporary files.
        needs.push(Need::folder("server.acme.dns_command", &std::env::temp_dir(), Access::Write));
    }
}

fn of_site(site: &Site, needs: &mut Vec<Need>) {
    needs.extend(site.root.iter().map(|root| Need::folder("site.root", root.get_ref(), Access::Read)));
    if let Some(SiteTls::Files(files)) = site.tls.as_ref().map(Spanned::get_ref) {
        for CertificateFiles { certificate, key, ocsp } in files {
            for (setting, path) in
                [("site.tls.certificate", certificate), ("site.tls.key", key), ("site.tls.ocsp", ocsp)]
            {
                needs.extend(path.iter().map(|path| Need::file(setting, path.get_ref(), Access::Read)));
            }
        }
    }
    let log = site.access_log.as_ref().and_then(|log| log.get_ref().path.as_ref()?.file());
    needs.extend(log.map(|path| Need::file("site.access_log", path, Access::Log)));
    let ca_file = site.origin_settings().tls.and_then(|tls| tls.into_inner().ca_file);
    needs.extend(ca_file.map(|path| Need::file("site.origin.tls.ca_file", path.get_ref(), Access::Read)));
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_switched_link_stays_inside() {
        let folder = tempfile::tempdir().unwrap();
        // The folder for temporary files may be reached by a link itself.
        let base = folder.path().canonicalize().unwrap();
        let (releases, current) = (base.join("releases"), base.join("current"));
        std::fs::create_dir_all(releases.join("1/public")).unwrap();
        symlink(releases.join("1"), &current).unwrap();
        let root = Need::folder("root", &current.join("public"), Access::Read);
        assert_eq!(root.place(), Place { path: releases.join("1/public"), access: Access::Read });
        assert_eq!(root.switched(), [Place { path: releases, access: Access::Read }]);
        let state = Need::folder("state", &current, Access::Write);
        assert!(state.switched().is_empty(), "what is written to is never more than what is named");
    }

    #[test]
    fn a_link_opens_no_top_folder() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        for (target, expected) in [("/usr", None), ("/usr/bin", None), ("/usr/share/misc", Some("/usr/share"))] {
            let Ok(target) = Path::new(target).canonicalize() else { continue };
            symlink(target, &link).unwrap();
            assert_eq!(folder_of_target(&link).as_deref(), expected.map(Path::new));
            std::fs::remove_file(&link).unwrap();
        }
    }

    #[test]
    fn a_server_that_is_a_part_of_a_program_has_no_sandbox() {
        let folder = tempfile::tempdir().unwrap();
        let text =
            format!("[server]\nsandbox = \"on\"\n[cache]\nsize = \"1M\"\n[[site]]\nroot = {:?}\n", folder.path());
        let error = crate::Server::builder().toml(&text).unwrap().start().unwrap_err();
        assert!(matches!(error, Error::Sandbox(SandboxError::NotAService)), "{error}");
    }

    #[test]
    fn a_device_is_the_place_itself() {
        let log = Need::file("access_log", Path::new("/dev/full"), Access::Log);
        assert_eq!(log.place().path, Path::new("/dev/full"));
    }
}
