//! What the kernel gives Eyewall, behind a small surface: bytes that several processes map, locks that
//! vanish with their holder, futexes, a hook into `fork`, and a clock.
//!
//! This crate knows nothing of caches. It is the only home of `mmap`, `fallocate`, `madvise`, `msync`,
//! `fcntl` locks and futexes; nothing above it talks to the kernel about memory.
//!
//! | module | what it holds |
//! |---|---|
//! | [`region`] | [`Region`]: a mapped file, shared memory or heap; words as atomics, bytes by bounds-checked offset; what of it is in memory |
//! | [`mod@file`] | creating a file whole or not at all, opening, identity, which file systems keep a promise |
//! | [`liveness`] | [`Alive`](liveness::Alive): a lock that lives exactly as long as its process |
//! | [`futex`] | sleeping on a 32-bit word that other processes wake |
//! | [`fork`] | the fork generation, and what runs around `fork` |
//! | [`sigbus`] | what becomes of a process that reads a page which its file doesn't have any more |
//! | [`memory`] | how much memory this process may use, how much it does, and whether it waits for some |
//! | [`clock`] | wall-clock milliseconds, with a seam for tests |
//!
//! Linux only. Tested on x86-64; written for any 64-bit little-endian target, untested elsewhere.

pub mod clock;
pub mod file;
pub mod fork;
pub mod futex;
pub mod heap;
pub mod liveness;
pub mod memory;
pub mod region;
pub mod residency;
pub mod sigbus;

pub use region::Region;
