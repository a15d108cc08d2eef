/** @file
 * Eyewall: one memory-mapped cache that every process on a machine shares.
 *
 * Generated from the Rust sources in bindings/c/src by `make header`; changes here are lost.
 *
 * OWNERSHIP. The caller owns whatever a call reads through a pointer (keys, values, options); the library doesn't use it after
 * the call. If a call returns an object through a pointer to a pointer (a cache, a claim, a flight, a writer, a follower, an
 * iterator), the caller owns that object. It hands the object to the function that ends it; that function takes it even if it
 * returns an error, and accepts NULL. The caller provides the memory of an eyewall_hit. A call fills it in, and
 * eyewall_hit_release releases what it holds. End and release all of these before you close their cache.
 *
 * HOLDING. A held entry can't be evicted, so hold it only while you read. A thread holds up to seven hits in place at a time.
 * Further hits are copies in this process's heap (eyewall_info.is_copy). So are all hits of a volume that is open for reading
 * only, and those of threads for which the volume's table has no slot. Copies take up to 64 MiB of a process.
 *
 * LATER VERSIONS of this library use the reserved fields, which must be zero. Set structs to zero before you set their fields,
 * as an initialiser does.
 *
 * THREADS. Any number of threads may use a cache at once. Every other object may move between threads, and one thread at a time
 * may use it.
 *
 * FORK. A child may use the cache that its parent opened. The parent's other objects (hits, claims, flights, writers ...) don't
 * belong to the child: ending or releasing them there has no effect, and the child must not read their bytes.
 *
 * ERRORS. Calls return an eyewall_status. A value from 0 on is an answer, a value below 0 an error. eyewall_error_message says
 * what happened and what to do. After an error, and after an answer that returns nothing, the results are NULL or zero.
 */

#ifndef EYEWALL_H
#define EYEWALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * An infinite duration, in results that are in milliseconds.
 */
#define EYEWALL_FOREVER UINT64_MAX

/**
 * The volume must exist.
 */
#define EYEWALL_MUST_EXIST 1

/**
 * Opens the volume for reading only. All hits are copies then.
 */
#define EYEWALL_READ_ONLY 2

/**
 * A new volume overwrites dead entries with zeros.
 */
#define EYEWALL_SECURE_ERASE 4

/**
 * If the volume's file is truncated or its storage fails, calls return an error and the process is not killed.
 * Installs a handler of SIGBUS.
 */
#define EYEWALL_SURVIVE_SIGBUS 8

/**
 * After a crash of the machine, empty the volume. Without it, entries that can be verified are kept.
 */
#define EYEWALL_CLEAR_UNCLEAN 16

/**
 * Use eyewall_open_options.group.
 */
#define EYEWALL_SET_GROUP 32

/**
 * Rename a broken file to NAME.broken-SECONDS_SINCE_1970 and create a new volume in its place. Broken means
 * empty, shorter than its header says, or with a damaged header. One such file is kept. Without the flag,
 * opening it returns EYEWALL_ERROR_CORRUPT. A file that is not a volume is never renamed.
 */
#define EYEWALL_PUT_ASIDE_BROKEN 64

/**
 * Verify the checksum of each hit before returning it. A damaged entry is removed, and is a miss. That reads the
 * whole value each time. Without the flag, the library trusts entries that this process has verified once.
 */
#define EYEWALL_VERIFY_HITS 128

/**
 * The volume belongs to a fleet: purges of all processes wait in a file beside it, NAME.purges, for `eyewall serve`
 * or `eyewall fleet agent`, which pass them on to other machines. Without the flag, they do so as soon as one of
 * these programs has made the file. Fills ask the agent for what other machines have made, if it shares objects. The
 * flag has no effect with EYEWALL_READ_ONLY.
 */
#define EYEWALL_FLEET 256

/**
 * The length of a value that isn't known in advance.
 */
#define EYEWALL_LENGTH_UNKNOWN UINT64_MAX

/**
 * What happens to the purged entries.
 */
enum eyewall_purge
#ifdef __cplusplus
  : int32_t
#endif // __cplusplus
 {
  /**
   * They are removed.
   */
  EYEWALL_PURGE_HARD = 0,
  /**
   * They become stale, and stay usable for as long as their options allow.
   */
  EYEWALL_PURGE_SOFT = 1,
};
#ifndef __cplusplus
/** One of enum eyewall_purge. */
typedef int32_t eyewall_purge;
#endif // __cplusplus

/**
 * The result of a call. From 0 on it is an answer. Below 0 it is an error, which eyewall_error_message explains.
 */
enum eyewall_status
#ifdef __cplusplus
  : int32_t
