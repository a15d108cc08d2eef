<?php
// The interfaces of PSR-6 as version 3 of psr/cache has them: types of parameters and results.
namespace Psr\Cache;

interface CacheException extends \Throwable
{
}

interface InvalidArgumentException extends CacheException
{
}

interface CacheItemInterface
{
    public function getKey(): string;

    public function get(): mixed;

    public function isHit(): bool;

    public function set(mixed $value): static;

    public function expiresAt(?\DateTimeInterface $expiration): static;

    public function expiresAfter(int|\DateInterval|null $time): static;
}

interface CacheItemPoolInterface
{
    public function getItem(string $key): CacheItemInterface;

    public function getItems(array $keys = []): iterable;

    public function hasItem(string $key): bool;

    public function clear(): bool;

    public function deleteItem(string $key): bool;

    public function deleteItems(array $keys): bool;

    public function save(CacheItemInterface $item): bool;

    public function saveDeferred(CacheItemInterface $item): bool;

    public function commit(): bool;
}
