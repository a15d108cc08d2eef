<?php
// The interfaces of PSR-16 as version 1 of psr/simple-cache has them: without types.
namespace Psr\SimpleCache;

interface CacheException
{
}

interface InvalidArgumentException extends CacheException
{
}

interface CacheInterface
{
    public function get($key, $default = null);

    public function set($key, $value, $ttl = null);

    public function delete($key);

    public function clear();

    public function getMultiple($keys, $default = null);

    public function setMultiple($values, $ttl = null);

    public function deleteMultiple($keys);

    public function has($key);
}