#endif // __cplusplus
 {
  /**
   * The call succeeded, and found what it looked for.
   */
  EYEWALL_OK = 0,
  /**
   * There is no valid entry.
   */
  EYEWALL_MISS = 1,
  /**
   * There is a stale entry: it may be used, and should be renewed.
   */
  EYEWALL_STALE = 2,
  /**
   * There is a negative entry; eyewall_info has its reason.
   */
  EYEWALL_NEGATIVE = 3,
  /**
   * The condition doesn't hold, and nothing was changed.
   */
  EYEWALL_UNMET = 4,
  /**
   * Another caller put, removed or purged the entry after this change began. The change counts as done
   * before that, and nothing of it is stored.
   */
  EYEWALL_SUPERSEDED = 5,
  /**
   * There is no entry. The caller has to make it and to end its eyewall_flight.
   */
  EYEWALL_FILL = 6,
  /**
   * There is no more.
   */
  EYEWALL_END = 7,
  /**
   * The buffer is too small. The returned length says how large it must be.
   */
  EYEWALL_TOO_SMALL = 8,
  /**
   * A required pointer is NULL, or an argument is invalid.
   */
  EYEWALL_ERROR_ARGUMENT = -1,
  /**
   * The key has no bytes.
   */
  EYEWALL_ERROR_KEY_EMPTY = -2,
  /**
   * The key has more than 65,535 bytes, or is longer than the volume allows.
   */
  EYEWALL_ERROR_KEY_TOO_LONG = -3,
  /**
   * The metadata, including tags, has more than 65,535 bytes.
   */
  EYEWALL_ERROR_METADATA_TOO_LONG = -4,
  /**
   * The put has more than 32 tags.
   */
  EYEWALL_ERROR_TOO_MANY_TAGS = -5,
  /**
   * A tag has no bytes, or more than 255.
   */
  EYEWALL_ERROR_TAG_LENGTH = -6,
  /**
   * eyewall_increment found an entry that is not a counter.
   */
  EYEWALL_ERROR_NOT_A_COUNTER = -7,
  /**
   * The entry is larger than the volume's entry_bytes_max.
   */
  EYEWALL_ERROR_ENTRY_TOO_LARGE = -8,
  /**
   * Readers hold too many entries, so the cache can't make room. Release hits and try again. If the call
   * ended a claim or a flight, begin a new one.
   */
  EYEWALL_ERROR_PINNED = -9,
  /**
   * Another process or thread held the key or a lock until the deadline. Try again.
   */
  EYEWALL_ERROR_BUSY = -10,
  /**
   * The writer of the entry gave up, or was superseded.
   */
  EYEWALL_ERROR_INTERRUPTED = -11,
  /**
   * The volume was opened for reading only, or the file permits only reading.
   */
  EYEWALL_ERROR_READ_ONLY = -12,
  /**
   * There is no volume, and EYEWALL_MUST_EXIST is set.
   */
  EYEWALL_ERROR_NOT_FOUND = -13,
  /**
   * The file is not a volume. It was left unchanged.
   */
  EYEWALL_ERROR_FOREIGN = -14,
  /**
   * The file has another version of the format, or comes from a machine with another byte order.
   */
  EYEWALL_ERROR_VERSION = -15,
  /**
   * The file is damaged.
   */
  EYEWALL_ERROR_CORRUPT = -16,
  /**
   * The volume has another size, hint or limit than the options ask for.
   */
  EYEWALL_ERROR_OPTIONS_DIFFER = -17,
  /**
   * The size, or entry_bytes_max, is out of range.
   */
  EYEWALL_ERROR_OUT_OF_RANGE = -18,
  /**
   * The volume can't have the tier that the options ask for.
   */
  EYEWALL_ERROR_NO_TIER = -19,
  /**
   * The file system has no room for the volume.
   */
  EYEWALL_ERROR_NO_SPACE = -20,
  /**
   * The volume's table of processes is full.
   */
  EYEWALL_ERROR_TOO_MANY_PROCESSES = -21,
  /**
   * Bytes of the volume were lost under its map, or another file took its place. Close the volume and open
   * it again.
   */
  EYEWALL_ERROR_FAILED = -22,
  /**
   * The operating system refused a call.
   */
  EYEWALL_ERROR_IO = -23,
  /**
   * A bug in the library. Please report it with its message.
   */
  EYEWALL_ERROR_INTERNAL = -24,
};
#ifndef __cplusplus
/** One of enum eyewall_status. */
typedef int32_t eyewall_status;
#endif // __cplusplus

/**
 * An open volume.
 */
typedef struct eyewall_cache eyewall_cache;

/**
 * The right to change one key. One thread of one process has it at a time.
 */
typedef struct eyewall_claim eyewall_claim;

/**
 * The right, and the duty, to make one entry that others wait for. Also known as single flight.
 */
typedef struct eyewall_flight eyewall_flight;

/**
 * Reads an entry while a writer writes it.
 */
typedef struct eyewall_follower eyewall_follower;

/**
 * An iteration over all entries.
 */
typedef struct eyewall_iter eyewall_iter;

/**
 * An entry in progress. Look-ups don't find it before it is committed.
 */
typedef struct eyewall_writer eyewall_writer;

/**
 * A held entry. Until you release it, its bytes don't change, whatever is put, removed or evicted meanwhile.
 *
 * The caller provides the memory. A call that fills it doesn't look at its former content, so release that
 * first. You may move a hit. You may copy it if you release one of the copies and don't use the others. Hold a
 * hit only while you read it: a held entry can't be evicted.
 */
