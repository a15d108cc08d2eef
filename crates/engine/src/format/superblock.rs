//! The first page of a volume: its identity, its shape, its secret, and the state of its attachment.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use eyewall_region::{Region, file::Identity};
use xxhash_rust::xxh3::xxh3_64;

use super::hash::Secret;
use super::layout::{Layout, SUPERBLOCK_BYTES};
use super::purges::{self, MOVED_AT};

/// `EYEWALL` and a zero byte, read as a little-endian word.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"EYEWALL\0");
/// The format version that this code writes and reads.
pub(crate) const VERSION: u32 = 5;
/// Has another value on a machine of the other byte order.
const BYTE_ORDER: u32 = 0x0102_0304;
/// The stored fields end here, including their checksum.
const STATIC_BYTES: usize = 152;

/// Bytes 0 to 151 of a superblock, as words.
pub(crate) type Static = [u64; STATIC_BYTES / 8];

/// Offsets of the words that change. They lie on lines that readers only read, except for the thread mark.
const CLEAN_AT: usize = 192;
const GENERATION_AT: usize = 200;
const GENERATION_BITS: u32 = 16;
const BOOT_AT: usize = 208;
const IDENTITY_AT: usize = 224;
const UNCLEAN_DROPS_AT: usize = 240;
const BORN_AT: usize = 248;
const THREADS_USED_AT: usize = 256;
const TIME_BASE_AT: usize = 264;
const TIME_SEEN_AT: usize = 272;
const CRASHES_AT: usize = 280;

/// Flag: dead entries are overwritten with zeros.
const ERASES: u64 = 1;
/// Flag: the index has a fixed number of buckets.
const INDEX_IS_FIXED: u64 = 2;

/// The part that never changes after creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) layout: Layout,
    pub(crate) secret: Secret,
    pub(crate) created_ms: u64,
    /// Whether the bytes of dead entries are overwritten with zeros.
    pub(crate) erases: bool,
}

/// Why a superblock was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejected {
    Foreign,
    Version(u32),
    ByteOrder,
    /// All zeros. The first page of some disk images is, too.
    Zeros,
    Corrupt(&'static str),
}

impl Superblock {
    /// The stored bytes. All fields little-endian; see `docs/format.md`.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let layout = &self.layout;
        let mut bytes = Vec::with_capacity(SUPERBLOCK_BYTES as usize);
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&BYTE_ORDER.to_le_bytes());
        let words = [
            layout.size,
            layout.stripes,
            layout.buckets,
            layout.small,
            layout.main,
            layout.processes,
            layout.threads,
            layout.claims,
            layout.entry_bytes_max,
            layout.entry_size_hint,
            self.secret.hash_seed,
            self.secret.mac_key[0],
            self.secret.mac_key[1],
            self.created_ms,
            layout.tag_lines,
            (u64::from(self.erases) * ERASES) | (u64::from(layout.index_is_fixed) * INDEX_IS_FIXED),
        ];
        for word in words {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        let sum = xxh3_64(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The stored bytes, as words of a map.
    pub(crate) fn words(&self) -> Static {
        let bytes = self.encode();
        let (words, _) = bytes.as_chunks();
        std::array::from_fn(|at| words.get(at).map_or(0, |word| u64::from_le_bytes(*word)))
    }

    /// A number that identifies this volume, from the checksum of what never changes, including the secret. Never
    /// zero.
    pub(crate) fn id(&self) -> u64 {
        purges::checked_id(xxh3_64(&self.encode()) | 1 << 63)
    }

    /// Gives arbitrary bytes a right magic, version and checksum.
    #[cfg(feature = "seams")]
    pub(crate) fn sign(bytes: &mut [u8]) {
        let Some(bytes) = bytes.first_chunk_mut::<STATIC_BYTES>() else { return };
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&BYTE_ORDER.to_le_bytes());
        let sum = xxh3_64(&bytes[..STATIC_BYTES - 8]);
        bytes[STATIC_BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
    }

    /// Reads the stored bytes, and trusts none of them.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Rejected> {
        if bytes.is_empty() {
            return Err(Rejected::Corrupt("it is empty"));
        }
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(Rejected::Zeros);
        }
        let Some(bytes) = bytes.first_chunk::<STATIC_BYTES>() else {
            let is_ours = bytes.starts_with(&MAGIC.to_le_bytes());
            return Err(if is_ours { Rejected::Corrupt("it ends within its header") } else { Rejected::Foreign });
        };
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        if word(0) != MAGIC {
            let mut mended = *bytes;
            mended[..8].copy_from_slice(&MAGIC.to_le_bytes());
            // Only a volume has this checksum.
            let is_ours = xxh3_64(&mended[..STATIC_BYTES - 8]) == word(STATIC_BYTES - 8);
            return Err(if is_ours { Rejected::Corrupt("its first bytes were changed") } else { Rejected::Foreign });
        }
        let (version, order) = (word(8) as u32, (word(8) >> 32) as u32);
        if order == BYTE_ORDER.swap_bytes() {
            return Err(Rejected::ByteOrder);
        }
        if version != VERSION {
            return Err(Rejected::Version(version));
        }
        if order != BYTE_ORDER || xxh3_64(&bytes[..STATIC_BYTES - 8]) != word(STATIC_BYTES - 8) {
            return Err(Rejected::Corrupt("its superblock fails its checksum"));
        }
        let mut layout = Layout {
            size: word(16),
            stripes: word(24),
            buckets: word(32),
            small: word(40),
            main: word(48),
            processes: word(56),
            threads: word(64),
            claims: word(72),
            entry_bytes_max: word(80),
            entry_size_hint: word(88),
            tag_lines: word(128),
            index_is_fixed: word(136) & INDEX_IS_FIXED != 0,
            ..Layout::default()
        };
        if layout.size > 1 << 50 || layout.processes > 1 << 16 || layout.threads > 1 << 20 {
            return Err(Rejected::Corrupt("its superblock describes an impossible shape"));
        }
        if [layout.stripes, layout.claims, layout.tag_lines >> 4].iter().any(|count| *count > 1 << 16)
            || [layout.buckets, layout.small, layout.main].iter().any(|size| *size > 1 << 40)
        {
            return Err(Rejected::Corrupt("its superblock describes an impossible shape"));
        }
        layout.place_parts();
        if !layout.is_sound() {
            return Err(Rejected::Corrupt("its superblock describes an impossible shape"));
        }
        let secret = Secret { hash_seed: word(96), mac_key: [word(104), word(112)] };
        if word(136) & !(ERASES | INDEX_IS_FIXED) != 0 {
            return Err(Rejected::Corrupt("its superblock has flags that this format doesn't know"));
        }
        Ok(Self { layout, secret, created_ms: word(120), erases: word(136) & ERASES != 0 })
    }
}

