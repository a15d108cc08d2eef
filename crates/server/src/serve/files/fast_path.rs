//! Answers to simple requests for small files in memory, as [`Files::answer`] would give them. Any other request takes the full path.

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use eyewall_files::FilePath;
use eyewall_http::field::cache_status::CacheStatus;
use http::header::ACCEPT_ENCODING;
use http::{HeaderValue, StatusCode, Uri};

use super::{Files, SENT_FROM_FILE_MIN};
use crate::key::Scheme;
use crate::serve::NAME;
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
        push_date(head);
        head.extend_from_slice(if request.is_last { b"connection: close\r\n\r\n" } else { b"\r\n" });
        Some(FastHit { status: StatusCode::OK, hit: file.into_hit() })
    }
}

fn push_line(head: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for piece in [name, b": ", value, b"\r\n"] {
        head.extend_from_slice(piece);
    }
}

/// Appends the field that hyper adds to its responses. Each thread writes it once a second.
fn push_date(head: &mut Vec<u8>) {
    thread_local! {
        static DATE: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
    }
    let now = SystemTime::now();
    let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    DATE.with_borrow_mut(|(written, date)| {
        if *written != second || date.is_empty() {
            (*written, *date) = (second, httpdate::fmt_http_date(now));
        }
        push_line(head, b"date", date.as_bytes());
    });
}
