//! The responses that clients of Rocket get for files in a volume.

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
