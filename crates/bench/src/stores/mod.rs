//! The stores that cost nothing to build.

mod copy;
mod files;
mod nothing;
mod servers;
mod tagged;
mod touched;
mod volume;

pub use copy::BareCopy;
pub use files::Files;
pub use nothing::Nothing;
pub use servers::{MEMCACHED, REDIS};
pub use tagged::Tagged;
pub use volume::{Copied, Volume};

use crate::peer::{Attach, Kind, Open, Peer};
use crate::plain::Plain;

const fn ours(name: &'static str, open: Open, attach: Option<Attach>) -> Peer {
    Peer { name, kind: Kind::Ours, look: || Ok(Some(env!("CARGO_PKG_VERSION").to_owned())), open, attach }
}

/// The engine under test: a get passes the bytes in the volume.
pub const EYEWALL: Peer = ours(
    Volume::NAME,
    |place| Ok(Box::new(Volume::create(place)?)),
    Some(Attach::Lasting(|place| Ok(Box::new(Volume::attach(place)?)))),
);

/// The engine, which copies each value into a buffer of the thread.
pub const EYEWALL_COPIED: Peer = ours(
    Copied::NAME,
    |place| Ok(Box::new(Copied::from(Volume::create(place)?))),
    Some(Attach::Lasting(|place| Ok(Box::new(Copied::from(Volume::attach(place)?))))),
);

/// The engine with a tier in shared memory.
pub const EYEWALL_TIER: Peer = ours(Volume::NAME_TIER, |place| Ok(Box::new(Volume::create_with_tier(place)?)), None);

/// The engine with a tier, which copies each value.
pub const EYEWALL_TIER_COPIED: Peer =
    ours(Copied::NAME_TIER, |place| Ok(Box::new(Copied::from(Volume::create_with_tier(place)?))), None);

/// The engine, with tags and a time to live on each entry.
pub const EYEWALL_TAGGED: Peer = ours(
    Tagged::NAME,
    |place| Ok(Box::new(Tagged::create(place)?)),
    Some(Attach::Lasting(|place| Ok(Box::new(Tagged::attach(place)?)))),
);

/// One file for each entry.
pub const FILES: Peer = Peer {
    name: Files::NAME,
    kind: Kind::Other,
    look: || Ok(None),
    open: |place| Ok(Box::new(Files::create(place.directory, place.cap_bytes)?)),
    attach: Some(Attach::Lasting(|place| Ok(Box::new(Files::attach(place.directory, place.cap_bytes)?)))),
};

/// The files themselves, without a cache.
pub const PLAIN: Peer = Peer {
    name: Plain::NAME,
    kind: Kind::Reference,
    look: || Ok(None),
    open: |place| Ok(Box::new(Plain::new(place.directory)?)),
    attach: Some(Attach::Lasting(|place| Ok(Box::new(Plain::new(place.directory)?)))),
};

/// Only copies each value.
pub const BARE_COPY: Peer = Peer {
    name: BareCopy::NAME,
    kind: Kind::Reference,
    look: || Ok(None),
    open: |place| Ok(Box::new(BareCopy::new(place))),
    attach: None,
};

/// Does nothing.
pub const NOTHING: Peer = Peer {
    name: Nothing::NAME,
    kind: Kind::Reference,
    look: || Ok(None),
    open: |_| Ok(Box::new(Nothing)),
    attach: None,
};

/// All of these.
pub const PEERS: [Peer; 11] = [
    EYEWALL,
    EYEWALL_COPIED,
    EYEWALL_TIER,
    EYEWALL_TIER_COPIED,
    EYEWALL_TAGGED,
    FILES,
    MEMCACHED,
    REDIS,
    BARE_COPY,
    PLAIN,
    NOTHING,
];
