<?php
// The interfaces of PSR-16 as version 3 of psr/simple-cache has them: types of parameters and results.
namespace Psr\SimpleCache;

interface CacheException extends \Throwable
{
}

interface InvalidArgumentException extends CacheException
{
}

interface CacheInterface
{
    public function get(string $key, mixed $default = null): mixed;

    public function set(string $key, mixed $value, null|int|\DateInterval $ttl = null): bool;

    public function delete(string $key): bool;

    public function clear(): bool;

    public function getMultiple(iterable $keys, mixed $default = null): iterable;

    public function setMultiple(iterable $values, null|int|\DateInterval $ttl = null): bool;

    public function deleteMultiple(iterable $keys): bool;

    public function has(string $key): bool;
}
