//! The bytes of files: read as a whole, or sent piece by piece. Every read has a thread of its own.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use eyewall_http::ranges::Stretch;
use tokio::sync::mpsc::Sender;

use super::stamp::Stamp;
use crate::serve::body::{Body, Part};

const PIECE_BYTES: u64 = 64 << 10;

/// Reads a file that had this stamp, and says whether it had it still afterwards.
pub(super) fn read(mut file: File, stamp: &Stamp) -> io::Result<(Vec<u8>, bool)> {
    let mut value = Vec::with_capacity(stamp.bytes as usize);
    (&mut file).take(stamp.bytes).read_to_end(&mut value)?;
    let is_whole = value.len() as u64 == stamp.bytes && Stamp::of(&file.metadata()?) == *stamp;
    Ok((value, is_whole))
}

/// What is wanted of a file, as fast as the client takes it.
pub(super) fn stream(file: File, stretches: Vec<Stretch>) -> Body {
    let (sender, body) = Body::pumped();
    tokio::spawn(async move {
        let last = match pump(Arc::new(file), stretches, &sender).await {
            Ok(()) => Part::End,
            Err(error) => Part::Failed(error),
        };
        // Nobody to tell if the client is gone.
        let _ = sender.send(last).await;
    });
    body
}

async fn pump(file: Arc<File>, stretches: Vec<Stretch>, sender: &Sender<Part>) -> io::Result<()> {
    for stretch in stretches {
        let mut left = match stretch {
            Stretch::Head(text) => {
                if sender.send(Part::Piece(text.into())).await.is_err() {
                    return Ok(());
                }
                continue;
            }
            Stretch::Bytes(range) => range,
        };
        while !left.is_empty() {
            let piece = read_piece(&file, left.start, PIECE_BYTES.min(left.end - left.start)).await?;
            left.start += piece.len() as u64;
            if sender.send(Part::Piece(piece)).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// At most so many bytes from a place on, and one at least.
async fn read_piece(file: &Arc<File>, from: u64, bytes_max: u64) -> io::Result<Bytes> {
    let file = Arc::clone(file);
    let reading = tokio::task::spawn_blocking(move || {
        let mut piece = vec![0; bytes_max as usize];
        let length = file.read_at(&mut piece, from)?;
        piece.truncate(length);
        Ok(Bytes::from(piece))
    });
    match reading.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())) {
        Ok(piece) if piece.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
        other => other,
    }
}
