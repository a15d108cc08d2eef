//! Mistakes in the settings of HTTPS.

use super::listen::ListenAddress;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use super::parse;
use super::tests::{is_refused, problems};

/// A folder with a certificate and its key, and a key of another.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    write("pem", CertificateParams::new(["a.example".to_owned()]).unwrap().self_signed(&key).unwrap().pem());
    write("key", key.serialize_pem());
    write("other", other.serialize_pem());
    folder
}

fn files(folder: &Path, names: &[(&str, &str)]) -> String {
    let path = |name: &str| -> PathBuf { folder.join(name) };
    let pairs: Vec<String> = names.iter().map(|(key, name)| format!("{key} = '{}'", path(name).display())).collect();
    format!("tls = {{ {} }}", pairs.join(", "))
}

fn site(words: &str) -> String {
    format!("[[site]]\nhosts = [\"a.example\"]\norigins = [\"http://a\"]\n{words}\n")
}

#[test]
fn four_lines_are_enough_for_a_site_with_certificates_by_acme() {
    let config = parse("[[site]]\nhosts = [\"a.example\"]\norigins = [\"http://a\"]\ntls = \"auto\"\n").unwrap();
    let shown = |all: &[toml::Spanned<ListenAddress>]| -> Vec<String> {
        all.iter().map(|address| address.get_ref().to_string()).collect()
    };
    assert_eq!(shown(config.server.http_addresses()), ["0.0.0.0:80", "[::]:80"]);
    assert_eq!(shown(config.server.https_addresses()), ["0.0.0.0:443", "[::]:443"]);
}

#[test]
fn given_addresses_are_taken_as_they_are() {
    for (given, http, https) in [
        ("listen_tls = [\"127.0.0.1:443\"]", 0, 1),
        ("listen = []\nlisten_tls = [\"127.0.0.1:443\"]", 0, 1),
        ("listen = [\"127.0.0.1:80\"]\nlisten_tls = [\"127.0.0.1:443\", \"127.0.0.2:443\"]", 1, 2),
    ] {
        let server = parse(&format!("[server]\n{given}\n{}", site("tls = \"auto\""))).unwrap().server;
        assert_eq!((server.http_addresses().len(), server.https_addresses().len()), (http, https), "{given}");
    }
}

#[test]
fn files_of_certificates_are_loaded() {
    let folder = folder();
    let path = folder.path();
    assert_eq!(problems(&site(&files(path, &[("certificate", "pem"), ("key", "key")]))), [""; 0]);
    let two = |key: &str| {
        let table = |key: &str| {
            let [pem, key] = ["pem", key].map(|name| path.join(name).display().to_string());
            format!("[[site.tls]]\ncertificate = '{pem}'\nkey = '{key}'\n")
        };
        problems(&site(&[table("key"), table(key)].concat()))
    };
    assert_eq!(two("key"), [""; 0]);
    is_refused(&two("other"), &["9:7 the private key in"]);
    for (names, words) in [
        (&[("certificate", "pem")][..], "4:23 this certificate has no `key`"),
        (&[("key", "key")], "4:15 `tls` of this site has no `certificate`"),
        (&[("certificate", "pem"), ("key", "other")], "does not belong to the first certificate"),
        (&[("certificate", "absent"), ("key", "key")], "4:23 can't read"),
        (&[("certificate", "key"), ("key", "key")], "holds no certificate"),
        (&[("certificate", "pem"), ("key", "key"), ("ocsp", "absent")], "absent: No such file"),
    ] {
        is_refused(&problems(&site(&files(path, names))), &[words]);
    }
    is_refused(&problems(&site("tls = []")), &["4:7 `tls` is an empty list"]);
    is_refused(&problems(&site("tls = \"letsencrypt\"")), &["`letsencrypt` is not a way to get a certificate"]);
    is_refused(&problems(&site("tls = true")), &["`tls` is \"auto\" or a table"]);
    is_refused(&problems(&site("tls = { cert = \"x\" }")), &["unknown key `cert`"]);
}

#[test]
fn an_authority_needs_names_and_for_wildcards_dns() {
    let of = |hosts: &str, rest: &str| {
        problems(&format!("[[site]]\n{hosts}origins = [\"http://a\"]\ntls = \"auto\"\n{rest}"))
    };
    is_refused(&of("", ""), &["3:7 tls = \"auto\" needs names"]);
    is_refused(&of("hosts = [\"*\"]\n", ""), &["2:10 tls = \"auto\" needs names"]);
    is_refused(
        &of("hosts = [\"*.a.example\"]\n", ""),
        &["2:10 tls = \"auto\" gets a certificate for `*.a.example` by dns-01"],
    );
    let command = std::env::current_exe().unwrap();
    let acme = format!("[server.acme]\ndns_command = '{}'\n", command.display());
    assert_eq!(of("hosts = [\"*.a.example\"]\n", &acme), [""; 0]);
    for (acme, words) in [
        ("contact = [\"nobody\"]", "the contact \"nobody\" can't be used"),
        ("directory = \"http://authority\"", "the ACME directory"),
        ("challenges = [\"dns-01\"]", "the challenge dns-01 can't be used"),
        ("challenges = []", "the kinds of challenge"),
        ("challenges = [\"dns-02\"]", "unknown value `dns-02`"),
        ("ca_file = \"/absent\"", "the certificates of the authority, can't be read"),
        ("external_account_id = \"1\"", "belong together"),
    ] {
        is_refused(&of("hosts = [\"a.example\"]\n", &format!("[server.acme]\n{acme}\n")), &[words]);
    }
}

#[test]
fn https_without_a_site_or_an_address_is_a_mistake() {
    let plain = site("");
    is_refused(
        &problems(&format!("[server]\nlisten_tls = [\"127.0.0.1:443\"]\n{plain}")),
        &["`listen_tls` has no effect"],
    );
    is_refused(&problems(&format!("[server.tls]\n{plain}")), &["[server.tls] has no effect"]);
    is_refused(&problems(&format!("[server.acme]\n{plain}")), &["[server.acme] has no effect"]);
    let auto = site("tls = \"auto\"");
    is_refused(&problems(&format!("[server]\nlisten = [\"127.0.0.1:80\"]\n{auto}")), &["`tls` has no effect"]);
    let twice = "[server]\nlisten = [\"127.0.0.1:80\"]\nlisten_tls = [\"127.0.0.1:80\"]\n";
    is_refused(&problems(&format!("{twice}{auto}")), &["3:15 `listen` and `listen_tls` have 127.0.0.1:80 twice"]);
    is_refused(
        &problems(&site("hsts = \"365d\"\nredirect_to_https = true")),
        &["4:8 `hsts`", "5:21 `redirect_to_https`"],
    );
    let proxied = format!("[server]\ntrusted_proxies = [\"127.0.0.1\"]\n{}", site("hsts = \"365d\""));
    assert_eq!(problems(&proxied), [""; 0]);
}
