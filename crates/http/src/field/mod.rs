//! Values of fields, read as the RFCs say; what is malformed, too.

pub mod date;
pub mod list;
