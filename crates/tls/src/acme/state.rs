//! The folder that processes share.
//!
//! ```text
//! FOLDER/AUTHORITY/lock                  its holder works with the authority; the other processes read the result
//! FOLDER/AUTHORITY/account.json          the account and its key
//! FOLDER/AUTHORITY/certificates/S.pem    the chain of a set of names, and its key
//! FOLDER/AUTHORITY/certificates/S.json   the attempts to get it
//! FOLDER/AUTHORITY/challenges/           answers for an authority that asks (challenge.rs)
//! ```
//! Files are 0600, folders 0700, and a file is replaced in one step. AUTHORITY is made of the address of the authority's directory, so that
//! certificates of a staging authority never come in the place of those of another.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use instant_acme::AccountCredentials;

use super::renewal::Attempts;
use crate::file::{self, FileLock};

/// The longest part of a file name that is made of names.
const NAME_BYTES_MAX: usize = 200;

#[derive(Clone, Debug)]
pub(super) struct State {
    folder: PathBuf,
}

impl State {
    /// The part of the folder that is for the authority with this directory. Nothing is made as yet.
    pub(super) fn new(folder: &Path, directory: &str) -> Self {
        let address = directory.strip_prefix("https://").unwrap_or(directory);
        Self { folder: folder.join(plain(address)) }
    }

    /// Makes the folders.
    pub(super) fn make(&self) -> io::Result<()> {
        let make = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
        make(&self.folder.join("certificates"))?;
        make(&self.challenges())
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn challenges(&self) -> PathBuf {
        self.folder.join("challenges")
    }

    /// Chain and key of a set of names.
    pub(super) fn certificate(&self, names: &[String]) -> PathBuf {
        self.folder.join("certificates").join(set_name(names) + ".pem")
    }

    /// `None` where another process, or another part of this one, has the lock.
    pub(super) fn try_lock(&self) -> io::Result<Option<FileLock>> {
        FileLock::try_take(&self.folder.join("lock"))
    }

    /// `None` where there is no account as yet.
    pub(super) fn account(&self) -> io::Result<Option<AccountCredentials>> {
        match file::read_secret(&self.folder.join("account.json")) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn keep_account(&self, credentials: &AccountCredentials) -> io::Result<()> {
        let text = zeroize::Zeroizing::new(serde_json::to_vec(credentials)?);
        file::replace(&self.folder.join("account.json"), &text)
    }

    /// Keeps the account under another name, where nothing reads it.
    pub(super) fn put_account_aside(&self) -> io::Result<()> {
        std::fs::rename(self.folder.join("account.json"), self.folder.join("account.unknown.json"))
    }

    /// Unreadable state counts as none. That costs at most one attempt too early.
    pub(super) fn attempts(&self, names: &[String]) -> Attempts {
        let path = self.certificate(names).with_extension("json");
        file::read_secret(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    pub(super) fn keep_attempts(&self, names: &[String], attempts: &Attempts) -> io::Result<()> {
        let path = self.certificate(names).with_extension("json");
        file::replace(&path, &serde_json::to_vec(attempts)?)
    }
}

/// A file name for a set of names: the only one, or the first and a digest of all.
fn set_name(names: &[String]) -> String {
    let first = names.first().map_or("", String::as_str);
    let mut name = plain(&first.replace('*', "_"));
    if names.len() == 1 && name.len() <= NAME_BYTES_MAX {
        return name;
    }
    name.truncate(NAME_BYTES_MAX);
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let all = digest(&SHA256, sorted.join(" ").as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&all.as_ref()[..8]);
    format!("{name}-{:016x}", u64::from_be_bytes(bytes))
}

/// What a path may hold, the rest as hyphens.
fn plain(text: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    let plain: String = text.chars().map(|character| if is_plain(character) { character } else { '-' }).collect();
    // No `.` and no `..`.
    let plain = plain.trim_start_matches('.').trim_end_matches('-').to_owned();
    if plain.is_empty() { "-".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(names: &[&str]) -> String {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let path = State::new(Path::new("/s"), "https://ca.example:14000/dir").certificate(&names);
        path.display().to_string()
    }

    #[test]
    fn each_set_of_names_and_each_authority_has_a_file_of_its_own() {
        assert_eq!(path(&["example.org"]), "/s/ca.example-14000-dir/certificates/example.org.pem");
        assert_eq!(path(&["*.example.org"]), "/s/ca.example-14000-dir/certificates/_.example.org.pem");
        assert_eq!(path(&["2001:db8::1"]), "/s/ca.example-14000-dir/certificates/2001-db8--1.pem");
        let (both, other) = (path(&["example.org", "a.example.org"]), path(&["example.org", "b.example.org"]));
        assert!(both != other && both != path(&["example.org"]) && both.contains("/example.org-"), "{both}");
        let long = path(&[&"a.".repeat(120)]);
        assert!(long.rsplit('/').next().unwrap().len() < 255);
        let staging = State::new(Path::new("/s"), "https://staging.ca.example/../dir");
        assert_eq!(staging.folder(), Path::new("/s/staging.ca.example-..-dir"));
        assert_eq!(State::new(Path::new("/s"), "https://..").folder(), Path::new("/s/-"));
    }

    #[test]
    fn attempts_are_remembered_and_broken_ones_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::new(folder.path(), "https://ca.example/");
        state.make().unwrap();
        let names = ["example.org".to_owned()];
        let attempts = Attempts { failures: 3, error: Some("no".to_owned()), ..Attempts::default() };
        state.keep_attempts(&names, &attempts).unwrap();
        assert_eq!(state.attempts(&names), attempts);
        std::fs::write(state.certificate(&names).with_extension("json"), "{").unwrap();
        assert_eq!(state.attempts(&names), Attempts::default());
        assert!(state.account().unwrap().is_none());
    }
}
