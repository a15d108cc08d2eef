//! The representations of a file: plain, or by a precompressed file beside it.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use eyewall_http::field::range;
use http::header::{ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_TYPE, ETAG, LAST_MODIFIED, VARY};
use http::{HeaderMap, HeaderValue};

use crate::coding::{Coding, tag_suffix};
use crate::file_version::FileVersion;
use crate::open_files::SharedFile;
use crate::statistics::FileCounters;

/// A second after its last change, a file gets validators, which then distinguish it from the version before.
const SECOND: Duration = Duration::from_secs(1);

/// What a path names.
#[derive(Debug)]
pub(crate) enum Named {
    /// A file in its representations: the plain one first, precompressed ones after it.
    File(Vec<Arc<Representation>>),
    /// A folder with an index, requested without the slash at the end.
    Folder,
    Nothing,
}

impl Named {
    /// Whether it is a file whose representations still have their versions.
    pub(crate) fn is_unchanged(&self) -> bool {
        let Self::File(representations) = self else { return false };
        representations.iter().all(|representation| {
            fs::metadata(&representation.path).is_ok_and(|file| FileVersion::of(&file) == representation.version)
        })
    }

    /// Whether it stays valid while nothing changes. It doesn't until it has validators.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        let before = now.checked_sub(SECOND).unwrap_or(now);
        match self {
            Self::File(representations) => {
                !representations.iter().any(|representation| representation.version.may_still_change(before))
            }
            Self::Folder | Self::Nothing => true,
        }
    }
}

/// A file that can answer a path.
#[derive(Debug)]
pub(crate) struct Representation {
    pub(crate) coding: Option<Coding>,
    /// Its path below the root.
    pub(crate) below: PathBuf,
    /// Its absolute path.
    pub(crate) path: PathBuf,
    pub(crate) version: FileVersion,
    /// The fields of a 200, except its length.
    pub(crate) fields: HeaderMap,
    /// The key of its first fragment.
    pub(crate) key: Box<[u8]>,
    /// Whether it changed so shortly before the look that another change would leave no trace: such bytes
    /// aren't kept.
    pub(crate) is_unsettled: bool,
    /// Whether it can be sent from the file itself, once that is known.
    pub(crate) is_sendable: OnceLock<bool>,
    /// The open file, while responses are sent from it.
    pub(crate) open: SharedFile,
    /// The fields of a 200, as lines, once somebody wants them.
    pub(crate) field_lines: OnceLock<Box<[u8]>>,
    pub(crate) counters: Arc<FileCounters>,
}

/// The fields of a 200. A file that changed shortly before `now` has no validators yet, since they could stand
/// for two versions.
pub(crate) fn fields(
    coding: Option<Coding>,
    content_type: &HeaderValue,
    is_chosen: bool,
    version: &FileVersion,
    now: SystemTime,
) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, content_type.clone());
    fields.insert(ACCEPT_RANGES, range::BYTES);
    if let Some(coding) = coding {
        fields.insert(CONTENT_ENCODING, coding.value());
    }
    if is_chosen {
        fields.insert(VARY, HeaderValue::from(ACCEPT_ENCODING));
    }
    if !version.may_still_change(now)
        && let Some(tag) = version.etag(coding.map_or("", tag_suffix))
    {
        fields.insert(ETAG, tag);
    }
    // It has whole seconds: two versions within the same second would have the same value.
    if !version.may_still_change(now.checked_sub(SECOND).unwrap_or(now))
        && let Some(modified) = version.last_modified()
    {
        fields.insert(LAST_MODIFIED, modified);
    }
    fields
}
