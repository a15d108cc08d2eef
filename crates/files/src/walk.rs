//! Walks to a file, step by step from `/`, and sets a watch at each step: the dependencies of a look.
//!
//! It only finds out what to watch. [`crate::root::Root::find`] decides what may be served, and looks after the walk.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::path_cache::{NAME_BYTES_MAX, PathCache};
use crate::watches::{About, Dependency, is_local};

/// Maximum number of symbolic links, as in the kernel.
const LINKS_MAX: usize = 40;

/// Collects the dependencies of one look.
pub(crate) struct Walk<'a> {
    path_cache: &'a PathCache,
    /// `None` after something couldn't be watched: then the look is good for one request only.
    dependencies: Option<Vec<Arc<Dependency>>>,
    /// The folder of the last path, which is usually that of the next one, too.
    last: Option<(PathBuf, Rc<OwnedFd>)>,
}

/// A step of a path.
enum Step {
    Root,
    Up,
    Name(OsString),
}

impl<'a> Walk<'a> {
    pub(crate) fn new(path_cache: &'a PathCache) -> Self {
        Self { path_cache, dependencies: Some(Vec::new()), last: None }
    }

    /// Watches everything that decides what an absolute path names, from this call on.
    pub(crate) fn watch(&mut self, path: &Path) {
        if self.dependencies.is_some() && self.walk(path).is_err() {
            self.dependencies = None;
        }
    }

    /// Returns the dependencies, if everything could be watched.
    pub(crate) fn dependencies(self) -> Option<Vec<Arc<Dependency>>> {
        self.dependencies
    }

    fn walk(&mut self, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(path);
        let mut steps: VecDeque<Step> = steps_of(path).collect();
        let mut place = match (&self.last, steps.back()) {
            (Some((last, place)), Some(Step::Name(_))) if last == folder => {
                steps.drain(..steps.len() - 1);
                Rc::clone(place)
            }
            _ => Rc::new(open(CWD, Path::new("/"))?),
        };
        let mut links = 0;
        let mut is_below = false;
        while let Some(step) = steps.pop_front() {
            let name = match step {
                Step::Root => {
                    place = Rc::new(open(CWD, Path::new("/"))?);
                    continue;
                }
                Step::Up => {
                    self.rest_on(&place, About::Itself)?;
                    place = Rc::new(open(&*place, Path::new(".."))?);
                    continue;
                }
                // Links may have such targets, and names of precompressed files are longer than
                // those of plain ones.
                Step::Name(name) if name.len() > NAME_BYTES_MAX => return Err(Errno::NAMETOOLONG.into()),
                Step::Name(name) => name,
            };
            // The path's own last name; later ones belong to the target if it is a link.
            if steps.is_empty() && !std::mem::replace(&mut is_below, true) {
                self.last = Some((folder.to_owned(), Rc::clone(&place)));
            }
            match self.rest_on(&place, About::Name(name.as_bytes())) {
                // A step below a file finds nothing while the file exists, and that is a
                // dependency already.
                Err(error) if is(&error, Errno::NOTDIR) => return Ok(()),
                other => other?,
            }
            match rustix::fs::readlinkat(&*place, &name, Vec::new()) {
                Ok(target) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Ok(());
                    }
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    for step in steps_of(&target).collect::<Vec<_>>().into_iter().rev() {
                        steps.push_front(step);
                    }
                    continue;
                }
                Err(Errno::NOENT | Errno::NAMETOOLONG) => return Ok(()),
                Err(Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
            place = Rc::new(open(&*place, Path::new(&name))?);
        }
        self.rest_on(&place, About::Itself)
    }

    fn rest_on(&mut self, place: &Rc<OwnedFd>, about: About<'_>) -> io::Result<()> {
        // Before locking the path cache, since network file systems may be slow.
        if !is_local(&**place) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let dependency = self.path_cache.dependency(place.as_fd(), about)?;
        if let Some(dependencies) = &mut self.dependencies
            && !dependencies.iter().any(|known| Arc::ptr_eq(known, &dependency))
        {
            dependencies.push(dependency);
        }
        Ok(())
    }
}

fn steps_of(path: &Path) -> impl Iterator<Item = Step> {
    path.components().filter_map(|component| match component {
        Component::RootDir => Some(Step::Root),
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Name(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    })
}

fn open(folder: impl AsFd, name: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}
