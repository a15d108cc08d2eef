//! Folders and files as services: one story in each file.

#![cfg(test)]

mod axum_routers;
mod cache_status;
mod changes;
mod codings;
mod conditions;
mod connections;
mod fallbacks;
mod large_files;
mod one_file;
mod paths;
mod support;
