//! Answers to simple requests for small files in memory, as [`Files::answer`] would give them. Any other request takes the full path.

use std::time::SystemTime;

use eyewall_files::FilePath;
use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::field::push_line;
use http::header::ACCEPT_ENCODING;
use http::{HeaderValue, StatusCode, Uri};

use super::{Files, SENT_FROM_FILE_MIN};
use crate::key::Scheme;
use crate::serve::NAME;
use crate::serve::date;
use crate::serve::proxy::fast_path::FastHit;
use crate::serve::simple_request::SimpleRequest;

impl Files {
    /// The file that answers a simple request. Writes the head of the response, of HTTP/1.1, into `head`. `hsts` is the field for requests over
    /// HTTPS.
    pub(crate) fn fast_hit(
        &self,
        request: &SimpleRequest<'_>,
        hsts: Option<&HeaderValue>,
        head: &mut Vec<u8>,
    ) -> Option<FastHit<'_>> {
        let now = SystemTime::now();
        let uri: Uri = request.target.parse().ok()?;
        // The missing part is a fragment, and the full path refuses the request.
        if uri.path_and_query()?.as_str().len() != request.target.len() {
            return None;
        }
        let path = FilePath::parse(uri.path(), self.folder.serves_dotfiles()).ok()?;
        let accepts = || request.fields_of(&[ACCEPT_ENCODING]);
        let file = self.folder.find_resident(&path, accepts, SENT_FROM_FILE_MIN)?;
        head.clear();
        head.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        head.extend_from_slice(file.field_lines()?);
        push_line(head, b"cache-status", CacheStatus::hit().member(NAME).as_bytes());
        if let Some(hsts) = hsts.filter(|_| request.scheme == Scheme::Https) {
            push_line(head, b"strict-transport-security", hsts.as_bytes());
        }
        push_date(head, now);
        head.extend_from_slice(if request.is_last { b"connection: close\r\n\r\n" } else { b"\r\n" });
        Some(FastHit { status: StatusCode::OK, hit: file.into_hit(), looked_up: now })
    }
}

/// Appends the field that hyper adds to its responses.
fn push_date(head: &mut Vec<u8>, now: SystemTime) {
    head.extend_from_slice(b"date: ");
    date::push_http(head, now);
    head.extend_from_slice(b"\r\n");
}