typedef struct eyewall_hit {
  /**
   * The value. NULL: the hit holds nothing.
   */
  const void *value;
  /**
   * Length of the value in bytes.
   */
  size_t value_length;
  /**
   * Internal to the library.
   */
  uint64_t held[8];
} eyewall_hit;

/**
 * A string of bytes, without a terminating zero.
 */
typedef struct eyewall_bytes {
  /**
   * The first byte.
   */
  const void *data;
  /**
   * The number of bytes.
   */
  size_t length;
} eyewall_bytes;

/**
 * A moment between two purges of a cache. Only eyewall_now gives one.
 */
typedef struct eyewall_epoch {
  /**
   * Internal to the library.
   */
  uint64_t words[2];
} eyewall_epoch;

/**
 * Options of a put. A field that is 0 has its default, and NULL in place of the options means all defaults.
 */
typedef struct eyewall_put_options {
  /**
   * Time to live in milliseconds. 0: until the entry is evicted.
   */
  uint64_t ttl_ms;
  /**
   * How long the entry stays usable after its ttl_ms (eyewall_lookup), in milliseconds. It has no effect
   * without a ttl_ms: a soft purge then makes the entry stale until it is evicted.
   */
  uint64_t stale_ms;
  /**
   * Up to 65,535 bytes of the caller's own, stored before the value.
   */
  const void *metadata;
  /**
   * How many they are.
   */
  size_t metadata_length;
  /**
   * Labels by which entries are purged together: up to 32, each of 1 to 255 bytes of UTF-8.
   */
  const struct eyewall_bytes *tags;
  /**
   * How many.
   */
  size_t tags_count;
  /**
   * When work on the value began. If a purge since then applies to the entry, the entry isn't found,
   * though the call returns EYEWALL_OK. NULL: the beginning of the call.
   */
  const struct eyewall_epoch *begun_in;
  /**
   * For later versions; zero.
   */
  uint64_t reserved[4];
} eyewall_put_options;

/**
 * The caller's memory for a copy of an entry, and what it received. `value` and `metadata` may be NULL if their
 * capacity is 0.
 */
typedef struct eyewall_copy {
  /**
   * Where to copy the value.
   */
  void *value;
  /**
   * How many bytes have room there.
   */
  size_t value_capacity;
  /**
   * Where to copy the metadata.
   */
  void *metadata;
  /**
   * How many bytes have room there.
   */
  size_t metadata_capacity;
  /**
   * Result: the length of the value, even if it has no room.
   */
  size_t value_length;
  /**
   * Result: the length of the metadata, even if it has no room.
   */
  size_t metadata_length;
  /**
   * Result: identifies this version of the entry, as in eyewall_info.
   */
  uint64_t serial;
  /**
   * For later versions; zero.
   */
  uint64_t reserved[4];
} eyewall_copy;

/**
 * Properties of an entry.
 */
typedef struct eyewall_info {
  /**
   * Identifies this version of the entry. It grows with every put of the key.
   */
  uint64_t serial;
  /**
   * When it was put, in milliseconds since 1970.
   */
  uint64_t created_ms;
  /**
   * Remaining time to live in milliseconds. EYEWALL_FOREVER: valid until it is evicted.
   */
  uint64_t ttl_left_ms;
  /**
   * Remaining time in which it may be used, fresh or stale, in milliseconds.
   */
  uint64_t usable_left_ms;
  /**
   * The reason code of a negative entry.
   */
  uint16_t reason;
  /**
   * Whether it is a negative entry.
   */
  bool is_negative;
  /**
   * Whether it was past its time to live at the look-up.
   */
  bool is_stale;
  /**
   * Whether the bytes are a copy on this process's heap, because too much of the volume is held.
   */
  bool is_copy;
  /**
   * With EYEWALL_SURVIVE_SIGBUS: whether the bytes that were read so far are those that were put.
   */
  bool is_intact;
  /**
   * Reserved for later versions.
   */
  uint64_t reserved[4];
} eyewall_info;

/**
 * Options of opening or creating a volume. A field that is 0 has its default, so `{ .size = 1 << 30 }` is
 * enough.
 *
 * The creation of a volume fixes its shape (size, entry_size_hint, entry_bytes_max). Asking for another shape
 * later is an error. Leaving a field 0 accepts the volume as it is.
 */
typedef struct eyewall_open_options {
  /**
   * Size of the volume in bytes, including all overhead: a hard cap. 0: 64 MiB. At least 512 KiB.
   */
  uint64_t size;
  /**
   * The largest entry in bytes: 48, plus key, metadata and value. 0: a sixteenth of the size, at most 4
   * MiB. At most a quarter of the size.
   */
  uint64_t entry_bytes_max;
  /**
   * Size of a typical entry in bytes, which determines the initial size of the index. 0: 1024.
   */
  uint32_t entry_size_hint;
  /**
   * EYEWALL_MUST_EXIST and the other flags, joined by |.
   */
  uint32_t flags;
  /**
   * Permission bits of a new volume; the umask doesn't apply. 0: 0600. Readers trust every user who can
   * write the volume.
   */
  uint32_t mode;
  /**
   * With EYEWALL_SET_GROUP: the group of a new volume.
   */
  uint32_t group;
  /**
   * How long a call waits for a stopped process, or for another caller's claim, in milliseconds. 0: 1000.
   */
  uint64_t lock_deadline_ms;
  /**
   * Maximum size in bytes of a tier: shared memory in front of a volume on a disk, which holds copies of
   * hot entries. 0: none.
   */
  uint64_t tier_bytes;
  /**
   * The folder of the tier's file. NULL: /dev/shm.
   */
  const char *tier_folder;
  /**
   * Reserved for later versions; must be zero.
   */
  uint64_t reserved[4];
} eyewall_open_options;

