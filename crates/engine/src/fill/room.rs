//! The room that a writer fills: one record that stays pinned while the writer has it.

use super::pin::PinAt;
use crate::error::{Error, Result};
use crate::format::UNIT_BYTES;
use crate::format::hash::Place;
use crate::format::record::{Header, Record};
use crate::protocol::{self, Word};
use crate::seam;
use crate::stripe::{RingId, Stripe, Work};
use crate::volume::Volume;
use crate::write;

/// Room that grows in place grows by at least this many bytes, and by a quarter of itself.
const GROWTH_BYTES: u64 = 64 << 10;

/// Room in a ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) ring: RingId,
    pub(crate) at: u64,
    /// The whole room, header included.
    pub(crate) bytes: u64,
    pub(crate) position: u64,
    pin: PinAt,
}

impl Room {
    /// Pins `bytes` free bytes at `at` of `ring`, and takes them into the log.
    pub(crate) fn take(
        stripe: &Stripe<'_>,
        (ring, at): (RingId, u64),
        bytes: u64,
        header: &Header,
        pin: PinAt,
    ) -> Result<Self> {
        let position = stripe.ring(ring).position(at);
        let room = Self { ring, at, bytes, position, pin };
        room.pin_word(stripe.volume).store_fenced(Volume::pin_word(stripe.number, position));
        stripe.begin_room(ring, at, bytes, header);
        stripe.volume.check_intact().inspect_err(|_| room.unpin(stripe.volume))?;
        Ok(room)
    }

    /// Makes the room larger, by at least to `needed` bytes: in place, or as a second room.
    /// It doesn't contend for main: it did so when it began, if it could.
    pub(crate) fn grow(self, stripe: &mut Stripe<'_>, needed: u64, header: &Header) -> Result<Grown> {
        let volume = stripe.volume;
        let most = volume.layout.entry_bytes_max / UNIT_BYTES * UNIT_BYTES;
        let step = (self.bytes / 4 / UNIT_BYTES * UNIT_BYTES).max(GROWTH_BYTES);
        for bytes in [(self.bytes + step).max(needed).min(most), needed] {
            // An entry larger than half of small belongs into main.
            let stays = self.ring == RingId::Main || write::ring_for(stripe, bytes) == RingId::Small;
            if stays && stripe.grow_room(self.ring, self.at, self.bytes, bytes - self.bytes)? {
                return Ok(Grown::InPlace(Self { bytes, ..self }));
            }
        }
        let mut made = Err(Error::Pinned { bytes: needed });
        for bytes in [(self.bytes * 2).max(needed).min(most), needed] {
            if matches!(made, Err(Error::Pinned { .. })) {
                let pin = PinAt::for_room(volume, bytes)?;
                let ring = match self.ring {
                    RingId::Main => RingId::Main,
                    RingId::Small => write::ring_for(stripe, bytes),
                };
                made = write::make_room(stripe, ring, bytes, &mut Work::new(bytes))
                    .and_then(|spot| Self::take(stripe, spot, bytes, header, pin));
            }
        }
        made.map(Grown::Elsewhere)
    }

    pub(crate) fn record<'a>(&self, volume: &'a Volume, place: &Place) -> Record<'a> {
        Record::at(&volume.region, (volume.layout.stripe_data_at(place.stripe) + self.position * UNIT_BYTES) as usize)
    }

    fn pin_word<'a>(&self, volume: &'a Volume) -> &'a std::sync::atomic::AtomicU64 {
        self.pin.word(volume)
    }

    /// Releases the room. What no slot names and nobody else pins is garbage.
    pub(crate) fn unpin(&self, volume: &Volume) {
        seam::kill_point();
        protocol::unpin(self.pin_word(volume));
    }
}

/// Where the larger room is.
pub(crate) enum Grown {
    InPlace(Room),
    /// In a second room that is still empty. Both rooms are pinned.
    Elsewhere(Room),
}
