//! Reads access logs of web servers for cache studies: which object a client requested, and how large the response was.
//!
//! It reads three formats ([`Format`]): NCSA common and combined, one JSON object per line, and `key size`. [`Format::detect`] finds
//! the format of a log. `eyewall advise` and the benchmark replay logs with this crate.
//!
//! ```
//! use eyewall_access_log::{Format, Line, lines};
//!
//! let log = br#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET /a?b HTTP/1.1" 200 2326
//! ::1 - - [10/Oct/2000:13:55:37 -0700] "POST /a HTTP/1.1" 200 17
//! "#;
//! let format = Format::detect(log).expect("most of its lines have a form");
//! let mut scratch = Vec::new();
//! let said: Vec<bool> =
//!     lines(log).map(|line| format.parse(line, &mut scratch) == Line::Request { key: b"/a?b", bytes: 2326 }).collect();
//! assert_eq!(said, [true, false]);
//! ```
//!
//! # Left to the caller
//! The caller opens files, decompresses them, and passes whole lines. Times are not read. Nothing here fails: a line in another
//! format is [`Line::Bad`].

#![forbid(unsafe_code)]

mod json_line;
mod line;

pub use line::{Format, Line, lines};
