<?php
// The interfaces of PSR-16 as version 2 of psr/simple-cache has them: types of parameters.
namespace Psr\SimpleCache;

interface CacheException extends \Throwable
{
}

interface InvalidArgumentException extends CacheException
{
}

interface CacheInterface
{
    public function get(string $key, mixed $default = null);

    public function set(string $key, mixed $value, null|int|\DateInterval $ttl = null);

    public function delete(string $key);

    public function clear();

    public function getMultiple(iterable $keys, mixed $default = null);

    public function setMultiple(iterable $values, null|int|\DateInterval $ttl = null);

    public function deleteMultiple(iterable $keys);

    public function has(string $key);
}
