//! The engine through its public API, in one process: one scenario in each file.
//!
//! They share a binary, since linking takes longer than most of them. What forks, starts processes, handles signals or
//! changes what belongs to the whole process, such as its clock, has a binary of its own, beside this folder.

#![cfg(test)]

#[path = "../anatomy/mod.rs"]
mod anatomy;
#[path = "../common/mod.rs"]
mod common;

mod aba;
mod copied_volume;
mod crowded;
mod details;
mod displacement;
mod erase;
mod flood;
mod foreign_files;
mod limits;
mod newcomers;
mod options_differ;
mod overwritten_header;
mod pins;
mod plain_map;
mod purge_during_work;
mod purges;
mod residency;
mod second_level;
mod shared_memory;
mod steps;
mod threads;
mod tier_map;
mod verify;
mod versions;
