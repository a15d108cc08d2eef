//! The tools of the `eyewall` command, through its binary: one scenario in each file.

#![cfg(test)]

#[path = "../common/command.rs"]
mod command;
#[path = "../common/expected.rs"]
mod expected;

mod advise;
mod advise_bad_logs;
mod bad_volume;
mod broken_pipe;
mod check;
mod colours;
mod completions;
mod copied;
mod create;
mod interrupted;
mod keys_as_text;
mod list;
mod list_chosen;
mod manual;
mod map_and_parts;
mod mistakes;
mod moved;
mod purge;
mod put_get_remove;
mod read_only;
mod resize;
mod scrub;
mod stale_and_negative;
mod statistics;
mod too_large;
mod top;
mod top_on_a_terminal;
mod ttl;
mod usage;
mod verify;