/**
 * New times and metadata of an entry. A field that is 0 leaves them unchanged.
 */
typedef struct eyewall_touch_options {
  /**
   * Whether to set ttl_ms and stale_ms: valid from now for ttl_ms (0: until it is evicted), and usable for
   * stale_ms after that.
   */
  bool set_times;
  /**
   * Whether to set the metadata.
   */
  bool set_metadata;
  /**
   * Whether to touch the entry only if it still has the serial.
   */
  bool if_serial;
  /**
   * See set_times.
   */
  uint64_t ttl_ms;
  /**
   * See set_times.
   */
  uint64_t stale_ms;
  /**
   * See set_metadata.
   */
  const void *metadata;
  /**
   * How many bytes of it.
   */
  size_t metadata_length;
  /**
   * See if_serial.
   */
  uint64_t serial;
  /**
   * When the caller learned what the touch says. A purge since then keeps its effect on the entry. NULL:
   * now.
   */
  const struct eyewall_epoch *begun_in;
  /**
   * For later versions; zero.
   */
  uint64_t reserved[4];
} eyewall_touch_options;

/**
 * How eyewall_increment counts.
 */
typedef struct eyewall_counter_options {
  /**
   * Value of an absent counter before the addition.
   */
  int64_t start;
  /**
   * Whether min and max apply: a sum outside of them becomes the nearer one.
   */
  bool has_bounds;
  /**
   * See has_bounds.
   */
  int64_t min;
  /**
   * See has_bounds.
   */
  int64_t max;
  /**
   * Options of a new counter. An existing counter keeps its own. May be NULL.
   */
  const struct eyewall_put_options *put;
  /**
   * For later versions; zero.
   */
  uint64_t reserved[4];
} eyewall_counter_options;

/**
 * Statistics of a volume: present sizes, and counts since its creation over all processes. Byte counts are of
 * whole records.
 */
typedef struct eyewall_stats {
  /**
   * Size of the file: the hard cap.
   */
  uint64_t size_bytes;
  /**
   * Bytes that entries can use: both rings of all stripes.
   */
  uint64_t data_bytes;
  /**
   * Bytes of the superblock, the tables and the index.
   */
  uint64_t overhead_bytes;
  /**
   * Number of stripes, which are independent parts of the volume.
   */
  uint64_t stripes;
  /**
   * The largest accepted entry in bytes.
   */
  uint64_t entry_bytes_max;
  /**
   * Entries that can be found, including expired ones that aren't evicted yet.
   */
  uint64_t entries;
  /**
   * Bytes of their records.
   */
  uint64_t live_bytes;
  /**
   * Bytes that are neither used nor waiting to be freed.
   */
  uint64_t free_bytes;
  /**
   * Unused bytes at the ends of rings and beside held entries, until the eviction hand passes.
   */
  uint64_t filler_bytes;
  /**
   * Bytes of overwritten, removed or unpublished records, until the eviction hand passes.
   */
  uint64_t dead_bytes;
  /**
   * Bytes that power loss, or copying the file, left unchecked. Puts and `eyewall verify` check them.
   * Until then they may be live, dead or lost, and `entries` is an estimate.
   */
  uint64_t untiled_bytes;
  /**
   * Slots of the index.
   */
  uint64_t index_slots;
  /**
   * Slots of live entries.
   */
  uint64_t index_live;
  /**
   * Slots that remember evicted entries.
   */
  uint64_t index_ghosts;
  /**
   * Look-ups that found a valid entry. Neither hits nor misses count look-ups of read-only openers, or of
   * threads that found no free thread slot.
   */
  uint64_t hits;
  /**
   * Look-ups that found no valid entry.
   */
  uint64_t misses;
  /**
   * Hits that were copied to the heap.
   */
  uint64_t copies;
  /**
   * Entries stored.
   */
  uint64_t puts;
  /**
   * Entries removed or cleared.
   */
  uint64_t removes;
  /**
   * Evicted because they were seldom asked for.
   */
  uint64_t evictions_cold;
  /**
   * Evicted after they had expired.
   */
  uint64_t evictions_expired;
  /**
   * Evicted because their index buckets were full. A few always are; more are while entries become smaller
   * and the index grows after them.
   */
  uint64_t evictions_index;
  /**
   * Evicted because they failed their checksum.
   */
  uint64_t evictions_damaged;
  /**
   * Dropped because they were purged.
   */
  uint64_t evictions_purged;
  /**
   * Entries promoted from the small ring to main because they were hit.
   */
  uint64_t promotions;
  /**
   * Entries reinserted into main because they were hit.
   */
  uint64_t reinsertions;
  /**
   * Entries that moved from small to main because main had room.
   */
  uint64_t moved;
  /**
   * Bytes of the records that puts wrote.
   */
  uint64_t bytes_written;
  /**
   * Bytes of the records that the three kinds of moves above copied.
   */
  uint64_t bytes_copied;
  /**
   * Present pins: of hits, and of large puts in progress.
   */
  uint64_t pins;
  /**
   * Processes attached for writing.
   */
  uint64_t processes;
  /**
   * Thread slots in use.
   */
  uint64_t threads;
  /**
   * Stripes that were repaired after the process that held their lock died.
   */
  uint64_t repairs;
  /**
   * Rings that were emptied because their log was damaged.
   */
  uint64_t resets;
  /**
   * Puts refused because readers held too much.
   */
  uint64_t pinned_refusals;
  /**
   * Operations that failed at the lock deadline.
   */
  uint64_t busy;
  /**
   * Age of the most recently evicted entry, in milliseconds: the largest over all stripes.
   */
  uint64_t eviction_age_ms;
  /**
   * Purges of tags, of prefixes and of everything.
   */
  uint64_t purges;
  /**
   * Purges that removed more than they named because a table was full: of tags, of prefixes, of epochs.
   */
  uint64_t purge_overflows;
  /**
   * How often a process attached to the volume while no other process was attached.
   */
  uint64_t attachments;
  /**
   * How often attaching emptied the volume: because the record of its age was damaged, or because the
   * caller set EYEWALL_CLEAR_UNCLEAN and the volume had not been closed in order.
   */
  uint64_t unclean_drops;
  /**
   * Look-ups that this process's tier answered, if it has one.
   */
  uint64_t tier_hits;
  /**
   * The tier's maximum size in bytes.
   */
  uint64_t tier_size_bytes;
  /**
   * Slots that the index should have for its entries. Each put makes one step towards that number.
   */
  uint64_t index_slots_wanted;
  /**
   * Steps that the index has made; each adds or removes eight slots.
   */
  uint64_t index_steps;
} eyewall_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Claims a key and looks its entry up. EYEWALL_OK: `hit` holds the entry; release it. EYEWALL_MISS: there is no
 * entry. In both cases the caller owns `claim` and must end it.
 *
 * While the claim stands, other claims, writers and fills of the key wait, up to the lock deadline. If this
 * process dies, they continue. Plain puts and removes don't wait: they supersede what the claim stores. Release
 * the hit before you store, since a held entry can't be evicted to make room.
 */
