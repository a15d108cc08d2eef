<?php

declare(strict_types=1);

namespace Eyewall\Laravel;

use Eyewall\Cache;
use Eyewall\Exception;
use Illuminate\Cache\TaggableStore;
use Illuminate\Cache\TaggedCache;
use Illuminate\Contracts\Cache\LockProvider;

/**
 * A store of Laravel's cache on a volume, with tags and locks.
 *
 * An item that was put with tags is found with the same tags in the same order, as in Laravel's other stores. A flush of a tag purges all
 * items with it, in microseconds, and leaves no remains. Counters and add() are atomic over all processes.
 *
 * A full volume evicts cold entries, locks included: make it large enough, or give locks a store of their own.
 */
final class Store extends TaggableStore implements LockProvider
{
    /** @var list<string> tags of all that this store puts */
    private array $tags = [];

    /** @param string $prefix goes before each key and tag, so that several stores can share a volume */
    public function __construct(private readonly Cache $cache, private readonly string $prefix = '')
    {
    }

    public function get($key): mixed
    {
        try {
            return $this->cache->get($this->prefix . $key);
        } catch (\Throwable) {
            // It can't be unserialized, as if it were not there.
            return null;
        }
    }

    public function many(array $keys): array
    {
        $values = [];
        foreach ($keys as $key) {
            $values[$key] = $this->get($key);
        }
        return $values;
    }

    public function put($key, $value, $seconds): bool
    {
        return $seconds > 0 ? $this->set($key, $value, (float) $seconds) : $this->forget($key) || true;
    }

    public function putMany(array $values, $seconds): bool
    {
        $arePut = true;
        foreach ($values as $key => $value) {
            $arePut = $this->put((string) $key, $value, $seconds) && $arePut;
        }
        return $arePut;
    }

    public function add($key, $value, $seconds): bool
    {
        try {
            return $this->cache->add($this->prefix . $key, $value, $seconds > 0 ? (float) $seconds : null, $this->tags);
        } catch (\Throwable) {
            return false;
        }
    }

    /** @return int|bool the sum; false: the value is no number */
    public function increment($key, $value = 1): int|bool
    {
        $name = $this->prefix . $key;
        try {
            return $this->cache->increment($name, (int) $value, null, $this->tags);
        } catch (Exception $error) {
            return $error->getCode() === Exception::NOT_A_COUNTER ? $this->shift($name, (int) $value) : false;
        }
    }

    /** @return int|bool the difference; false: the value is no number */
    public function decrement($key, $value = 1): int|bool
    {
        return $this->increment($key, -(int) $value);
    }

    public function forever($key, $value): bool
    {
        return $this->set($key, $value, null);
    }

    public function touch($key, $seconds): bool
    {
        return $this->cache->touch($this->prefix . $key, (float) $seconds);
    }

    public function forget($key): bool
    {
        return $this->cache->delete($this->prefix . $key);
    }

    public function flush(): bool
    {
        $this->prefix === '' ? $this->cache->purgeAll() : $this->cache->purgePrefix($this->prefix);
        return true;
    }

    public function getPrefix(): string
    {
        return $this->prefix;
    }

    public function tags($names): TaggedCache
    {
        $names = array_values(array_map('strval', is_array($names) ? $names : func_get_args()));
        $store = clone $this;
        $store->tags = array_map(fn (string $name): string => $this->prefix . $name, array_values(array_unique($names)));
        return new TaggedCache($store, new TagSet($store, $names));
    }

    public function lock($name, $seconds = 0, $owner = null): Lock
    {
        return new Lock($this->cache, $this->prefix . $name, (int) $seconds, $owner);
    }

    public function restoreLock($name, $owner): Lock
    {
        return $this->lock($name, 0, $owner);
    }

    /** @internal Purges what has one of these tags. */
    public function flushTags(array $names): void
    {
        $this->cache->purgeTags(array_map(fn (string $name): string => $this->prefix . $name, $names));
    }

    private function set(string $key, mixed $value, ?float $ttl): bool
    {
        try {
            return $this->cache->set($this->prefix . $key, $value, $ttl, $this->tags);
        } catch (\Throwable) {
            return false;
        }
    }

    /** A text with a number becomes a counter, which keeps its expiry. */
    private function shift(string $name, int $by): int|bool
    {
        $claim = $this->cache->claim($name);
        $entry = $this->cache->lookup($name);
        if ($entry === null || !is_numeric($entry['value'])) {
            return false;
        }
        $sum = (int) $entry['value'] + $by;
        $claim->set($sum, $entry['ttl'], $entry['tags']);
        return $sum;
    }
}
