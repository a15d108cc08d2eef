<?php
/**
 * The extension's interface. eyewall_arginfo.h declares the same in C, and a test compares both.
 *
 * Times are in seconds. A `$ttl` of null means: until the entry is evicted. `$tags` are up to 32 labels, each of 1 to 255 bytes of
 * UTF-8, by which entries are purged together. `$stale` is how long an expired entry may still be used. A failure throws an
 * Eyewall\Exception. A miss is not a failure.
 */
namespace Eyewall;

/** Why a call failed. The message says what to do; the code is one of these constants. */
class Exception extends \RuntimeException
{
    /** An argument is invalid. */
    const ARGUMENT = -1;
    /** The key has no bytes. */
    const KEY_EMPTY = -2;
    /** The key has more than 65,535 bytes, or is longer than the volume allows. */
    const KEY_TOO_LONG = -3;
    /** The tags have more than 65,535 bytes. */
    const METADATA_TOO_LONG = -4;
    /** There are more than 32 tags. */
    const TOO_MANY_TAGS = -5;
    /** A tag has no bytes, or more than 255. */
    const TAG_LENGTH = -6;
    /** increment() found an entry that is not a counter. */
    const NOT_A_COUNTER = -7;
    /** The entry is larger than the volume's entry_bytes_max. */
    const ENTRY_TOO_LARGE = -8;
    /** Readers hold too many entries to make room; try again. */
    const PINNED = -9;
    /** Another process held the key or a lock for too long; try again. */
    const BUSY = -10;
    /** The writer of the entry gave up, or was superseded. */
    const INTERRUPTED = -11;
    /** The volume was opened for reading only, or the file permits only reading. */
    const READ_ONLY = -12;
    /** There is no volume, and must_exist is set. */
    const NOT_FOUND = -13;
    /** The file is not a volume. It was left unchanged. */
    const FOREIGN = -14;
    /** The file has another version of the format, or comes from a machine with another byte order. */
    const VERSION = -15;
    /** The volume is damaged, or a stored value can't be unserialized. */
    const CORRUPT = -16;
    /** The volume has another size, hint or limit than the options ask for. */
    const OPTIONS_DIFFER = -17;
    /** The size, or entry_bytes_max, is out of range. */
    const OUT_OF_RANGE = -18;
    /** The volume can't have the tier that the options ask for. */
    const NO_TIER = -19;
    /** The file system has no room for the volume. */
    const NO_SPACE = -20;
    /** The volume's table of processes is full. */
    const TOO_MANY_PROCESSES = -21;
    /** Bytes of the volume were lost, or another file took its place: create a new Cache. */
    const FAILED = -22;
    /** The operating system refused a call. */
    const IO = -23;
    /** A bug in the library. Please report it with its message. */
    const INTERNAL = -24;
}

/**
 * A volume. All processes that open it share it. A process opens it once, and keeps it open over requests.
 *
 * Strings are stored unchanged: they are strings in every language. Integers are counters. For other types, one
 * byte beside the value names the type. igbinary, if it is loaded, or else serialize() stores arrays and objects.
 * Unserializing runs code of the classes that the bytes name, so everyone who can write the volume must be
 * trusted. The option serializer => 'none' refuses to store arrays and objects. Reading one that another program
 * stored then throws an Exception ARGUMENT.
 *
 * With survive_sigbus, a returned value is what was put. If its bytes were lost, even during the copy, the call
 * throws an Exception FAILED.
 */
final class Cache
{
    /**
     * @param string|null $path the file of the volume, which is created if it doesn't exist; null: the ini
     *     setting eyewall.path
     * @param array{size?: int|string, entry_bytes_max?: int|string, entry_size_hint?: int|string, mode?: int|string,
     *     group?: int|string, lock_deadline?: float, tier?: int|string, tier_folder?: string, serializer?: string,
     *     must_exist?: bool, read_only?: bool, survive_sigbus?: bool, put_aside_broken?: bool,
     *     verify_hits?: bool, fleet?: bool} $options README.md explains them; the default of each is the ini setting of the
     *     same name after `eyewall.`
     */
    public function __construct(?string $path = null, array $options = []) {}

    /** Returns the value of a key, or `$default`. */
    public function get(string $key, mixed $default = null): mixed {}

    /** Returns the value of a key and its serial for cas, as `[$value, $serial]`; null if there is none. */
    public function getWithSerial(string $key): ?array {}

    /**
     * Returns all properties of an entry; null if there is none.
     *
     * `state` is fresh, stale or negative. A stale entry has expired or was softly purged, and may still be
     * used. A negative entry says that there is nothing; `reason` says why, and `value` is null. `serial` is
     * for cas, which also replaces a negative entry. `created` is a time like microtime(true). `ttl` and
     * `usable` are the seconds for which the entry stays fresh, and stays fresh or stale; null: until it is
     * evicted. `metadata` is stored beside the value: one byte from PHP for a value that isn't a string, or
     * the metadata of another language.
     *
     * @return array{state: string, value: mixed, reason: ?int, serial: int, created: float, ttl: ?float,
     *     usable: ?float, tags: list<string>, metadata: string}|null
     */
    public function lookup(string $key): ?array {}

    /** Returns the values of many keys, by key, with `$default` for a miss. */
    public function getMultiple(array $keys, mixed $default = null): array {}

    /** Returns whether there is a valid entry. It doesn't keep the entry from eviction. */
    public function has(string $key): bool {}

    /** Stores a value in place of any former one. */
    public function set(string $key, mixed $value, ?float $ttl = null, array $tags = [], float $stale = 0.0): bool {}