eyewall_status eyewall_claim_begin(const struct eyewall_cache *cache,
                                   const void *key,
                                   size_t key_length,
                                   struct eyewall_claim **claim,
                                   struct eyewall_hit *hit);

/**
 * Stores a value and ends the claim, even after an error. To retry, claim the key again. EYEWALL_SUPERSEDED:
 * another caller changed the entry after the claim began, and nothing was stored. `serial` may be NULL.
 */
eyewall_status eyewall_claim_put(struct eyewall_claim *claim,
                                 const void *value,
                                 size_t value_length,
                                 const struct eyewall_put_options *options,
                                 uint64_t *serial);

/**
 * Removes the entry, if there is one, and ends the claim. EYEWALL_SUPERSEDED: another caller changed the entry
 * after the claim began.
 */
eyewall_status eyewall_claim_remove(struct eyewall_claim *claim);

/**
 * Ends the claim and leaves the entry unchanged.
 */
void eyewall_claim_end(struct eyewall_claim *claim);

/**
 * Looks up a key. If it has no valid entry, one caller over all threads and processes gets the right to make it.
 * The others wait for that caller, up to `deadline_ms`.
 *
 * EYEWALL_OK: `hit` holds the entry; release it. EYEWALL_STALE, only with `use_stale`: `hit` holds a stale
 * entry, which another caller is renewing; release it. EYEWALL_NEGATIVE: there is nothing, and `reason` (may be
 * NULL) says why. EYEWALL_FILL: make the entry, and end the `flight`. If this process dies, one of the waiting
 * callers makes the entry. EYEWALL_ERROR_BUSY: the deadline passed.
 */
eyewall_status eyewall_fill_begin(const struct eyewall_cache *cache,
                                  const void *key,
                                  size_t key_length,
                                  uint64_t deadline_ms,
                                  bool use_stale,
                                  struct eyewall_hit *hit,
                                  uint16_t *reason,
                                  struct eyewall_flight **flight);

/**
 * Stores the value and ends the flight, even after an error. EYEWALL_SUPERSEDED: another caller changed the
 * entry after the flight began, and nothing was stored. `serial` may be NULL.
 */
eyewall_status eyewall_flight_store(struct eyewall_flight *flight,
                                    const void *value,
                                    size_t value_length,
                                    const struct eyewall_put_options *options,
                                    uint64_t *serial);

/**
 * Stores a negative entry, so that nobody tries again for `ttl_ms` (0: until it is evicted), and ends the
 * flight. If the negative entry can't be stored, the next caller tries again.
 */
eyewall_status eyewall_flight_remember(struct eyewall_flight *flight, uint16_t reason, uint64_t ttl_ms);

