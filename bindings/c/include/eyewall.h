/** @file
 * Eyewall: one memory-mapped cache that every process on a machine shares.
 *
 * Generated from the Rust sources in bindings/c/src by `make header`; changes here are lost.
 *
 * WHAT IS WHOSE. Whatever a call reads through a pointer (keys, values, options) is the caller's, and isn't needed after the
 * call. Whatever a call gives by a pointer to a pointer (a cache, a claim, a flight, a writer, a follower, an iterator) is the
 * caller's until it hands it to the function that ends it, which takes it in any case, errors included. NULL may be ended.
 * An eyewall_hit is memory of the caller's, which a call fills in, and eyewall_hit_release gives up what it holds. All of
 * these have to be ended and released before their cache is closed.
 *
 * HOLDING. What is held can't be evicted, so hold it for as long as you read. Of one thread's hits seven are held in place at a time; more
 * are copies in this process's heap (eyewall_info.is_copy), as all are of a volume that is open for reading only, and of threads beyond the
 * volume's table. Copies take up to 64 MiB of a process.
 *
 * LATER VERSIONS of this library have more fields in place of the reserved ones, which are zero: set structs to zero before their fields, as
 * an initialiser does.
 *
 * THREADS. A cache may be used by any number of threads at once. Everything else may go from thread to thread, and is used by
 * one at a time.
 *
 * FORK. A child may use the cache that its parent has opened. What else the parent held (hits, claims, flights, writers ...) isn't the
 * child's: ending and releasing it there has no effect, and its bytes must not be read.
 *
 * ERRORS. Calls return an eyewall_status: from 0 on it is an answer, below 0 an error, and eyewall_error_message says in words
 * what happened and what to do. After an error, and after an answer that gives nothing, what would have been given is NULL or
 * zero.
 */

#ifndef EYEWALL_H
#define EYEWALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * A duration without an end, where a result is in milliseconds.
 */
#define EYEWALL_FOREVER UINT64_MAX

/**
 * The volume must exist.
 */
#define EYEWALL_MUST_EXIST 1

/**
 * For looking only. Hits are copies then.
 */
#define EYEWALL_READ_ONLY 2

/**
 * A new volume overwrites what dies with zeros.
 */
#define EYEWALL_SECURE_ERASE 4

/**
 * Calls fail, instead of the process, when the volume's file is truncated or its storage fails. Installs a handler of SIGBUS.
 */
#define EYEWALL_SURVIVE_SIGBUS 8

/**
 * A volume that a crash of the machine has left is emptied, instead of kept as far as it can be verified.
 */
#define EYEWALL_CLEAR_UNCLEAN 16

/**
 * eyewall_open_options.group counts.
 */
#define EYEWALL_SET_GROUP 32

/**
 * A file that is broken (empty, shorter than its header says, or with a damaged header) is renamed to
 * NAME.broken-SECONDS_SINCE_1970, and a new volume takes its place; one such file is kept. Without it that is
 * EYEWALL_ERROR_CORRUPT. A file that is no volume is never renamed.
 */
#define EYEWALL_PUT_ASIDE_BROKEN 64

/**
 * Each hit is held against its checksum before it is handed out; a wrong one is dropped, and is a miss. It reads the whole value
 * each time. Without it, entries that this process found intact once are trusted.
 */
#define EYEWALL_VERIFY_HITS 128

/**
 * The length of a value that isn't known yet.
 */
#define EYEWALL_LENGTH_UNKNOWN UINT64_MAX

/**
 * What becomes of entries that are purged.
 */
enum eyewall_purge
#ifdef __cplusplus
  : int32_t
#endif // __cplusplus
 {
  /**
   * They are gone.
   */
  EYEWALL_PURGE_HARD = 0,
  /**
   * They are stale: usable for as long as they say.
   */
  EYEWALL_PURGE_SOFT = 1,
};
#ifndef __cplusplus
/** One of enum eyewall_purge. */
typedef int32_t eyewall_purge;
#endif // __cplusplus

/**
 * What a call has come to. From 0 on: answers. Below 0: errors, whose words eyewall_error_message has.
 */
enum eyewall_status
#ifdef __cplusplus
  : int32_t
