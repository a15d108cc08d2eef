//! Values of fields, read as the RFCs say; what is malformed, too.

pub mod cache_control;
pub mod date;
pub mod list;
pub mod quality;
pub mod seconds;
pub mod targeted;
pub mod vary;
