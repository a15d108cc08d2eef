//! The suite: definitions, drivers, records.

#![cfg(test)]

mod drivers;
mod folder;
mod processes;
mod runs;
