//! Certificates from Pebble, the ACME server that Let's Encrypt tests clients with: it asks by real sockets, and checks signatures and nonces.
//!
//! The tests look for it at `EYEWALL_PEBBLE`, where `scripts/tool --build pebble` puts it, and in the path. Without it they say that they are
//! skipped, except where `CI` is set.

#![cfg(test)]

mod answering;
mod pebble;
mod site;

mod failing;
mod issuing;
mod renewing;
mod sharing;
