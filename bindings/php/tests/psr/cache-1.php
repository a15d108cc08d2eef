<?php
// The interfaces of PSR-6 as version 1 of psr/cache has them: hardly a type.
namespace Psr\Cache;

interface CacheException
{
}

interface InvalidArgumentException extends CacheException
{
}

interface CacheItemInterface
{
    public function getKey();

    public function get();

    public function isHit();

    public function set($value);

    public function expiresAt($expiration);

    public function expiresAfter($time);
}

interface CacheItemPoolInterface
{
    public function getItem($key);

    public function getItems(array $keys = array());

    public function hasItem($key);

    public function clear();

    public function deleteItem($key);

    public function deleteItems(array $keys);

    public function save(CacheItemInterface $item);

    public function saveDeferred(CacheItemInterface $item);

    public function commit();
}
