//! What Eyewall needs from the kernel, behind a small interface: bytes that several processes map, locks that vanish
//! with their holder, futexes, a hook into `fork`, and clocks.
//!
//! This crate knows nothing of caches. It is the only place for `mmap`, `fallocate`, `madvise`, `msync`, `fcntl`
//! locks and futexes; the crates above don't ask the kernel about memory themselves.
//!
//! | module | what it holds |
//! |---|---|
//! | [`region`] | [`Region`]: a mapped file, shared memory or heap; words as atomics, bytes by bounds-checked offset |
//! | [`page`] | the size of a page |
//! | [`probe`] | searching a cache line of words for a pattern |
//! | [`residency`] | which bytes of a region are in memory, and reading them in |
//! | [`mod@file`] | creating a file completely or not at all, opening, identity, which file systems guarantee allocated blocks |
//! | [`appended`] | a small file that many processes append to, and one reads |
//! | [`liveness`] | [`Alive`](liveness::Alive): a lock that lives exactly as long as its process |
//! | [`futex`] | sleeping on a 32-bit word until another process wakes the sleeper |
//! | [`fork`] | the fork generation, and what runs around `fork` |
//! | [`sigbus`] | what happens when a process reads a page that its file no longer has |
//! | [`memory`] | how much memory this process may use, how much is used, and whether it waits for memory |
//! | [`heap`] | giving free heap memory back to the system |
//! | [`waits`] | how often a thread had to wait |
//! | [`clock`] | clocks in milliseconds, which tests can shift |
//!
//! Linux only. Tested on x86-64. Written for any 64-bit little-endian target, but untested elsewhere.

pub mod appended;
pub mod clock;
pub mod file;
pub mod fork;
pub mod futex;
pub mod heap;
pub mod liveness;
pub mod memory;
pub mod page;
pub mod probe;
pub mod region;
pub mod residency;
pub mod sigbus;
pub mod waits;

pub use region::Region;
