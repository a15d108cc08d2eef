//! Files through a volume, by the public interface: what is read once, what is kept, and what becomes of a request when file, volume
//! or path are not as they should be. Each file tells one story.

#![cfg(test)]

mod admission;
mod changed;
mod fragments;
mod known_paths;
mod longest_file;
mod paths;
mod prepared;
mod removed;
mod requests;
mod shared;
mod support;
mod volumes;
