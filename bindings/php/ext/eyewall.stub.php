<?php
/**
 * What the extension gives PHP; eyewall_arginfo.h says the same in C, and a test compares both.
 *
 * Times are seconds. Wherever `$ttl` is asked for, null means: until the entry is evicted. `$tags` are labels by which entries
 * are purged together, up to 32 of 1 to 255 bytes of UTF-8. `$stale` is for how long an entry may still be used when its time is
 * over. What fails throws an Eyewall\Exception; that there is nothing isn't a failure.
 */
namespace Eyewall;

/** Why a call failed, in words that say what to do; the code is one of these. */
class Exception extends \RuntimeException
{
    /** Something isn't what it has to be. */
    const ARGUMENT = -1;
    /** A key of no bytes. */
    const KEY_EMPTY = -2;
    /** A key of more than 65,535 bytes, or more than the volume's limit. */
    const KEY_TOO_LONG = -3;
    /** Tags of more than 65,535 bytes. */
    const METADATA_TOO_LONG = -4;
    /** More than 32 tags. */
    const TOO_MANY_TAGS = -5;
    /** A tag of no bytes, or of more than 255. */
    const TAG_LENGTH = -6;
    /** An entry that is to be counted up holds something else. */
    const NOT_A_COUNTER = -7;
    /** The entry is larger than the volume's limit (entry_bytes_max). */
    const ENTRY_TOO_LARGE = -8;
    /** Readers hold too much of the volume to make room; try again. */
    const PINNED = -9;
    /** Another process held what was needed for too long; try again. */
    const BUSY = -10;
    /** The writer of an entry gave up, or was superseded. */
    const INTERRUPTED = -11;
    /** The volume, or the right to it, is for reading only. */
    const READ_ONLY = -12;
    /** There is no volume, and it wasn't to be created. */
    const NOT_FOUND = -13;
    /** The file is no volume; it was left as it is. */
    const FOREIGN = -14;
    /** The file is of another version of the format, or of a machine of another byte order. */
    const VERSION = -15;
    /** The volume contradicts itself, or a stored value can't be unserialized. */
    const CORRUPT = -16;
    /** The volume was created with another size, hint or limit than the options ask for. */
    const OPTIONS_DIFFER = -17;
    /** The size, or entry_bytes_max, is out of range. */
    const OUT_OF_RANGE = -18;
    /** A tier that the volume can't have. */
    const NO_TIER = -19;
    /** The storage has no room for the volume. */
    const NO_SPACE = -20;
    /** The volume's table of processes is full. */
    const TOO_MANY_PROCESSES = -21;
    /** Bytes of the volume were lost, or another file has taken its place: make another Cache. */
    const FAILED = -22;
    /** The operating system refused. */
    const IO = -23;
    /** A fault of the library; please report it, with its message. */
    const INTERNAL = -24;
}

/**
 * A volume that all processes share which open it. A process opens it once, and keeps it over requests.
 *
 * Strings are stored as they are, and are strings for other languages, as theirs are here; integers are counters, and of other
 * types one byte beside the value says what it is. Structures are stored by igbinary, where that extension is loaded, or by
 * serialize(); reading one runs code of the classes that its bytes name, so that whoever may write the volume is trusted. With the
 * option serializer => 'none' none is stored, and reading one that somebody else has stored is an Exception ARGUMENT.
 *
 * With survive_sigbus, what is returned is what was put: that bytes were lost, even while they were copied, is an Exception FAILED.
 */
final class Cache
{
    /**
     * @param string|null $path where the volume lies, and is created if it isn't there; null: the ini setting eyewall.path
     * @param array{size?: int|string, entry_bytes_max?: int|string, entry_size_hint?: int|string, mode?: int|string,
     *     group?: int|string, lock_deadline?: float, tier?: int|string, tier_folder?: string, serializer?: string,
     *     must_exist?: bool, read_only?: bool, survive_sigbus?: bool, put_aside_broken?: bool,
     *     verify_hits?: bool} $options each has an ini setting of the same name behind
     *     `eyewall.`, which counts where the option isn't given; README.md explains them
     */
    public function __construct(?string $path = null, array $options = []) {}

    /** The value of a key, or `$default`. */
    public function get(string $key, mixed $default = null): mixed {}

    /** The value of a key and its serial, for cas, as `[$value, $serial]`; null: there is none. */
    public function getWithSerial(string $key): ?array {}

    /**
     * Everything that is known of a key; null: there is nothing.
     *
     * `state` is fresh, stale (its time is over, or it was softly purged, and it may still be used) or negative (somebody has noted
     * that there is nothing, and `reason` why; `value` is null). `serial` is for cas, which replaces a negative entry, too. `created`
     * is a time as microtime(true) has it; `ttl` and `usable` say for how many seconds more the entry is fresh, and fresh or
     * stale; null: until it is evicted. `metadata` is what was stored beside the value: one byte of PHP's for what isn't a string,
     * and what another language has put.
     *
     * @return array{state: string, value: mixed, reason: ?int, serial: int, created: float, ttl: ?float, usable: ?float,
     *     tags: list<string>, metadata: string}|null
     */
    public function lookup(string $key): ?array {}

    /** The values of many keys, by key, `$default` for those that aren't there. */
    public function getMultiple(array $keys, mixed $default = null): array {}

    /** Whether there is a valid entry; doesn't count as use. */
    public function has(string $key): bool {}

    /** Stores a value in place of any other. */
    public function set(string $key, mixed $value, ?float $ttl = null, array $tags = [], float $stale = 0.0): bool {}

