//! Files through a volume, by the public interface: what is read once, what is kept, and how requests end if the
//! file, the volume or the path is faulty. Each file tells one story.

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
mod sent_from_file;
mod shared;
mod support;
mod volumes;
