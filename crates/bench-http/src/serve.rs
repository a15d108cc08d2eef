//! The bare server: hits from memory, by hyper alone.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, StatusCode};

use crate::error::Result;
use crate::listen;
use crate::objects::{Asked, Objects};

/// Answers /page/BYTES/NAME until standard input ends.
pub(crate) fn run() -> Result<()> {
    let objects = Arc::new(Objects::of_cache());
    listen::run("serve", move |request| {
        let response = answer(&objects, request.uri().path());
        async { response }
    })
}

fn answer(objects: &Objects, path: &str) -> Response<Full<Bytes>> {
    let Some(Asked { kind: "page", bytes }) = Asked::by(path) else {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    };
    let object = objects.get(bytes);
    let mut response = Response::new(Full::new(object.body));
    *response.headers_mut() = object.fields;
    response
}
