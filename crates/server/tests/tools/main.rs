//! The tools of the `eyewall` command, as a user meets them: one scenario in each file.

#![cfg(test)]

#[path = "../common/command.rs"]
mod command;

mod bad_volume;
mod broken_pipe;
mod copied;
mod create;
mod keys_as_text;
mod list;
mod put_get_remove;
mod read_only;
mod statistics;
mod too_large;
mod ttl;
mod usage;