/// The tag of an attachment, which is stored in the headers that were written or verified in it. It is a keyed
/// permutation of the low 16 bits of the attachment's number. So no two attachments share a tag until the numbers
/// wrap. A damaged number or tag passes for another attachment's with a chance of 1 in 65,536.
pub(crate) fn tag(secret: &Secret, number: u64) -> u16 {
    let mut mixed = number as u16;
    for round in secret.mac_key.iter().flat_map(|word| [*word, *word >> 32]) {
        // Both a product with an odd number and a fold of high bits can be undone.
        mixed = (mixed ^ round as u16).wrapping_mul((round >> 16) as u16 | 1);
        mixed ^= mixed >> 7;
    }
    mixed
}

/// From the first page of a file: the id of the volume that has replaced it, or 0.
pub(crate) fn moved_id(page: &[u8]) -> u64 {
    let word = page.get(MOVED_AT..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| purges::read_id(u64::from_le_bytes(*word)))
}

/// The words of the superblock that change while the volume lives.
///
/// They are written under the attach lock, with two exceptions: the first writer after an attach clears the clean
/// word, and any thread raises the thread mark.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attachment<'a>(pub(crate) &'a Region);

impl Attachment<'_> {
    /// Whether the last process left the volume in order and synced to storage.
    pub(crate) fn is_clean(self) -> bool {
        self.0.word(CLEAN_AT).load(Acquire) == 1
    }

    pub(crate) fn set_clean(self, clean: bool) {
        self.0.word(CLEAN_AT).store(u64::from(clean), Release);
    }

    /// The tag of this attachment, as in the headers that were written or verified in it. No header has 0.
    pub(crate) fn generation(self) -> u16 {
        self.0.word(GENERATION_AT).load(Acquire) as u16
    }

    /// How often a process attached while no other was attached.
    pub(crate) fn attachments(self) -> u64 {
        self.0.word(GENERATION_AT).load(Acquire) >> GENERATION_BITS
    }

    /// Whether no process has ever attached.
    pub(crate) fn is_new(self) -> bool {
        self.0.word(GENERATION_AT).load(Acquire) == 0
    }

    /// Whether the part that never changes is unchanged.
    pub(crate) fn has(self, words: &Static) -> bool {
        let now: &[_; STATIC_BYTES / 8] = self.0.words(0);
        now.iter().zip(words).all(|(now, then)| now.load(Relaxed) == *then)
    }

    /// Whether the word that numbers attachments is one that an attachment left, or that of a new volume.
    pub(crate) fn is_numbered(self, secret: &Secret) -> bool {
        self.is_new() || self.generation() == tag(secret, self.attachments())
    }

    /// Starts the attachment of this number. Any 65,535 numbers in a row have different tags.
    pub(crate) fn start_generation(self, secret: &Secret, number: u64) {
        let word = (number << GENERATION_BITS) | u64::from(tag(secret, number));
        self.0.word(GENERATION_AT).store(word, Release);
    }

    /// The boot and the file in which the volume was last attached.
    pub(crate) fn home(self) -> (u128, Identity) {
        let boot = [BOOT_AT, BOOT_AT + 8].map(|at| u128::from(self.0.word(at).load(Relaxed)));
        let identity = Identity {
            device: self.0.word(IDENTITY_AT).load(Relaxed),
            inode: self.0.word(IDENTITY_AT + 8).load(Relaxed),
            born_ns: self.0.word(BORN_AT).load(Relaxed),
        };
        (boot[0] | (boot[1] << 64), identity)
    }

    pub(crate) fn set_home(self, boot: u128, identity: Identity) {
        self.0.word(BOOT_AT).store(boot as u64, Relaxed);
        self.0.word(BOOT_AT + 8).store((boot >> 64) as u64, Relaxed);
        self.0.word(IDENTITY_AT).store(identity.device, Relaxed);
        self.0.word(IDENTITY_AT + 8).store(identity.inode, Relaxed);
        self.0.word(BORN_AT).store(identity.born_ns, Relaxed);
    }

    /// The volume's time, in milliseconds, at the start of this machine. Chosen once for each boot.
    pub(crate) fn time_base(self) -> u64 {
        self.0.word(TIME_BASE_AT).load(Relaxed)
    }

    pub(crate) fn set_time_base(self, ms: u64) {
        self.0.word(TIME_BASE_AT).store(ms, Relaxed);
    }

    /// A time that the volume has reached. The next boot can't start earlier.
    pub(crate) fn time_seen(self) -> u64 {
        self.0.word(TIME_SEEN_AT).load(Relaxed)
    }

    pub(crate) fn see_time(self, ms: u64) {
        self.0.word(TIME_SEEN_AT).fetch_max(ms, Relaxed);
    }

    /// How often the volume was emptied because it could not be trusted.
    pub(crate) fn unclean_drops(self) -> u64 {
        self.0.word(UNCLEAN_DROPS_AT).load(Relaxed)
    }

    pub(crate) fn count_unclean_drop(self) {
        self.0.word(UNCLEAN_DROPS_AT).fetch_add(1, Relaxed);
    }

    /// How often the volume was attached after a power loss, or as a copy.
    pub(crate) fn crashes(self) -> u64 {
        self.0.word(CRASHES_AT).load(Relaxed)
    }

    pub(crate) fn set_crashes(self, crashes: u64) {
        self.0.word(CRASHES_AT).store(crashes, Relaxed);
    }

    /// No thread slot with this or a higher number was ever used.
    #[inline]
    pub(crate) fn threads_used(self) -> u64 {
        self.0.word(THREADS_USED_AT).load(std::sync::atomic::Ordering::SeqCst)
    }

    /// Raises the mark, before a new thread slot's first pin. Sequentially consistent, as the pin is.
    pub(crate) fn raise_threads_used(self, used: u64) {
        self.0.word(THREADS_USED_AT).fetch_max(used, std::sync::atomic::Ordering::SeqCst);
    }

    /// Syncs the page that holds these words.
    pub(crate) fn sync(self) -> std::io::Result<()> {
        self.0.sync(0, SUPERBLOCK_BYTES as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Superblock {
        Superblock {
            layout: Layout::new(1 << 20, 1024, None).unwrap(),
            secret: Secret { hash_seed: 1, mac_key: [2, 3] },
            created_ms: 4,
            erases: true,
        }
    }

    #[test]
    fn a_superblock_survives_encoding() {
        assert_eq!(Superblock::decode(&sample().encode()), Ok(sample()));
    }

    #[test]
    fn every_single_bit_flip_is_noticed() {
        let good = sample().encode();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Superblock::decode(&bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn no_two_attachments_in_a_row_of_65536_share_a_tag() {
        let secret = Secret { hash_seed: 1, mac_key: [0x1234_5678_9abc_def0, 42] };
        let tags: std::collections::HashSet<u16> = (7..7 + (1 << 16)).map(|number| tag(&secret, number)).collect();
        assert_eq!(tags.len(), 1 << 16);
    }

    #[test]
    fn each_kind_of_stranger_gets_its_own_answer() {
        let mut other = sample().encode();
        other[8] = 9;
        assert_eq!(Superblock::decode(&other), Err(Rejected::Version(9)));
        let mut swapped = sample().encode();
        swapped[12..16].reverse();
        assert_eq!(Superblock::decode(&swapped), Err(Rejected::ByteOrder));
        assert_eq!(Superblock::decode(b"PK\x03\x04"), Err(Rejected::Foreign));
        assert_eq!(Superblock::decode(&[0; 4096]), Err(Rejected::Zeros));
    }
}