#endif // __cplusplus
 {
  /**
   * It was done; what was asked for was found.
   */
  EYEWALL_OK = 0,
  /**
   * There is no valid entry.
   */
  EYEWALL_MISS = 1,
  /**
   * There is an entry that may still be used, and ought to be made anew.
   */
  EYEWALL_STALE = 2,
  /**
   * Somebody has noted that there is nothing; eyewall_info has the reason.
   */
  EYEWALL_NEGATIVE = 3,
  /**
   * The condition doesn't hold: nothing was changed.
   */
  EYEWALL_UNMET = 4,
  /**
   * Somebody has put, removed or purged the entry since this change of it began: it counts as done before that, and nothing
   * is left of it.
   */
  EYEWALL_SUPERSEDED = 5,
  /**
   * There is nothing, and the caller is the one to make it, and to end its eyewall_flight.
   */
  EYEWALL_FILL = 6,
  /**
   * That was all.
   */
  EYEWALL_END = 7,
  /**
   * The buffer is too small; the length that was asked for says how large it has to be.
   */
  EYEWALL_TOO_SMALL = 8,
  /**
   * A pointer is NULL that must not be, or what it points to isn't what it has to be.
   */
  EYEWALL_ERROR_ARGUMENT = -1,
  /**
   * A key of no bytes.
   */
  EYEWALL_ERROR_KEY_EMPTY = -2,
  /**
   * A key of more than 65,535 bytes, or more than the volume's limit.
   */
  EYEWALL_ERROR_KEY_TOO_LONG = -3,
  /**
   * More than 65,535 bytes of metadata, tags included.
   */
  EYEWALL_ERROR_METADATA_TOO_LONG = -4,
  /**
   * More than 32 tags.
   */
  EYEWALL_ERROR_TOO_MANY_TAGS = -5,
  /**
   * A tag of no bytes, or of more than 255.
   */
  EYEWALL_ERROR_TAG_LENGTH = -6,
  /**
   * An entry that is to be counted up holds something else.
   */
  EYEWALL_ERROR_NOT_A_COUNTER = -7,
  /**
   * The entry is larger than the volume's limit (entry_bytes_max).
   */
  EYEWALL_ERROR_ENTRY_TOO_LARGE = -8,
  /**
   * Readers hold too much of the cache to make room; release hits, and try again (a claim or flight that was ended by it begins anew).
   */
  EYEWALL_ERROR_PINNED = -9,
  /**
   * Another process or thread held what was needed until the deadline; try again.
   */
  EYEWALL_ERROR_BUSY = -10,
  /**
   * The writer of an entry gave up, or was superseded.
   */
  EYEWALL_ERROR_INTERRUPTED = -11,
  /**
   * The volume, or the right to it, is for reading only.
   */
  EYEWALL_ERROR_READ_ONLY = -12,
  /**
   * There is no volume, and it wasn't to be created.
   */
  EYEWALL_ERROR_NOT_FOUND = -13,
  /**
   * The file is no volume; it was left as it is.
   */
  EYEWALL_ERROR_FOREIGN = -14,
  /**
   * The file is of another version of the format, or of a machine of another byte order.
   */
  EYEWALL_ERROR_VERSION = -15,
  /**
   * The file contradicts itself.
   */
  EYEWALL_ERROR_CORRUPT = -16,
  /**
   * The volume was created with another size, hint or limit than the options ask for.
   */
  EYEWALL_ERROR_OPTIONS_DIFFER = -17,
  /**
   * The size, or entry_bytes_max, is out of range.
   */
  EYEWALL_ERROR_OUT_OF_RANGE = -18,
  /**
   * A tier that the volume can't have.
   */
  EYEWALL_ERROR_NO_TIER = -19,
  /**
   * The storage has no room for the volume.
   */
  EYEWALL_ERROR_NO_SPACE = -20,
  /**
   * The volume's table of processes is full.
   */
  EYEWALL_ERROR_TOO_MANY_PROCESSES = -21,
  /**
   * Bytes of the volume were lost under its map, or another file has taken its place: close it, and open it again.
   */
  EYEWALL_ERROR_FAILED = -22,
  /**
   * The operating system refused.
   */
  EYEWALL_ERROR_IO = -23,
  /**
   * A fault of the library; please report it, with its message.
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
 * The right to change one key, one at a time over all processes.
 */
typedef struct eyewall_claim eyewall_claim;

/**
 * The right, and the duty, to make one entry that others wait for.
 */
typedef struct eyewall_flight eyewall_flight;

/**
 * Reads an entry while somebody writes it.
 */
typedef struct eyewall_follower eyewall_follower;

/**
 * A walk over all entries.
 */
typedef struct eyewall_iter eyewall_iter;

/**
 * An entry that is being written. Nobody finds it before it is committed.
 */
typedef struct eyewall_writer eyewall_writer;

/**
 * An entry, held where it lies: as long as it isn't released, its bytes don't change, whatever is put, removed or evicted.
 *
 * Memory of the caller's; what was in it before a call fills it isn't looked at, so release it first. It may be moved, and
 * copied if one of the copies is released and no other used. Hold it for as long as you read: what is held can't be evicted.
 */
typedef struct eyewall_hit {
  /**
   * The value. NULL: nothing is held.
   */
  const void *value;
  /**
   * The value's bytes.
   */
  size_t value_length;
  /**
   * The library's.
   */
  uint64_t held[8];
} eyewall_hit;

/**
 * Bytes that lie somewhere; not ended by a zero.
 */
typedef struct eyewall_bytes {
  /**
   * Where they begin.
   */
  const void *data;
  /**
   * How many they are.
   */
  size_t length;
} eyewall_bytes;

/**
 * A moment between two purges of a cache. Only what eyewall_now has filled is one.
 */
typedef struct eyewall_epoch {
  /**
   * The library's.
   */
  uint64_t words[2];
} eyewall_epoch;

/**
 * What goes with a value. Zero is the default of each. Wherever these are asked for, NULL means all defaults.
 */
typedef struct eyewall_put_options {
  /**
   * Valid for so long. 0: until it is evicted.
   */
  uint64_t ttl_ms;
  /**
   * Usable for so long after that (eyewall_lookup). Without a ttl_ms it says nothing: a soft purge makes such an entry stale until
   * it is evicted.
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
   * Labels by which entries are purged together: up to 32 of 1 to 255 bytes of UTF-8.
   */
  const struct eyewall_bytes *tags;
  /**
   * How many.
   */
  size_t tags_count;
  /**
   * That the value was begun to be made at this moment: a purge since then counts, and the value isn't found then, though the
   * call answers EYEWALL_OK. NULL: when the call begins.
   */
  const struct eyewall_epoch *begun_in;
  /**
   * For later versions; zero.
   */
  uint64_t reserved[4];
} eyewall_put_options;

/**
 * What is known of an entry beside its bytes.
 */
typedef struct eyewall_info {
  /**
   * Names this version of the entry: grows with every put, within one key.
   */
  uint64_t serial;
  /**
   * When it was put, in milliseconds since 1970.
   */
  uint64_t created_ms;
  /**
   * How long it stays valid, in milliseconds; EYEWALL_FOREVER: until it is evicted.
   */
  uint64_t ttl_left_ms;
  /**
   * How long it may be used, fresh or stale.
   */
  uint64_t usable_left_ms;
  /**
   * Of a negative entry: why there is nothing.
   */
  uint16_t reason;
  /**
   * Whether it notes that there is nothing.
   */
  bool is_negative;
  /**
   * Whether its time to live was over when it was looked up.
   */
  bool is_stale;
  /**
   * Whether the bytes are a copy in this process's heap, since too much of the volume is held.
   */
  bool is_copy;
  /**
   * With EYEWALL_SURVIVE_SIGBUS: whether what was read of it until now is what was put.
   */
  bool is_intact;
  /**
   * For later versions.
   */
  uint64_t reserved[4];
} eyewall_info;

/**
 * How a volume is opened or created. Zero is the default of each, so that `{ .size = 1 << 30 }` will do.
 *
 * The shape (size, entry_size_hint, entry_bytes_max) is fixed when the volume is created. To ask for another one later is an
 * error; not to ask takes the volume as it is.
 */
typedef struct eyewall_open_options {
  /**
   * Bytes of the volume, all overhead included: a hard cap. 0: 64 MiB. At least 512 KiB.
   */
  uint64_t size;
  /**
   * The largest entry: 48 bytes, key, metadata and value. 0: a sixteenth of the size, at most 4 MiB. Up to a quarter of the
   * size.
   */
  uint64_t entry_bytes_max;
  /**
   * Bytes of a typical entry, for the size of the index. 0: 1024.
   */
  uint32_t entry_size_hint;
  /**
   * EYEWALL_MUST_EXIST and its like, joined by |.
   */
  uint32_t flags;
  /**
   * Permission bits of a new volume, whatever the umask. 0: 0600. Who may write it is trusted.
   */
  uint32_t mode;
  /**
   * With EYEWALL_SET_GROUP: the group of a new volume.
   */
  uint32_t group;
  /**
   * How long a call waits for a stopped process, or for another's claim. 0: 1000.
   */
  uint64_t lock_deadline_ms;
  /**
   * Up to so much shared memory is put before the volume, for copies of what is asked for often. 0: none.
   */
  uint64_t tier_bytes;
  /**
   * The folder of the tier's file. NULL: /dev/shm.
   */
  const char *tier_folder;
  /**
   * For later versions; zero.
   */
  uint64_t reserved[4];
} eyewall_open_options;

/**
 * An entry's new times and metadata. Zero leaves things as they are.
 */
typedef struct eyewall_touch_options {
  /**
   * Whether ttl_ms and stale_ms count: from now on valid for ttl_ms (0: until it is evicted), and usable for stale_ms after.
   */
  bool set_times;
  /**
   * Whether the metadata counts.
   */
  bool set_metadata;
  /**
   * Whether the serial counts: only if the entry still has it.
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
   * That what the touch says was learnt at this moment: what a purge since then has made of the entry, it stays. NULL: now.
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
   * What an absent counter is taken for, before the addition.
   */
  int64_t start;
  /**
   * Whether min and max count: a sum outside of them becomes the nearer one.
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
   * Of a new counter; one that is there keeps its own. May be NULL.
   */
  const struct eyewall_put_options *put;
  /**
   * For later versions; zero.
   */
  uint64_t reserved[4];
} eyewall_counter_options;

/**
 * Numbers about a volume: sizes now, and counts since it was created, over all processes. Bytes count whole records.
 */
typedef struct eyewall_stats {
  /**
   * The file: the hard cap.
   */
  uint64_t size_bytes;
  /**
   * What entries can use: both rings of all stripes.
   */
  uint64_t data_bytes;
  /**
   * Superblock, tables and index.
   */
  uint64_t overhead_bytes;
  /**
   * Independent parts of the volume.
   */
  uint64_t stripes;
  /**
   * The largest entry that is accepted.
   */
  uint64_t entry_bytes_max;
  /**
   * Entries that can be found, expired ones included until they are evicted.
   */
  uint64_t entries;
  /**
   * Their records.
   */
  uint64_t live_bytes;
  /**
   * Neither used nor waiting to be freed.
   */
  uint64_t free_bytes;
  /**
   * Lost at ring ends and beside entries that were held in place, until the hand passes.
   */
  uint64_t filler_bytes;
  /**
   * Overwritten, removed or unpublished records, until the hand passes.
   */
  uint64_t dead_bytes;
  /**
   * Left by power loss, or in a copy, and not gone through yet: puts do so, and eyewall verify. Until then the
   * live, the dead and the lost among them aren't told apart, and entries is an estimate.
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
   * Look-ups that found a valid entry. Not counted, as misses aren't: those of read-only openers, and of threads beyond
   * the volume's thread slots.
   */
  uint64_t hits;
  /**
   * Look-ups that did not.
   */
  uint64_t misses;
  /**
   * Hits that were given as heap copies.
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
   * Evicted because nobody had asked for them often enough.
   */
  uint64_t evictions_cold;
  /**
   * Evicted after they had expired.
   */
  uint64_t evictions_expired;
  /**
   * Evicted because their index buckets were full: some always are, more while the index follows entries that become smaller.
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
   * Entries that moved from the small ring to main because they were hit.
   */
  uint64_t promotions;
  /**
   * Entries that main kept because they were hit.
   */
  uint64_t reinsertions;
  /**
   * Entries that moved from small to main because main had room.
   */
  uint64_t moved;
  /**
   * Records written by puts.
   */
  uint64_t bytes_written;
  /**
   * Records copied by the three kinds of moves above.
   */
  uint64_t bytes_copied;
  /**
   * Pins held now: hits, and large puts under way.
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
   * Stripes that were repaired after their lock's holder had died.
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
   * Operations that gave up at the lock deadline.
   */
  uint64_t busy;
  /**
   * How old the entry was that was evicted last, in milliseconds: the largest over all stripes.
   */
  uint64_t eviction_age_ms;
  /**
   * Purges of tags, of prefixes and of everything.
   */
  uint64_t purges;
  /**
   * How often more was purged than asked for, because tables were full: of tags, of prefixes, of epochs.
   */
  uint64_t purge_overflows;
  /**
   * How often the volume was attached while no process was.
   */
  uint64_t attachments;
  /**
   * How often it was emptied at attach: because what tells its age was damaged, or because EYEWALL_CLEAR_UNCLEAN was
   * asked for and it had not been left in order.
   */
  uint64_t unclean_drops;
  /**
   * Look-ups that were answered by the tier of this process, where it has one.
   */
  uint64_t tier_hits;
  /**
   * The memory that the tier takes at most.
   */
  uint64_t tier_size_bytes;
  /**
   * Slots that the index should have, by what the entries need; each put makes a step towards them.
   */
  uint64_t index_slots_wanted;
  /**
   * Steps that the index has made, of eight slots more or eight fewer.
   */
  uint64_t index_steps;
} eyewall_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Claims a key, to look at its entry and change it: EYEWALL_OK, and `hit` has the entry, which has to be released; or
 * EYEWALL_MISS: there is none. With both, `claim` is the caller's to end.
 *
 * As long as it isn't ended, other claims, writers and fills of the key wait for it, up to the lock deadline; if this process
 * dies, they go on. Plain puts and removes don't wait: they supersede what is stored by the claim. Release the entry before the claim
 * stores: what is held can't make room.
 */
eyewall_status eyewall_claim_begin(const struct eyewall_cache *cache,
                                   const void *key,
                                   size_t key_length,
                                   struct eyewall_claim **claim,
                                   struct eyewall_hit *hit);

/**
 * Stores a value, and ends the claim, after errors, too: to try again, claim again. EYEWALL_SUPERSEDED: somebody else has changed the
 * entry since. `serial` may be NULL.
 */
eyewall_status eyewall_claim_put(struct eyewall_claim *claim,
                                 const void *value,
                                 size_t value_length,
                                 const struct eyewall_put_options *options,
                                 uint64_t *serial);

/**
 * Removes the entry, if there is one, and ends the claim. EYEWALL_SUPERSEDED: somebody else has changed the entry since.
 */
eyewall_status eyewall_claim_remove(struct eyewall_claim *claim);

/**
 * Ends the claim, and leaves the entry as it is.
 */
void eyewall_claim_end(struct eyewall_claim *claim);

/**
 * The entry of a key; or, where there is none, the right to make it, which one caller over all threads and processes has at a
 * time, while the others wait for up to `deadline_ms`.
 *
 * EYEWALL_OK: `hit` has the entry, and has to be released. EYEWALL_STALE, if `use_stale`: so it has, and somebody else is making it
 * anew. EYEWALL_NEGATIVE: there is nothing, and `reason` (may be NULL) says why. EYEWALL_FILL: make it, and end the `flight`; if
 * this process dies, one of those that wait is the next to make it. EYEWALL_ERROR_BUSY: the deadline came.
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
 * Stores the value that was made, and ends the flight, after errors, too. EYEWALL_SUPERSEDED: somebody else has changed the entry since. `serial`
 * may be NULL.
 */
eyewall_status eyewall_flight_store(struct eyewall_flight *flight,
                                    const void *value,
                                    size_t value_length,
                                    const struct eyewall_put_options *options,
                                    uint64_t *serial);

/**
 * Notes that there is nothing, for so long (0: until it is evicted), so that nobody tries again; and ends the flight. Where that can't
 * be stored, it isn't known: the next one asks again.
 */
eyewall_status eyewall_flight_remember(struct eyewall_flight *flight,
                                       uint16_t reason,
                                       uint64_t ttl_ms);

/**
 * Ends the flight without an entry: one of those that wait is the next to make it.
 */
void eyewall_flight_end(struct eyewall_flight *flight);

/**
 * The valid entry of a key, held where it lies: EYEWALL_OK, and it has to be released; or EYEWALL_MISS. Takes no lock and makes no
 * system call, but for a thread's first, and for volumes on a disk one in some 256.
 */
eyewall_status eyewall_get(const struct eyewall_cache *cache,
                           const void *key,
                           size_t key_length,
                           struct eyewall_hit *hit);

/**
 * As eyewall_get, but it doesn't count as use, nor in the numbers.
 */
eyewall_status eyewall_peek(const struct eyewall_cache *cache,
                            const void *key,
                            size_t key_length,
                            struct eyewall_hit *hit);

/**
 * Everything that is known about a key: EYEWALL_OK, EYEWALL_STALE and EYEWALL_NEGATIVE give an entry that has to be released.
 */
eyewall_status eyewall_lookup(const struct eyewall_cache *cache,
                              const void *key,
                              size_t key_length,
                              struct eyewall_hit *hit);

/**
 * EYEWALL_OK: there is a valid entry; EYEWALL_MISS: there is none. Doesn't count as use.
 */
eyewall_status eyewall_contains(const struct eyewall_cache *cache, const void *key, size_t key_length);

/**
 * Copies the value of a key to memory of the caller's; nothing has to be released. EYEWALL_TOO_SMALL: nothing was copied, and
 * `length` says how many bytes there are.
 */
eyewall_status eyewall_get_copy(const struct eyewall_cache *cache,
                                const void *key,
                                size_t key_length,
                                void *buffer,
                                size_t capacity,
                                size_t *length);

/**
 * Looks up `count` keys at once, which is faster than one by one; `hits` has room for as many. One that isn't found has the
 * value NULL. Each of the others has to be released.
 */
eyewall_status eyewall_get_many(const struct eyewall_cache *cache,
                                const struct eyewall_bytes *keys,
                                size_t count,
                                struct eyewall_hit *hits);

/**
 * Whether getting a key, and reading all of its value, would find everything in memory: EYEWALL_OK, and `resident` says it; or
 * EYEWALL_MISS. For threads that mustn't wait for storage.
 */
eyewall_status eyewall_is_resident(const struct eyewall_cache *cache,
                                   const void *key,
                                   size_t key_length,
                                   bool *resident);

/**
 * Reads the entry of a key into memory as far as it isn't there; waits for storage.
 */
eyewall_status eyewall_prefault(const struct eyewall_cache *cache, const void *key, size_t key_length);

/**
 * Gives up what is held, if anything is.
 */
void eyewall_hit_release(struct eyewall_hit *hit);

/**
 * The entry's key.
 */
struct eyewall_bytes eyewall_hit_key(const struct eyewall_hit *hit);

/**
 * What was put as metadata; of no length if nothing was.
 */
struct eyewall_bytes eyewall_hit_metadata(const struct eyewall_hit *hit);

/**
 * One of the tags that it was put with, from 0 on; NULL: it hasn't so many.
 */
struct eyewall_bytes eyewall_hit_tag(const struct eyewall_hit *hit, size_t number);

/**
 * All else that is known of it.
 */
eyewall_status eyewall_hit_info(const struct eyewall_hit *hit, struct eyewall_info *info);

/**
 * EYEWALL_OK if what was read of it until now is what was put. EYEWALL_ERROR_FAILED: bytes of the volume were lost under its map
 * (EYEWALL_SURVIVE_SIGBUS), and any of the entry's may read as zeros since. So it is asked behind the reads. It costs next to
 * nothing.
 */
eyewall_status eyewall_hit_check(const struct eyewall_hit *hit);

/**
 * Where the value lies in the volume's file, for who reads it by a descriptor of their own. EYEWALL_MISS: nowhere; it is a copy,
 * or the volume has no file.
 *
 * The bytes are the value's only while it is held. sendfile and splice return before they are read: hold it until the other
 * side has received them, which a socket doesn't tell.
 */
eyewall_status eyewall_hit_file_range(const struct eyewall_hit *hit,
                                      uint64_t *offset,
                                      uint64_t *length);

/**
 * Begins a walk over all valid entries, in no order; with `all`, over stale and negative ones, too. What is put or evicted
 * meanwhile may be met or not; what stays is met once.
 */
eyewall_status eyewall_iter_begin(const struct eyewall_cache *cache,
                                  bool all,
                                  struct eyewall_iter **iter);

/**
 * The next entry, which has to be released; EYEWALL_END: there are no more, or the volume was resized since the walk began.
 */
eyewall_status eyewall_iter_next(struct eyewall_iter *iter,
                                 struct eyewall_hit *hit);

/**
 * Ends a walk, wherever it is.
 */
void eyewall_iter_end(struct eyewall_iter *iter);

/**
 * Opens the volume at `path`; creates it if there is none. `options` may be NULL. Opening one volume several times in a process
 * is one attachment.
 */
eyewall_status eyewall_open(const char *path,
                            const struct eyewall_open_options *options,
                            struct eyewall_cache **cache);

/**
 * A volume in shared memory that has no name: this process shares it with those that it forks.
 */
eyewall_status eyewall_open_anonymous(const struct eyewall_open_options *options, struct eyewall_cache **cache);

/**
 * Leaves the volume; what was got from the cache has to be ended before. A forked child that closes its parent's cache leaves the
 * parent's as it is; one that ends by _exit needn't. The last process that leaves writes it to storage, which may take seconds, and marks it as in order; one
 * that ends without leaves what has reached storage until then.
 */
void eyewall_close(struct eyewall_cache *cache);

/**
 * Purges all entries with this tag, stored until now by whomever; `purge` is an eyewall_purge. It takes microseconds, however many
 * they are.
 */
eyewall_status eyewall_purge_tag(const struct eyewall_cache *cache,
                                 const void *tag,
                                 size_t tag_length,
                                 int32_t purge);

/**
 * Purges all entries whose keys begin so.
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
 * Now, as purges count: what is put with it later (eyewall_put_options.begun_in) is meant by all purges since. Of this cache, for
 * as long as it is open.
 */
eyewall_status eyewall_now(const struct eyewall_cache *cache,
                           struct eyewall_epoch *epoch);

/**
 * Stores a value in place of any former entry; whatever must go to make room is evicted now. `serial` may be NULL.
 */
eyewall_status eyewall_put(const struct eyewall_cache *cache,
                           const void *key,
                           size_t key_length,
                           const void *value,
                           size_t value_length,
                           const struct eyewall_put_options *options,
                           uint64_t *serial);

/**
 * Notes that there is nothing under a key, and why: eyewall_lookup gives it as EYEWALL_NEGATIVE, eyewall_get misses.
 */
eyewall_status eyewall_put_negative(const struct eyewall_cache *cache,
                                    const void *key,
                                    size_t key_length,
                                    uint16_t reason,
                                    const struct eyewall_put_options *options,
                                    uint64_t *serial);

/**
 * Stores a value only if there is no valid entry; EYEWALL_UNMET: there was one.
 */
eyewall_status eyewall_add(const struct eyewall_cache *cache,
                           const void *key,
                           size_t key_length,
                           const void *value,
                           size_t value_length,
                           const struct eyewall_put_options *options,
                           uint64_t *serial);

/**
 * Stores a value only if the entry still has the serial `expected`; EYEWALL_UNMET: it has another, has expired or is gone.
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
 * Removes an entry; EYEWALL_MISS: there was no valid one.
 */
eyewall_status eyewall_remove(const struct eyewall_cache *cache, const void *key, size_t key_length);

/**
 * Removes an entry if it still has this serial; EYEWALL_UNMET: it has another, has expired or is gone.
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
 * Gives an entry, fresh or stale, new times and metadata; its value, age and tags stay. EYEWALL_MISS: there is none, or none of
 * the serial. With NULL, nothing changes but that soft purges so far don't mean it any more.
 */
eyewall_status eyewall_touch(const struct eyewall_cache *cache,
                             const void *key,
                             size_t key_length,
                             const struct eyewall_touch_options *options);

/**
 * Adds to a counter, in one step over all processes; `sum` is what it is then, and may be NULL. A counter is an entry of eight
 * bytes, an int64_t in little-endian order; an absent one is created. `options` may be NULL.
 */
eyewall_status eyewall_increment(const struct eyewall_cache *cache,
                                 const void *key,
                                 size_t key_length,
                                 int64_t by,
                                 const struct eyewall_counter_options *options,
                                 int64_t *sum);

/**
 * Fills `stats`, of which the caller knows `stats_size` bytes: sizeof(eyewall_stats). A later library has more numbers, behind
 * these. Looks at the whole index, one stripe after the other.
 */
eyewall_status eyewall_stats_read(const struct eyewall_cache *cache,
                                  struct eyewall_stats *stats,
                                  size_t stats_size);

/**
 * How many entries were put into the volume since it was created or resized, and the bytes of their records, by all processes.
 * Takes no lock and reads two words a stripe, so that it can be asked before each put: the volume's entries have grown by no
 * more than that. `puts` or `bytes` may be NULL.
 */
eyewall_status eyewall_written(const struct eyewall_cache *cache,
                               uint64_t *puts,
                               uint64_t *bytes);

/**
 * What this thread's last error was, and what to do about it: one sentence in English. Valid until the thread's next error.
 */
const char *eyewall_error_message(void);

/**
 * The version of this library, as "1.2.3".
 */
const char *eyewall_version(void);

/**
 * Begins an entry whose value comes piece by piece. With its length known, nothing is copied twice.
 *
 * It claims the key: another writer, claim or fill of it waits. Plain puts and removes don't; they supersede what is written.
 */
eyewall_status eyewall_writer_begin(const struct eyewall_cache *cache,
                                    const void *key,
                                    size_t key_length,
                                    uint64_t value_length,
                                    const struct eyewall_put_options *options,
                                    struct eyewall_writer **writer);

/**
 * Takes all of these bytes, or, after an error, none. After EYEWALL_ERROR_PINNED and EYEWALL_ERROR_BUSY the same call may be
 * tried again; after other errors nothing will come of the entry.
 */
eyewall_status eyewall_writer_write(struct eyewall_writer *writer,
                                    const void *data,
                                    size_t length);

/**
 * Makes what was written the entry, and ends the writer. EYEWALL_SUPERSEDED: somebody else has changed the entry since.
 */
eyewall_status eyewall_writer_commit(struct eyewall_writer *writer, uint64_t *serial);

/**
 * Gives up what was written, and ends the writer.
 */
void eyewall_writer_abort(struct eyewall_writer *writer);

/**
 * Reads what a writer, of this process or another, is writing to a key, from its first byte on: EYEWALL_OK, or EYEWALL_MISS where
 * nobody writes it, or this thread can hold no more in place. The bytes come before their writer has vouched for them.
 */
eyewall_status eyewall_follow(const struct eyewall_cache *cache,
                              const void *key,
                              size_t key_length,
                              struct eyewall_follower **follower);

/**
 * Copies what comes next; waits for it for up to `deadline_ms`. EYEWALL_OK: so many bytes; EYEWALL_END: that was all, and the entry
 * was stored; EYEWALL_ERROR_INTERRUPTED: nothing will come of it, and what was read is part of no entry.
 */
eyewall_status eyewall_follower_read(struct eyewall_follower *follower,
                                     void *buffer,
                                     size_t capacity,
                                     uint64_t deadline_ms,
                                     size_t *length);

/**
 * The metadata that the entry will have; the follower's.
 */
struct eyewall_bytes eyewall_follower_metadata(const struct eyewall_follower *follower);

/**
 * Reads no further.
 */
void eyewall_follower_end(struct eyewall_follower *follower);

/**
 * Bytes of the volume, all overhead included.
 */
uint64_t eyewall_size(const struct eyewall_cache *cache);

/**
 * The largest entry that the volume takes: 48 bytes, key, metadata and value.
 */
uint64_t eyewall_entry_bytes_max(const struct eyewall_cache *cache);

/**
 * Whether it was opened with EYEWALL_READ_ONLY.
 */
bool eyewall_is_read_only(const struct eyewall_cache *cache);

/**
 * Whether bytes of the volume were lost under its map (EYEWALL_SURVIVE_SIGBUS): all calls answer EYEWALL_ERROR_FAILED then, for good.
 * Release and end what was got, close the cache, and open the path again once the file was replaced.
 */
bool eyewall_is_failed(const struct eyewall_cache *cache);

/**
 * Why the volume's size is no promise on its file system: writing may then end in SIGBUS when the disk is full. Of no length where
 * it is one. Valid for ever.
 */
struct eyewall_bytes eyewall_storage_warning(const struct eyewall_cache *cache);

/**
 * Maps every page now, so that no later read faults; reads the file if it isn't in memory. EYEWALL_ERROR_IO on kernels before 5.14.
 */
eyewall_status eyewall_populate(const struct eyewall_cache *cache);

/**
 * Drops what is purged or has lived its time, now, and brings the volume to storage if there was any. Nobody has to call it.
 * `dropped` may be NULL.
 */
eyewall_status eyewall_sweep(const struct eyewall_cache *cache,
                             uint64_t *dropped);

/**
 * Brings everything that was stored, removed and purged before this call to storage, and waits for it.
 */
eyewall_status eyewall_sync(const struct eyewall_cache *cache);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* EYEWALL_H */
