//! Arbitrary bytes as superblock, record, slot, owner and pin: nothing panics, and what is understood means the same
//! when it is written again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| eyewall::seams::parse(bytes));