/**
 * Ends the flight without an entry. One of the waiting callers makes it instead.
 */
void eyewall_flight_end(struct eyewall_flight *flight);

/**
 * Looks up the valid entry of a key, without copying it. EYEWALL_OK: release `hit`. EYEWALL_MISS: there is no
 * valid entry. It takes no lock. It makes no system call, except at a thread's first call and, for volumes on a
 * disk, at about one call in 256.
 */
eyewall_status eyewall_get(const struct eyewall_cache *cache,
                           const void *key,
                           size_t key_length,
                           struct eyewall_hit *hit);

/**
 * As eyewall_get, but the look-up doesn't raise the entry's frequency, and the statistics don't count it.
 */
eyewall_status eyewall_peek(const struct eyewall_cache *cache,
                            const void *key,
                            size_t key_length,
                            struct eyewall_hit *hit);

/**
 * Looks up a key whatever state its entry is in. EYEWALL_OK, EYEWALL_STALE and EYEWALL_NEGATIVE fill `hit`;
 * release it.
 */
eyewall_status eyewall_lookup(const struct eyewall_cache *cache,
                              const void *key,
                              size_t key_length,
                              struct eyewall_hit *hit);

/**
 * EYEWALL_OK: there is a valid entry. EYEWALL_MISS: there is none. The call doesn't raise the entry's frequency.
 */
eyewall_status eyewall_contains(const struct eyewall_cache *cache, const void *key, size_t key_length);

/**
 * Copies the value of a key to the caller's buffer; there is nothing to release. EYEWALL_TOO_SMALL: nothing was
 * copied, and `length` says how many bytes the value has.
 */
eyewall_status eyewall_get_copy(const struct eyewall_cache *cache,
                                const void *key,
                                size_t key_length,
                                void *buffer,
                                size_t capacity,
                                size_t *length);

/**
 * Copies the value and the metadata of a key to the caller's memory, and says the entry's serial; there is nothing
 * to release. EYEWALL_TOO_SMALL: nothing was copied, since one of the two has no room; `copy` says their lengths. It
 * is one call where eyewall_get would be three, for languages whose calls into C are dear.
 */
eyewall_status eyewall_get_entry(const struct eyewall_cache *cache,
                                 const void *key,
                                 size_t key_length,
                                 struct eyewall_copy *copy);

/**
 * Looks up `count` keys at once, which is faster than one by one. `hits` is an array of `count` hits. A key
 * without an entry gives a hit whose value is NULL. Release each of the others.
 */
eyewall_status eyewall_get_many(const struct eyewall_cache *cache,
                                const struct eyewall_bytes *keys,
                                size_t count,
                                struct eyewall_hit *hits);

/**
 * Whether eyewall_get and reading the whole value would avoid waiting for storage. EYEWALL_OK: `resident` has
 * the answer. EYEWALL_MISS: there is no entry. Threads that mustn't wait for storage, such as event loops, ask
 * this first.
 */
eyewall_status eyewall_is_resident(const struct eyewall_cache *cache,
                                   const void *key,
                                   size_t key_length,
                                   bool *resident);

/**
 * Reads those bytes of the entry into memory that aren't there yet. It waits for storage.
 */
eyewall_status eyewall_prefault(const struct eyewall_cache *cache, const void *key, size_t key_length);

/**
 * Releases the hit. An empty hit may be released.
 */
void eyewall_hit_release(struct eyewall_hit *hit);

/**
 * The entry's key.
 */
struct eyewall_bytes eyewall_hit_key(const struct eyewall_hit *hit);

/**
 * The entry's metadata. Its length is 0 if there is none.
 */
struct eyewall_bytes eyewall_hit_metadata(const struct eyewall_hit *hit);

/**
 * One of the entry's tags; `number` counts from 0. The data is NULL if there are fewer tags.
 */
struct eyewall_bytes eyewall_hit_tag(const struct eyewall_hit *hit, size_t number);

/**
 * The entry's other properties.
 */
eyewall_status eyewall_hit_info(const struct eyewall_hit *hit, struct eyewall_info *info);

/**
 * Call it after you have read the value. EYEWALL_OK: the bytes that you read are those that were put.
 * EYEWALL_ERROR_FAILED: bytes of the volume were lost under its map (EYEWALL_SURVIVE_SIGBUS), and any bytes of
 * the entry may have read as zeros since. The call costs next to nothing.
 */
eyewall_status eyewall_hit_check(const struct eyewall_hit *hit);

/**
 * The value's range in the volume's file, for callers that read the file through their own descriptor.
 * EYEWALL_MISS: the hit is a copy, or the volume has no file.
 *
 * The range holds the value only while the hit is held. sendfile and splice return before the bytes are read:
 * hold the hit until the peer has received them, which a socket doesn't report.
 */
eyewall_status eyewall_hit_file_range(const struct eyewall_hit *hit, uint64_t *offset, uint64_t *length);

/**
 * Begins an iteration over all valid entries, in no order. With `all` it includes stale and negative entries. It
 * may or may not meet entries that are put or evicted meanwhile. It meets every other entry once.
 */
