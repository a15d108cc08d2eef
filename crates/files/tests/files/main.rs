//! Files through a volume, by the public interface: what is read once, what is kept, and what becomes of a request when file, volume
//! or path are not as they should be. Each file tells one story.

#![cfg(test)]

mod changed;
mod fragments;
mod kept;
mod known_paths;
mod paths;
mod prepared;
mod quarter;
mod removed;
mod requests;
mod shared;
mod support;
mod volumes;
