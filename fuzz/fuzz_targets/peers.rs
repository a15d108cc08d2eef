//! Arbitrary bytes as a question of another node and as its answer: nothing panics, and what is understood means the same when it is
//! written again.
#![no_main]

use std::time::{Duration, SystemTime};

use eyewall_http::message::Exchange;
use eyewall_page_cache::carried::Envelope;
use libfuzzer_sys::fuzz_target;

/// A question with these texts, which 0xff separates, so that what lies behind their lengths is met.
fn question(bytes: &[u8]) -> Vec<u8> {
    let mut question = vec![1, 1];
    question.extend([7; 32]);
    let mut texts = bytes.splitn(8, |byte| *byte == 0xff);
    question.extend([4, 0, 0, 0].iter().chain(b"http"));
    for text in texts.by_ref().take(6) {
        question.extend((text.len() as u32).to_le_bytes());
        question.extend(text);
    }
    question.extend(texts.next().unwrap_or_default());
    question
}

/// An envelope with this kind and head.
fn envelope(bytes: &[u8]) -> Vec<u8> {
    let (kind, head) = bytes.split_first().unwrap_or((&0, &[]));
    let mut envelope = vec![1, kind % 5];
    envelope.extend((head.len() as u32).to_le_bytes());
    envelope.extend(head);
    envelope
}

fn answer(bytes: &[u8]) {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30);
    let exchange = Exchange { requested: now, received: now };
    let Some((envelope, body)) = Envelope::decode(bytes, exchange) else { return };
    assert!(bytes.ends_with(body));
    if let Some(again) = envelope.encode(now) {
        assert_eq!(Envelope::decode(&again, exchange), Some((envelope, &b""[..])));
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, bytes)) = bytes.split_first() else { return };
    match mode % 4 {
        0 => eyewall_server::seams::question(bytes),
        1 => eyewall_server::seams::question(&question(bytes)),
        2 => answer(bytes),
        _ => answer(&envelope(bytes)),
    }
});
