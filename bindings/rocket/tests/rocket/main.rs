//! What clients of a Rocket get of files that go through a volume.

#![cfg(test)]

mod answers;
mod changes;
mod fairing;
mod keeping;
mod large;
mod ranges;
mod routes;
mod sharing;
mod sockets;
mod support;
