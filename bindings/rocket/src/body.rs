//! The body of an answer, which Rocket copies into its own buffers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use eyewall_files::Body;
use rocket::tokio::io::{AsyncRead, AsyncSeek, ReadBuf};

/// Maximum size of Rocket's buffer. Of the powers of two from 32 KiB to 1 MiB, this is the fastest for a mix of
/// files of 1 MB and 10 MB: smaller buffers make its tasks wake each other more often. A slow client has up to
/// three such buffers.
pub(crate) const CHUNK_BYTES: usize = 512 << 10;

/// Reads a body piece by piece. It pins a piece until the last byte of it was copied.
#[derive(Debug)]
pub(crate) struct Reader {
    body: Body,
    piece: Bytes,
}

impl Reader {
    pub(crate) fn new(body: Body) -> Self {
        Self { body, piece: Bytes::new() }
    }
}

impl AsyncRead for Reader {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.piece.is_empty() {
            match ready!(this.body.poll_piece(context)) {
                Some(piece) => this.piece = piece?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = this.piece.len().min(buffer.remaining());
        buffer.put_slice(&this.piece[..length]);
        if this.body.has_lost_bytes() {
            return Poll::Ready(Err(io::Error::other(
                "bytes of the volume were lost while a file was sent; open the volume again",
            )));
        }
        // An empty rest would keep the pin.
        this.piece = if length == this.piece.len() { Bytes::new() } else { this.piece.slice(length..) };
        Poll::Ready(Ok(()))
    }
}

/// Rocket requires this, but seeks only if it isn't told a length.
impl AsyncSeek for Reader {
    fn start_seek(self: Pin<&mut Self>, _: io::SeekFrom) -> io::Result<()> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the body of a file can't seek: read it once, from its beginning to its end",
        ))
    }

    fn poll_complete(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

#[cfg(test)]
mod tests {
    use eyewall::Options;
    use eyewall_files::FileCache;
    use rocket::async_test;
    use rocket::tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

    use super::*;

    #[async_test]
    async fn a_body_is_read_from_its_beginning_and_not_sought() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "content").unwrap();
        let files = FileCache::new(Options::new().size(1 << 20).anonymous().unwrap());
        let mut reader = Reader::new(files.open(&path).await.unwrap().content());
        assert_eq!(reader.seek(io::SeekFrom::End(0)).await.unwrap_err().kind(), io::ErrorKind::Unsupported);
        let mut content = String::new();
        reader.read_to_string(&mut content).await.unwrap();
        assert_eq!(content, "content");
    }
}
