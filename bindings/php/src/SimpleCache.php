<?php

declare(strict_types=1);

namespace Eyewall;

use Psr\SimpleCache\CacheInterface;

/**
 * PSR-16 on a volume, for all three versions of its interface.
 *
 * Arguments have no types, since version 1 has none; invalid ones throw an InvalidKey. As PSR-16 requires, a
 * method returns false if a value can't be stored (too large, not serializable, or its key is busy), and a value
 * that can't be unserialized is a miss: the cache doesn't fail its users.
 */
final class SimpleCache implements CacheInterface
{
    private readonly ?int $ttl;

    /**
     * @param string $prefix goes before each key, so that several caches can share a volume; clear() removes
     *     what begins with it
     * @param null|int|\DateInterval $ttl of values that are stored without one
     */
    public function __construct(private readonly Cache $cache, private readonly string $prefix = '', null|int|\DateInterval $ttl = null)
    {
        $this->ttl = Lifetime::seconds($ttl);
    }

    public function get($key, $default = null): mixed
    {
        $name = $this->name($key);
        try {
            return $this->cache->get($name, $default);
        } catch (\Throwable) {
            return $default;
        }
    }

    public function set($key, $value, $ttl = null): bool
    {
        return $this->store([$this->name($key) => $value], $ttl);
    }

    public function delete($key): bool
    {
        return $this->remove([$this->name($key)]);
    }

    public function clear(): bool
    {
        try {
            $this->prefix === '' ? $this->cache->purgeAll() : $this->cache->purgePrefix($this->prefix);
            return true;
        } catch (\Throwable) {
            return false;
        }
    }

    public function getMultiple($keys, $default = null): iterable
    {
        $values = [];
        foreach ($this->each($keys) as $key) {
            $values[$key] = $this->get($key, $default);
        }
        return $values;
    }

    public function setMultiple($values, $ttl = null): bool
    {
        $named = [];
        foreach ($this->each($values) as $key => $value) {
            // PHP turns such array keys into integers.
            $named[$this->name(is_int($key) ? (string) $key : $key)] = $value;
        }
        return $this->store($named, $ttl);
    }

    public function deleteMultiple($keys): bool
    {
        $names = [];
        foreach ($this->each($keys) as $key) {
            $names[] = $this->name($key);
        }
        return $this->remove($names);
    }

    public function has($key): bool
    {
        $name = $this->name($key);
        try {
            return $this->cache->has($name);
        } catch (\Throwable) {
            return false;
        }
    }

    private function name(mixed $key): string
    {
        $fault = KeyRules::fault($key);
        return $fault === null ? $this->prefix . $key : throw new InvalidKey($fault);
    }

    private function each(mixed $keys): iterable
    {
        return is_iterable($keys) ? $keys : throw new InvalidKey('Many keys are an array or a Traversable, not ' . get_debug_type($keys));
    }

    private function store(array $values, mixed $ttl): bool
    {
        if ($ttl !== null && !is_int($ttl) && !$ttl instanceof \DateInterval) {
            throw new InvalidKey('A lifetime is null, an integer or a DateInterval, not ' . get_debug_type($ttl));
        }
        $seconds = $ttl === null ? $this->ttl : Lifetime::seconds($ttl);
        if ($seconds !== null && $seconds <= 0) {
            return $this->remove(array_keys($values));
        }
        try {
            return $this->cache->setMultiple($values, $seconds);
        } catch (\Throwable) {
            return false;
        }
    }

    private function remove(array $names): bool
    {
        try {
            $this->cache->deleteMultiple($names);
            return true;
        } catch (\Throwable) {
            return false;
        }
    }
}