eyewall_status eyewall_iter_begin(const struct eyewall_cache *cache, bool all, struct eyewall_iter **iter);

/**
 * The next entry; release it. EYEWALL_END: there are no more entries, or the volume was resized since the
 * iteration began.
 */
eyewall_status eyewall_iter_next(struct eyewall_iter *iter, struct eyewall_hit *hit);

/**
 * Ends an iteration, finished or not.
 */
void eyewall_iter_end(struct eyewall_iter *iter);

/**
 * Opens the volume at `path`, and creates it if there is none. `options` may be NULL. Several caches of one
 * volume in a process share one attachment.
 */
eyewall_status eyewall_open(const char *path, const struct eyewall_open_options *options, struct eyewall_cache **cache);

/**
 * Creates a volume in shared memory that has no name. This process shares it with the processes that it forks.
 */
eyewall_status eyewall_open_anonymous(const struct eyewall_open_options *options, struct eyewall_cache **cache);

/**
 * Closes the cache. End and release everything that came from it first. A forked child that closes its parent's
 * cache leaves the parent's open. A child that ends by _exit needn't close it.
 *
 * The last process that closes a volume writes it to storage, which may take seconds, and marks it as clean. If
 * that process ends without closing, the volume keeps what has reached storage by then.
 */
void eyewall_close(struct eyewall_cache *cache);

/**
 * Purges all entries with this tag that any process has stored until now. `purge` is an eyewall_purge. It takes
 * microseconds, however many entries have the tag.
 */
eyewall_status eyewall_purge_tag(const struct eyewall_cache *cache, const void *tag, size_t tag_length, int32_t purge);

/**
 * Purges all entries whose keys begin with this prefix.
 */
eyewall_status eyewall_purge_prefix(const struct eyewall_cache *cache,
                                    const void *prefix,
                                    size_t prefix_length,
                                    int32_t purge);

/**
 * Purges all entries.
 */
eyewall_status eyewall_purge_all(const struct eyewall_cache *cache, int32_t purge);

/**
 * The present moment, for eyewall_put_options.begun_in. Every purge after it removes an entry that is put with
 * it. It is valid for this cache while the cache is open.
 */
eyewall_status eyewall_now(const struct eyewall_cache *cache, struct eyewall_epoch *epoch);

/**
 * Stores a value in place of any former entry, and evicts other entries now if it needs room. `serial` may be NULL.
 */
eyewall_status eyewall_put(const struct eyewall_cache *cache,
                           const void *key,
                           size_t key_length,
                           const void *value,
                           size_t value_length,
                           const struct eyewall_put_options *options,
                           uint64_t *serial);

/**
 * Stores a negative entry, with a reason code. eyewall_lookup returns it as EYEWALL_NEGATIVE; eyewall_get
 * misses.
 */
eyewall_status eyewall_put_negative(const struct eyewall_cache *cache,
                                    const void *key,
                                    size_t key_length,
                                    uint16_t reason,
                                    const struct eyewall_put_options *options,
                                    uint64_t *serial);

/**
 * Stores a value only if there is no valid entry. EYEWALL_UNMET: there was one.
 */
eyewall_status eyewall_add(const struct eyewall_cache *cache,
                           const void *key,
                           size_t key_length,
                           const void *value,
                           size_t value_length,
                           const struct eyewall_put_options *options,
                           uint64_t *serial);

/**
 * Stores a value only if the entry still has the serial `expected`. EYEWALL_UNMET: it has another serial,
 * expired, or is gone.
 */
eyewall_status eyewall_replace_if(const struct eyewall_cache *cache,
                                  const void *key,
                                  size_t key_length,
                                  uint64_t expected,
                                  const void *value,
                                  size_t value_length,
                                  const struct eyewall_put_options *options,
                                  uint64_t *serial);

/**
 * Removes an entry. EYEWALL_MISS: there was no valid one.
 */
eyewall_status eyewall_remove(const struct eyewall_cache *cache, const void *key, size_t key_length);

/**
 * Removes an entry if it still has this serial. EYEWALL_UNMET: it has another serial, expired, or is gone.
 */
eyewall_status eyewall_remove_if(const struct eyewall_cache *cache,
                                 const void *key,
                                 size_t key_length,
                                 uint64_t serial);

/**
 * Removes all entries; `removed` may be NULL.
 */
eyewall_status eyewall_clear(const struct eyewall_cache *cache, uint64_t *removed);

/**
 * Gives a fresh or stale entry new times and metadata. Its value, age and tags stay. EYEWALL_MISS: there is no
 * entry, or none with the serial. With NULL, the call only exempts the entry from earlier soft purges.
 */
eyewall_status eyewall_touch(const struct eyewall_cache *cache,
                             const void *key,
                             size_t key_length,
                             const struct eyewall_touch_options *options);

/**
 * Adds to a counter, atomically over all processes. `sum` is the new value and may be NULL. A counter is an
 * entry of eight bytes, an int64_t in little-endian order. An absent counter is created. `options` may be NULL.
 */
eyewall_status eyewall_increment(const struct eyewall_cache *cache,
                                 const void *key,
                                 size_t key_length,
                                 int64_t by,
                                 const struct eyewall_counter_options *options,
                                 int64_t *sum);

