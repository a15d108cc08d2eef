//! The page cache of all front doors: stored HTTP responses in a volume. On a miss, `eyewall serve` asks an origin, and `eyewall-tower`
//! asks a service of the same process.
//!
//! | module | what it knows |
//! |---|---|
//! | [`pages`] | storing and renewing responses; what all share |
//! | [`selection`] | choosing among the stored responses of an address |
//! | [`purge`] | purging them, and what is on its way |
//! | [`tags`] | by what responses are purged together |
//! | [`query`] | where the answers to QUERY of an address begin |
//! | [`head`] | a stored response without its body, as it lies in the entry's metadata |
//! | [`store`] | keeping, finding, renewing and purging entries; what fits; the end of the volume |
//! | [`layout`] | where the fragments of a large body lie |
//! | [`generation`] | numbers that tell one state of an address from another |
//! | [`answer`] | an answer that is on its way into the volume |
//! | [`body`] | its body as it comes, and its readers |
//! | [`collapsing`] | who asks for what many want at once, and who waits for that |
//! | [`recent_keys`] | what was so a moment ago, of keys |
//! | [`recent_purges`] | what was purged by its address while it was asked for |
//! | [`blocking`] | whether an event loop may write to the volume by itself |
//!
//! What may be stored and sent is decided in `eyewall-http`. There is no socket here, no server, and no configuration.

#![forbid(unsafe_code)]

pub mod answer;
pub mod blocking;
pub mod body;
pub mod collapsing;
pub mod generation;
pub mod head;
pub mod layout;
pub mod pages;
pub mod purge;
pub mod query;
pub mod recent_keys;
pub mod recent_purges;
pub mod selection;
pub mod store;
pub mod tags;
