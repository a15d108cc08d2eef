//! Parsers of field values, which treat malformed values as the RFCs require.

pub mod cache_control;
pub mod cache_status;
pub mod connection;
pub mod date;
pub mod entity_tag;
pub mod groups;
pub mod list;
pub mod quality;
pub mod range;
pub mod seconds;
pub mod targeted;
pub mod vary;
