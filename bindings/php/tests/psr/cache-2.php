<?php
// The interfaces of PSR-6 as version 2 of psr/cache has them: types of parameters.
namespace Psr\Cache;

interface CacheException extends \Throwable
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

    public function set(mixed $value);

    public function expiresAt(?\DateTimeInterface $expiration);

    public function expiresAfter(int|\DateInterval|null $time);
}

interface CacheItemPoolInterface
{
    public function getItem(string $key);

    public function getItems(array $keys = []);

    public function hasItem(string $key);

    public function clear();

    public function deleteItem(string $key);

    public function deleteItems(array $keys);

    public function save(CacheItemInterface $item);

    public function saveDeferred(CacheItemInterface $item);

    public function commit();
}
