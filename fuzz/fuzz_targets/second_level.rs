//! Arbitrary bytes as objects of a second level, and as what an agent and its programs say to each other: nothing panics, and what is
//! understood means the same when it is written again.
#![no_main]

use eyewall_fleet_client::protocol;
use libfuzzer_sys::fuzz_target;

/// A response with this head and body.
fn record(bytes: &[u8]) -> Vec<u8> {
    let (length, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let (head, body) = rest.split_at(usize::from(*length).min(rest.len()));
    let mut record = vec![1, 0];
    record.extend(7u64.to_le_bytes());
    record.extend([1, 0]);
    record.extend((head.len() as u32).to_le_bytes());
    record.extend(head);
    record.extend(body);
    record
}

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, bytes)) = bytes.split_first() else { return };
    match mode % 4 {
        0 => eyewall_server::seams::record(bytes),
        1 => eyewall_server::seams::record(&record(bytes)),
        2 => {
            if let Some(request) = protocol::Request::decode(bytes) {
                // The length comes first.
                assert_eq!(protocol::Request::decode(&request.encode()[4..]), Some(request));
            }
        }
        _ => {
            if let Some(object) = protocol::decode_object(bytes) {
                assert_eq!(protocol::decode_object(&protocol::encode_object(&object)), Some(object));
            }
        }
    }
});
