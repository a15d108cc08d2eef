//! A store whose puts do nothing. It shows how much of a put's time the loop, the key and the clock take, and the
//! machine's pauses.

use crate::error::Result;
use crate::store::{Handle, Store};

/// It accepts every value, and finds none.
#[derive(Debug)]
pub struct Nothing;

impl Nothing {
    /// The name in records.
    pub const NAME: &'static str = "no store";
}

impl Store for Nothing {
    type Handle<'a> = &'a Self;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&self) -> &Self {
        self
    }
}

impl Handle for &Nothing {
    fn get(&mut self, _key: &[u8], _consumer: impl FnOnce(&[u8])) -> Result<bool> {
        Ok(false)
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        std::hint::black_box((key, value));
        Ok(())
    }

    fn delete(&mut self, _key: &[u8]) -> Result<bool> {
        Ok(false)
    }
}