    /** Stores many values, each by itself; true. */
    public function setMultiple(array $values, ?float $ttl = null, array $tags = [], float $stale = 0.0): bool {}

    /** Stores a value only if there is none; false: there is one. */
    public function add(string $key, mixed $value, ?float $ttl = null, array $tags = [], float $stale = 0.0): bool {}

    /** Stores a value only if the entry still has the serial; false: it has another, or is gone. */
    public function cas(string $key, int $serial, mixed $value, ?float $ttl = null, array $tags = [], float $stale = 0.0): bool {}

    /**
     * Notes that there is nothing under a key, and why, in place of any entry: a miss for get, null for fetchOrCompute, which doesn't
     * compute then, and negative for lookup. What reasons mean is the caller's; true.
     *
     * @param int $reason 0 to 65535
     */
    public function setNegative(string $key, int $reason, ?float $ttl = null, array $tags = []): bool {}

    /** Removes an entry; false: there was none. */
    public function delete(string $key): bool {}

    /** Removes many; how many there were. */
    public function deleteMultiple(array $keys): int {}

    /** Gives an entry, fresh or stale, new times, from now on; false: there is none. */
    public function touch(string $key, ?float $ttl = null, float $stale = 0.0): bool {}

    /**
     * Adds to an integer, in one step over all processes, and gives the sum. An absent one is taken for `$start`; ttl and tags are a
     * new one's.
     *
     * A counter is an entry of eight bytes, in every language, and so is a string of eight bytes. One that PHP has made is an integer
     * for get; one that another language has made stays what it was there, and get gives its eight bytes: unpack('P', $bytes)[1] is
     * its number, as is increment($key, 0) of one that is there.
     */
    public function increment(string $key, int $by = 1, ?float $ttl = null, array $tags = [], int $start = 0): int {}

    /**
     * The value of a key; where there is none, what `$compute($key)` returns, which is stored.
     *
     * Over all processes one computes; the others wait for it, for up to `$wait` seconds, to the millisecond, and then compute
     * themselves; or have the old value, where `$stale` is more than 0 and there is one that is stale. What can't be stored is
     * returned with a warning. An exception passes through, and nothing is stored. A negative entry is null.
     */
    public function fetchOrCompute(string $key, callable $compute, ?float $ttl = null, array $tags = [], float $stale = 0.0, float $wait = 5.0): mixed {}

    /**
     * Stores what `$change($key, $value)` returns, `$value` being null where there is nothing. It is called once; other claims,
     * updates and computations of the key wait meanwhile. False: a plain set, delete or purge has come between, which counts as later.
     * `$wait` is for the right to the key, as claim has it: whole lock deadlines, and one at least.
     */
    public function update(string $key, callable $change, ?float $ttl = null, array $tags = [], float $stale = 0.0, float $wait = 5.0): bool {}

    /**
     * The right to change a key, one at a time over all processes. An Exception BUSY: somebody else had it for all the time.
     *
     * The library waits for a key in whole lock deadlines (the option lock_deadline, one second), and so `$wait` is rounded up to the
     * next multiple of that, and to one at least: 0 waits for up to a second. Whoever wants to give up earlier makes a Cache of the same
     * volume with a shorter lock_deadline for it.
     */
    public function claim(string $key, float $wait = 5.0): Claim {}

    /** Purges all entries with a tag; softly, they are stale afterwards. */
    public function purgeTag(string $tag, bool $soft = false): void {}

    /** Purges all entries with any of these tags. */
    public function purgeTags(array $tags, bool $soft = false): void {}

    /** Purges all entries whose keys begin so; no bytes are an error, since they are the beginning of all. */
    public function purgePrefix(string $prefix, bool $soft = false): void {}

    /** Purges all entries. */
    public function purgeAll(bool $soft = false): void {}

    /** Removes all entries, one after the other; how many there were. */
    public function clear(): int {}

    /** The keys of all valid entries, in no order. */
    public function keys(): Keys {}

    /** Numbers about the volume, over all processes; eyewall.h explains them (eyewall_stats). */
    public function stats(): array {}

    /** Brings all that was stored to storage, and waits for it. Nobody has to call it. */
    public function sync(): void {}
}

/** The right to change a key; it ends with set, delete, end, or the object. */
final class Claim
{
    private function __construct() {}

    /** Whether there was a valid entry when the key was claimed. */
    public function isHit(): bool {}

    /** Its value, or `$default`. */
    public function get(mixed $default = null): mixed {}

    /** Stores a value, and ends the claim; false: a plain set, delete or purge has come between, which counts as later. */
    public function set(mixed $value, ?float $ttl = null, array $tags = [], float $stale = 0.0): bool {}

    /** Removes the entry, and ends the claim; false: as for set. */
    public function delete(): bool {}

    /** Ends the claim, and leaves the entry as it is. */
    public function end(): void {}
}

/** A walk over keys. What is stored or evicted meanwhile may be met or not; what stays is met once. */
final class Keys implements \Iterator
{
    private function __construct() {}

    /** The key that the walk is at; null: it is over. */
    public function current(): ?string {}

    /** How many keys there were before it. */
    public function key(): int {}

    /** Goes on to the next one. An Exception FAILED: the walk isn't over, but the volume can't be read on. */
    public function next(): void {}

    /** Begins anew, at the first key. */
    public function rewind(): void {}

    /** Whether there is a key; false: the walk is over. */
    public function valid(): bool {}
}
