//! What the lines of a web server's access log say of a cache: which object was asked for, and how large its answer was.
//!
//! Three forms are read ([`Format`]): NCSA common and combined, an object of JSON a line, and `key size`. Which one a log has is
//! found by [`Format::detect`]. `eyewall advise` replays logs by this, and so does the benchmark.
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
//! # What is absent
//! Files, gzip and time: whoever has the bytes brings them, in whole lines. Nothing here fails: a line that says nothing is
//! [`Line::Bad`].

#![forbid(unsafe_code)]

mod json_line;
mod line;

pub use line::{Format, Line, lines};
