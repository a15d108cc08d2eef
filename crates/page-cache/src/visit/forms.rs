//! Compressed forms in answers ([`crate::compression`]).

use std::sync::Arc;

use bytes::Bytes;
use eyewall_http::coding::{self, Coding, Codings};
use http::header::{ETAG, RANGE};
use http::{HeaderMap, StatusCode};

use super::Visit;
use crate::compression::entity_tag;
use crate::compression::form::{self, Chosen};
use crate::generation::version as new_version;
use crate::head::Compressible;
use crate::selection::Stored;
use crate::upstream::Upstream;

impl<U: Upstream> Visit<U> {
    /// The form of a stored response that this client gets.
    pub(super) async fn form(&self, stored: &Stored) -> Chosen<Bytes> {
        let (compressible, compression) = (stored.found.head.compressible?, self.settings.compression.as_ref()?);
        if self.directives.no_transform || self.parts.headers.contains_key(RANGE) {
            return None;
        }
        let offered = compressible.codings.and(compression.codings);
        let wanted: Vec<Coding> = coding::wanted(offered, &self.parts.headers).collect();
        let is_resident = |coding: &Coding| self.pages.store.is_likely_resident(&form::key(&stored.key, *coding));
        if wanted.iter().all(is_resident) {
            return self.pages.form(&stored.key, compressible, &wanted);
        }
        let (pages, key) = (Arc::clone(&self.pages), stored.key.clone());
        // The thread has already logged its panic.
        tokio::task::spawn_blocking(move || pages.form(&key, compressible, &wanted)).await.ok().flatten()
    }

    /// Puts into the fields of a response the tag by which the client has it, as it is or in any form. Then the conditions of the
    /// request find that. False: the client doesn't have it, or nothing is compressed.
    pub(super) fn set_tag_that_client_has(&self, status: StatusCode, fields: &mut HeaderMap) -> bool {
        if self.settings.compression.is_none() || !status.is_success() {
            return false;
        }
        match entity_tag::had(&self.parts.headers, fields) {
            Some(tag) => {
                fields.insert(ETAG, tag);
                true
            }
            None => false,
        }
    }

    /// Whether a renewed response with these fields may be compressed. Its body, and so its version, stay.
    pub(super) fn renew_compressible(&self, stored: &mut Stored, allowed: Codings, fields: &mut HeaderMap) {
        let is_whole = !stored.is_fragmented() && stored.found.head.trailers.is_none();
        let (status, length) = (stored.found.head.status, Some(stored.length()));
        let codings = if is_whole { self.codings(allowed, (status, fields), length) } else { Codings::NONE };
        let version = stored.found.head.compressible.map(|before| before.version);
        stored.found.head.compressible =
            (!codings.is_empty()).then(|| Compressible { version: version.unwrap_or_else(new_version), codings });
    }

    /// The fields of a request to the upstream, with the tags that the upstream knows.
    pub fn fields(&self) -> HeaderMap {
        let mut fields = self.upstream.fields(&self.parts);
        if self.settings.compression.is_some() {
            entity_tag::add_identities(&mut fields);
        }
        fields
    }

    /// Names in the upstream's 304 the form that the client has.
    pub(super) fn set_tag_of_not_modified(&self, status: StatusCode, fields: &mut HeaderMap) {
        if status == StatusCode::NOT_MODIFIED {
            self.set_tag_that_client_has(StatusCode::OK, fields);
        }
    }
}