/**
 * Fills `stats`. `stats_size` is the number of bytes that the caller knows: sizeof(eyewall_stats). Later
 * versions of the library append fields. The call scans the whole index, one stripe after the other.
 */
eyewall_status eyewall_stats_read(const struct eyewall_cache *cache, struct eyewall_stats *stats, size_t stats_size);

/**
 * How many entries all processes have put since the volume was created or resized, and the bytes of their
 * records. The volume's entries have grown by no more than that. The call takes no lock and reads two words per
 * stripe, so a caller can afford it before each put. `puts` or `bytes` may be NULL.
 */
eyewall_status eyewall_written(const struct eyewall_cache *cache, uint64_t *puts, uint64_t *bytes);

/**
 * This thread's last error: one sentence in English that says what happened and what to do. Valid until the
 * thread's next error.
 */
const char *eyewall_error_message(void);

/**
 * The version of this library, as "1.2.3".
 */
const char *eyewall_version(void);

/**
 * Begins an entry whose value comes piece by piece. If the length is known, no byte is copied twice.
 *
 * The writer claims the key: other writers, claims and fills of it wait. Plain puts and removes don't wait; they
 * supersede the writer.
 */
eyewall_status eyewall_writer_begin(const struct eyewall_cache *cache,
                                    const void *key,
                                    size_t key_length,
                                    uint64_t value_length,
                                    const struct eyewall_put_options *options,
                                    struct eyewall_writer **writer);

/**
 * Appends all of these bytes or, after an error, none. After EYEWALL_ERROR_PINNED and EYEWALL_ERROR_BUSY the
 * same call may be repeated. After any other error the entry can't be committed.
 */
eyewall_status eyewall_writer_write(struct eyewall_writer *writer, const void *data, size_t length);

/**
 * Publishes the entry and ends the writer. EYEWALL_SUPERSEDED: another caller changed the entry after the writer
 * began, and nothing was stored.
 */
eyewall_status eyewall_writer_commit(struct eyewall_writer *writer, uint64_t *serial);

/**
 * Discards the bytes and ends the writer.
 */
void eyewall_writer_abort(struct eyewall_writer *writer);

/**
 * Follows the writer of a key, in any process, from the first byte of the value. EYEWALL_OK: end the `follower`.
 * EYEWALL_MISS: nobody writes the key, or this thread can't hold more entries. The bytes arrive before the
 * writer commits them, so they may turn out to be part of no entry.
 */
eyewall_status eyewall_follow(const struct eyewall_cache *cache,
                              const void *key,
                              size_t key_length,
                              struct eyewall_follower **follower);

/**
 * Copies the next bytes; waits for them for up to `deadline_ms`. EYEWALL_OK: `length` says how many.
 * EYEWALL_END: the value is complete and stored. EYEWALL_ERROR_INTERRUPTED: the entry will not come, and the
 * bytes that were read are part of no entry.
 */
eyewall_status eyewall_follower_read(struct eyewall_follower *follower,
                                     void *buffer,
                                     size_t capacity,
                                     uint64_t deadline_ms,
                                     size_t *length);

/**
 * The metadata of the entry in progress. Valid until the follower is ended.
 */
struct eyewall_bytes eyewall_follower_metadata(const struct eyewall_follower *follower);

/**
 * Ends a follower.
 */
void eyewall_follower_end(struct eyewall_follower *follower);

/**
 * Size of the volume in bytes, including all overhead.
 */
uint64_t eyewall_size(const struct eyewall_cache *cache);

/**
 * The largest accepted entry in bytes: 48, plus key, metadata and value.
 */
uint64_t eyewall_entry_bytes_max(const struct eyewall_cache *cache);

/**
 * Whether the cache was opened with EYEWALL_READ_ONLY.
 */
bool eyewall_is_read_only(const struct eyewall_cache *cache);

/**
 * Whether bytes of the volume were lost under its map (EYEWALL_SURVIVE_SIGBUS). All calls then return
 * EYEWALL_ERROR_FAILED, for good. Release and end everything that came from the cache, close it, replace the
 * file, and open the path again.
 */
bool eyewall_is_failed(const struct eyewall_cache *cache);

/**
 * Why the file system doesn't guarantee the volume's size, so that a write may end in SIGBUS when the disk is
 * full. The length is 0 if the size is guaranteed. Valid forever.
 */
struct eyewall_bytes eyewall_storage_warning(const struct eyewall_cache *cache);

/**
 * Maps every page now, so that later reads cause no page fault. Reads the file if it isn't in memory.
 * EYEWALL_ERROR_IO on kernels before 5.14.
 */
eyewall_status eyewall_populate(const struct eyewall_cache *cache);

/**
 * Removes purged and expired entries now, and syncs the volume to storage if there were any. It is never
 * necessary. `dropped` may be NULL.
 */
eyewall_status eyewall_sweep(const struct eyewall_cache *cache, uint64_t *dropped);

/**
 * Syncs to storage everything that was stored, removed or purged before this call, and waits for it.
 */
eyewall_status eyewall_sync(const struct eyewall_cache *cache);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* EYEWALL_H */
