//! What a folder has for a path: by memory where that is sure, else by a look.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use eyewall_http::field::range;
use http::header::{ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_TYPE, ETAG, LAST_MODIFIED, VARY};
use http::{HeaderMap, HeaderValue};

use super::FilesSettings;
use super::coding::{self, Coding};
use super::memory::Memory;
use super::path::FilePath;
use super::root::{Root, is_absence};
use super::stamp::Stamp;
use super::walk::Walk;

/// A second after its last change, a file has validators that tell it from the version before.
const SECOND: Duration = Duration::from_secs(1);

/// A folder with what is known of it.
#[derive(Debug)]
pub(super) struct Folder {
    root: Root,
    settings: FilesSettings,
    /// None where the system gives no inotify.
    memory: Option<Memory>,
    /// Whether it was told that a packed file is left out. A race tells it twice.
    has_told_of_old: AtomicBool,
}

/// What a path names.
#[derive(Debug)]
pub(super) enum Found {
    /// A file, in its forms: the first one is the file of this name, packed ones follow.
    File(Vec<Form>),
    /// A folder with an index, asked for without the slash at the end.
    Folder,
    Nothing,
}

/// A file that can be sent for a path.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) coding: Option<Coding>,
    /// Below the root.
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
    /// The fields of a 200, all but its length.
    pub(super) fields: HeaderMap,
}

/// What was found, and the files of its forms, in their order, unless it was known.
pub(super) struct Look {
    pub(super) found: Arc<Found>,
    pub(super) files: Vec<File>,
}

impl Folder {
    pub(super) fn new(root: Root, settings: FilesSettings) -> Self {
        let memory = Memory::new().inspect_err(|error| {
            tracing::warn!(%error, "the system gives no inotify; each request for a file looks at its folder");
        });
        Self { root, settings, memory: memory.ok(), has_told_of_old: AtomicBool::new(false) }
    }

    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(super) fn serves_dotfiles(&self) -> bool {
        self.settings.dotfiles
    }

    /// What is known of a path. It waits for nobody.
    pub(super) fn recall(&self, path: &FilePath) -> Option<Look> {
        let found = self.memory.as_ref()?.recall(path, Instant::now())?;
        Some(Look { found, files: Vec::new() })
    }

    /// Looks at what a path names. That can wait for storage, so that it has no place on a thread that serves clients. `now` is
    /// not later than the look.
    pub(super) fn look(&self, path: &FilePath, now: SystemTime) -> io::Result<Look> {
        let since = Instant::now();
        let mut walk = self.memory.as_ref().filter(|_| Memory::keeps(path)).map(Walk::new);
        let (found, files) = self.find(path, now, &mut walk)?;
        let found = Arc::new(found);
        if let Some(memory) = &self.memory
            && let Some(premises) = walk.and_then(Walk::premises)
            && found.is_settled(now)
        {
            memory.remember(path, &found, premises, since);
        }
        Ok(Look { found, files })
    }

    fn find(&self, path: &FilePath, now: SystemTime, walk: &mut Option<Walk<'_>>) -> io::Result<(Found, Vec<File>)> {
        if path.is_folder {
            return match self.find_index(path.relative(), walk)? {
                Some((index, file, metadata)) => Ok(self.forms(index, file, &metadata, now, walk)),
                None => Ok((Found::Nothing, Vec::new())),
            };
        }
        match self.open(path.relative(), walk)? {
            Some((file, metadata)) if metadata.is_file() => {
                Ok(self.forms(path.relative().to_owned(), file, &metadata, now, walk))
            }
            Some((_, metadata)) if metadata.is_dir() && self.find_index(path.relative(), walk)?.is_some() => {
                Ok((Found::Folder, Vec::new()))
            }
            _ => Ok((Found::Nothing, Vec::new())),
        }
    }

    /// The first of the names of an index that is a file.
    fn find_index(&self, folder: &Path, walk: &mut Option<Walk<'_>>) -> io::Result<Option<(PathBuf, File, Metadata)>> {
        for name in &self.settings.index {
            let path = folder.join(name);
            if let Some((file, metadata)) = self.open(&path, walk)?
                && metadata.is_file()
            {
                return Ok(Some((path, file, metadata)));
            }
        }
        Ok(None)
    }