    /** Stores many values, one by one; returns true. */
    public function setMultiple(array $values, ?float $ttl = null, array $tags = [], float $stale = 0.0): bool {}

    /** Stores a value only if there is no valid entry. Returns false if there is one. */
    public function add(string $key, mixed $value, ?float $ttl = null, array $tags = [], float $stale = 0.0): bool {}

    /** Stores a value only if the entry still has the serial. Returns false if it has another, or is gone. */
    public function cas(string $key, int $serial, mixed $value, ?float $ttl = null, array $tags = [], float $stale = 0.0): bool {}

    /**
     * Stores a negative entry in place of any former one: there is nothing under this key. get misses it,
     * lookup returns it as negative, and fetchOrCompute returns null without computing. The caller defines the
     * reasons. Returns true.
     *
     * @param int $reason 0 to 65535
     */
    public function setNegative(string $key, int $reason, ?float $ttl = null, array $tags = []): bool {}

    /** Removes an entry. Returns false if there was none. */
    public function delete(string $key): bool {}

    /** Removes many entries. Returns how many there were. */
    public function deleteMultiple(array $keys): int {}

    /** Gives a fresh or stale entry new times from now on. Returns false if there is no entry. */
    public function touch(string $key, ?float $ttl = null, float $stale = 0.0): bool {}

    /**
     * Adds to an integer, atomically over all processes, and returns the sum. A missing counter begins at
     * `$start`, and gets the ttl and tags.
     *
     * A counter is an entry of eight bytes, in every language; so is a string of eight bytes. For a counter
     * that PHP created, get returns an integer. For one that another language created, get returns the eight
     * bytes: use unpack('P', $bytes)[1], or increment($key, 0).
     */
    public function increment(string $key, int $by = 1, ?float $ttl = null, array $tags = [], int $start = 0): int {}

    /**
     * Returns the value of a key. If there is none, calls `$compute($key)`, stores its result and returns it.
     *
     * One process computes, and the others wait for up to `$wait` seconds; then they compute, too. If `$stale`
     * is above 0 and there is a stale value, they return that instead of waiting. A result that can't be
     * stored is returned with a warning. An exception passes through, and nothing is stored. A negative entry
     * gives null.
     */
    public function fetchOrCompute(string $key, callable $compute, ?float $ttl = null, array $tags = [], float $stale = 0.0, float $wait = 5.0): mixed {}

    /**
     * Stores the result of `$change($key, $value)`; `$value` is null if there is no entry. The call is made
     * once. Other claims, updates and computations of the key wait meanwhile. Returns false if another process
     * called set, delete or a purge meanwhile: that counts as later. `$wait` works as in claim().
     */
    public function update(string $key, callable $change, ?float $ttl = null, array $tags = [], float $stale = 0.0, float $wait = 5.0): bool {}

    /**
     * Returns the right to change a key, which one process at a time has. Throws an Exception BUSY if another
     * process had it all the time.
     *
     * The library waits for a key in multiples of the option lock_deadline (one second). So `$wait` is rounded
     * up to a multiple of it, and to one at least: 0 waits for up to a second. To give up earlier, create
     * another Cache of the volume with a shorter lock_deadline.
     */
    public function claim(string $key, float $wait = 5.0): Claim {}

    /** Purges all entries with a tag. A soft purge makes them stale. */
    public function purgeTag(string $tag, bool $soft = false): void {}

    /** Purges all entries with any of these tags. */
    public function purgeTags(array $tags, bool $soft = false): void {}

    /**
     * Purges all entries whose keys begin with this prefix. An empty prefix is an error, since it would purge
     * everything.
     */
    public function purgePrefix(string $prefix, bool $soft = false): void {}

    /** Purges all entries. */
    public function purgeAll(bool $soft = false): void {}

    /** Removes all entries, one by one. Returns how many there were. */
    public function clear(): int {}

    /** Iterates over the keys of all valid entries, in no order. */
    public function keys(): Keys {}

    /** Returns statistics of the volume, over all processes; eyewall.h explains them (eyewall_stats). */
    public function stats(): array {}

    /** Writes everything to storage, and waits for it. It is never necessary. */
    public function sync(): void {}
}

/** The right to change a key. It ends with set, delete, end, or the object. */
final class Claim
{
    private function __construct() {}

    /** Returns whether there was a valid entry when the key was claimed. */
    public function isHit(): bool {}

    /** Returns the value, or `$default`. */
    public function get(mixed $default = null): mixed {}

    /**
     * Stores a value and ends the claim. Returns false if another process called set, delete or a purge
     * meanwhile: that counts as later.
     */
    public function set(mixed $value, ?float $ttl = null, array $tags = [], float $stale = 0.0): bool {}

    /** Removes the entry and ends the claim. Returns false as set does. */
    public function delete(): bool {}

    /** Ends the claim and leaves the entry unchanged. */
    public function end(): void {}
}

/** Iterates over keys. It may or may not meet keys that are stored or evicted meanwhile, and meets all others once. */
final class Keys implements \Iterator
{
    private function __construct() {}

    /** Returns the present key; null at the end. */
    public function current(): ?string {}

    /** Returns the number of keys before the present one. */
    public function key(): int {}

    /** Moves to the next key. Throws an Exception FAILED if the volume failed before the end. */
    public function next(): void {}

    /** Begins again at the first key. */
    public function rewind(): void {}

    /** Returns whether there is a present key; false at the end. */
    public function valid(): bool {}
}
