//! Files in memory, for servers that write heads themselves: the answer to a plain GET, without messages and without waiting.

use std::sync::Arc;

use eyewall::Hit;
use eyewall_http::field::push_line;
use eyewall_http::message::Request;
use http::{HeaderMap, Method};

use crate::coding;
use crate::file::arrange;
use crate::folder::Folder;
use crate::path::FilePath;
use crate::representation::{Named, Representation};
use crate::statistics::Counters;

/// The 200 for a file that is in the volume as one piece, and in memory.
#[derive(Debug)]
pub struct ResidentFile<'a> {
    representation: Arc<Representation>,
    hit: Hit<'a>,
    counters: &'a Counters,
}

impl<'a> ResidentFile<'a> {
    /// The header fields of [`crate::Answer`], as lines of HTTP/1.1. `None` if the answer isn't a 200.
    pub fn field_lines(&self) -> Option<&[u8]> {
        let lines = self.representation.field_lines.get_or_init(|| field_lines(&self.representation));
        (!lines.is_empty()).then_some(lines)
    }

    /// The body. It counts as a request.
    pub fn into_hit(self) -> Hit<'a> {
        self.counters.count_hit(&self.representation.counters);
        self.hit
    }
}

impl Folder {
    /// The file at a path, if it has fewer than so many bytes, and all of it can be answered from memory: for a GET without conditions and ranges.
    /// `accepts` returns the request's `Accept-Encoding`. `None`: call [`Folder::answer`]. It needs a Tokio runtime.
    pub fn find_resident(
        &self,
        path: &FilePath,
        accepts: impl FnOnce() -> HeaderMap,
        bytes_end: u64,
    ) -> Option<ResidentFile<'_>> {
        let known = self.tree.lookup_ahead(path)?;
        let Named::File(representations) = &*known.named else { return None };
        let representation = match &representations[..] {
            [plain] => plain,
            several => &several[coding::choose(several.iter().map(|one| one.coding), &accepts())],
        };
        if representation.version.bytes >= bytes_end {
            return None;
        }
        let hit = self.store.find_whole(representation)?;
        Some(ResidentFile { representation: Arc::clone(representation), hit, counters: &self.store.counters })
    }
}

/// The lines of the fields for a GET that asks for nothing special.
fn field_lines(representation: &Representation) -> Box<[u8]> {
    let (method, fields) = (Method::GET, HeaderMap::new());
    let Ok(head) = arrange(representation, Request { method: &method, fields: &fields }) else { return Box::default() };
    let mut lines = Vec::new();
    for (name, value) in &head.fields {
        push_line(&mut lines, name.as_str().as_bytes(), value.as_bytes());
    }
    lines.into()
}