    /// The plain file and those beside it that are packed.
    fn forms(
        &self,
        plain: PathBuf,
        file: File,
        metadata: &Metadata,
        now: SystemTime,
        walk: &mut Option<Walk<'_>>,
    ) -> (Found, Vec<File>) {
        let content_type = content_type(&plain);
        let stamp = Stamp::of(metadata);
        let mut forms = vec![Form { coding: None, path: plain, stamp, fields: HeaderMap::new() }];
        let mut files = vec![file];
        let codings =
            if self.settings.precompressed && !coding::is_packed(&forms[0].path) { &Coding::ALL[..] } else { &[] };
        for &coding in codings {
            let path = coding.beside(&forms[0].path);
            // Those that can't be read don't keep the plain one from being served.
            let Some((file, metadata)) = self.open(&path, walk).ok().flatten() else { continue };
            let packed = Stamp::of(&metadata);
            if !metadata.is_file() || self.is_left_out(&packed, &stamp, &path) {
                continue;
            }
            forms.push(Form { coding: Some(coding), path, stamp: packed, fields: HeaderMap::new() });
            files.push(file);
        }
        let is_chosen = forms.len() > 1;
        for form in &mut forms {
            form.fields = fields(form, &content_type, is_chosen, now);
        }
        (Found::File(forms), files)
    }

    /// Whether a packed file may hold another version than the plain one: it is older.
    fn is_left_out(&self, packed: &Stamp, plain: &Stamp, path: &Path) -> bool {
        let is_old = packed.is_older_than(plain);
        if is_old && !self.has_told_of_old.swap(true, Ordering::Relaxed) {
            let path = path.display();
            tracing::warn!(%path, "a packed file is older than the plain one, and is not served; pack it again (told once)");
        }
        is_old
    }

    /// Opens what lies at a path below the root, watched from before on. None if there is nothing.
    fn open(&self, path: &Path, walk: &mut Option<Walk<'_>>) -> io::Result<Option<(File, Metadata)>> {
        if let Some(walk) = walk {
            walk.watch(&self.root.path().join(path));
        }
        match self.root.find(path, self.settings.symlinks) {
            Ok(file) => {
                let metadata = file.metadata()?;
                Ok(Some((file, metadata)))
            }
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Found {
    /// Whether it stays as it is while nothing changes: validators come with time.
    fn is_settled(&self, now: SystemTime) -> bool {
        let before = now.checked_sub(SECOND).unwrap_or(now);
        match self {
            Self::File(forms) => !forms.iter().any(|form| form.stamp.may_still_change(before)),
            Self::Folder | Self::Nothing => true,
        }
    }
}

fn fields(form: &Form, content_type: &HeaderValue, is_chosen: bool, now: SystemTime) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, content_type.clone());
    fields.insert(ACCEPT_RANGES, range::BYTES);
    if let Some(coding) = form.coding {
        fields.insert(CONTENT_ENCODING, coding.value());
    }
    if is_chosen {
        fields.insert(VARY, HeaderValue::from(ACCEPT_ENCODING));
    }
    if !form.stamp.may_still_change(now)
        && let Some(tag) = form.stamp.etag(form.coding.map_or("", Coding::tag_suffix))
    {
        fields.insert(ETAG, tag);
    }
    // It has whole seconds: within its second, two versions would have the same one.
    if !form.stamp.may_still_change(now.checked_sub(SECOND).unwrap_or(now))
        && let Some(modified) = form.stamp.last_modified()
    {
        fields.insert(LAST_MODIFIED, modified);
    }
    fields
}

/// By the name's extension; text is taken to be UTF-8.
fn content_type(path: &Path) -> HeaderValue {
    let guess = mime_guess::from_path(path).first_or_octet_stream();
    let text = if guess.type_() == "text" { format!("{guess}; charset=utf-8") } else { guess.to_string() };
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"))
}

#[cfg(test)]
mod tests;
