//! A bound that no store in memory can beat: it copies each value once, into a ring of memory that is already mapped.

use std::sync::{Mutex, PoisonError};

use crate::error::Result;
use crate::store::{Handle, Place, Store, check_size};

/// A ring of bytes without index, headers, checksums or policy. It can't find a value again.
#[derive(Debug)]
pub struct BareCopy {
    ring: Mutex<Ring>,
}

#[derive(Debug)]
struct Ring {
    bytes: Vec<u8>,
    head: usize,
}

impl BareCopy {
    /// The name in records.
    pub const NAME: &'static str = "bare copy";

    /// Makes a ring of `cap_bytes`, and touches every page.
    pub fn new(place: &Place<'_>) -> Self {
        Self { ring: Mutex::new(Ring { bytes: vec![1; place.cap_bytes as usize], head: 0 }) }
    }
}

impl Store for BareCopy {
    type Handle<'a> = &'a Self;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&self) -> &Self {
        self
    }
}

impl Handle for &BareCopy {
    fn get(&mut self, _key: &[u8], _consumer: impl FnOnce(&[u8])) -> Result<bool> {
        Ok(false)
    }

    #[inline]
    fn put(&mut self, _key: &[u8], value: &[u8]) -> Result<()> {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let ring = &mut *ring;
        check_size(BareCopy::NAME, value, ring.bytes.len() as u64)?;
        let start = if ring.head + value.len() <= ring.bytes.len() { ring.head } else { 0 };
        ring.head = start + value.len();
        ring.bytes[start..ring.head].copy_from_slice(value);
        Ok(())
    }

    fn delete(&mut self, _key: &[u8]) -> Result<bool> {
        Ok(false)
    }
}
