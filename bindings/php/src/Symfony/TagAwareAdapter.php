<?php

declare(strict_types=1);

namespace Eyewall\Symfony;

use Eyewall\Cache;
use Eyewall\Claim;
use Eyewall\Exception;
use Psr\Cache\CacheItemInterface;
use Psr\Log\LoggerAwareInterface;
use Psr\Log\LoggerAwareTrait;
use Symfony\Component\Cache\Adapter\TagAwareAdapterInterface;
use Symfony\Component\Cache\CacheItem;
use Symfony\Component\Cache\ResettableInterface;
use Symfony\Contracts\Cache\TagAwareCacheInterface; // tidy: word, Symfony's

/**
 * A tag-aware pool of Symfony's cache component, version 5.4 to 7, on a volume.
 *
 * get() computes a value in one process of the machine; the others wait for it. So it never computes early: of `$beta`, only INF counts.
 * A purge by tags takes microseconds. An item has at most 32 tags; save() returns false for one with more, and logs the reason.
 */
final class TagAwareAdapter implements TagAwareAdapterInterface, TagAwareCacheInterface, LoggerAwareInterface, ResettableInterface
{
    use LoggerAwareTrait;

    /** @var array<string, CacheItem> by key */
    private array $deferred = [];
    private readonly \Closure $make;
    private readonly \Closure $open;

    /**
     * @param string $prefix goes before each key and tag, so that several pools can share a volume
     * @param int $default_lifetime seconds for items without an expiry; 0: until they are evicted
     * @param float $wait seconds that get() waits for another process that computes
     */
    public function __construct(
        private readonly Cache $cache,
        private readonly string $prefix = '',
        private readonly int $default_lifetime = 0,
        private readonly float $wait = 5.0,
    ) {
        // Pools of Symfony reach the properties of items so.
        $this->make = \Closure::bind(static function (string $key, mixed $value, bool $isHit, array $metadata): CacheItem {
            $item = new CacheItem();
            $item->key = $key;
            $item->value = $value;
            $item->isHit = $isHit;
            $item->isTaggable = true;
            $item->metadata = $metadata;
            return $item;
        }, null, CacheItem::class);
        $this->open = \Closure::bind(static fn (CacheItem $item): array => [$item->value, $item->expiry, array_values($item->newMetadata[CacheItem::METADATA_TAGS] ?? [])], null, CacheItem::class);
    }

    public function __destruct()
    {
        $this->commit();
    }

    public function get(string $key, callable $callback, ?float $beta = null, ?array &$metadata = null): mixed
    {
        $item = $this->getItem($key);
        if ($item->isHit() && $beta !== INF) {
            $metadata = $item->getMetadata();
            return $item->get();
        }
        $claim = null;
        try {
            $claim = $this->cache->claim($this->prefix . $key, $this->wait);
        } catch (Exception) {
            // Another process is slow, or the volume has failed: this one computes, too.
        }
        if ($claim?->isHit() && $beta !== INF) {
            $claim->end();
            $item = $this->getItem($key);
            if ($item->isHit()) {
                $metadata = $item->getMetadata();
                return $item->get();
            }
        }
        $save = true;
        $item->set($callback($item, $save));
        $metadata = [];
        $save ? $this->store($item, $claim) : $claim?->end();
        return $item->get();
    }

    public function delete(string $key): bool
    {
        return $this->deleteItem($key);
    }

    public function getItem(mixed $key): CacheItem
    {
        CacheItem::validateKey($key);
        isset($this->deferred[$key]) && $this->commit();
        $entry = null;
        try {
            $entry = $this->cache->lookup($this->prefix . $key);
        } catch (\Throwable $error) {
            $this->log('Failed to fetch key "{key}": ', $key, $error);
        }
        if ($entry === null || $entry['state'] !== 'fresh') {
            return ($this->make)($key, null, false, []);
        }
        $metadata = $entry['ttl'] === null ? [] : [CacheItem::METADATA_EXPIRY => microtime(true) + $entry['ttl']];
        $tags = array_map(fn (string $tag): string => substr($tag, strlen($this->prefix)), $entry['tags']);
        return ($this->make)($key, $entry['value'], true, $metadata + ($tags === [] ? [] : [CacheItem::METADATA_TAGS => array_combine($tags, $tags)]));
    }

    public function getItems(array $keys = []): iterable
    {
        array_map(CacheItem::validateKey(...), $keys);
        return (function () use ($keys): \Generator {
            foreach ($keys as $key) {
                yield $key => $this->getItem($key);
            }
        })();
    }

    public function hasItem(mixed $key): bool
    {
        return $this->getItem($key)->isHit();
    }

    public function clear(string $prefix = ''): bool
    {
        $this->deferred = array_filter($this->deferred, static fn (CacheItem $item): bool => !str_starts_with($item->getKey(), $prefix));
        $name = $this->prefix . $prefix;
        return $this->tried('clear', $name, fn () => $name === '' ? $this->cache->purgeAll() : $this->cache->purgePrefix($name));
    }

    public function deleteItem(mixed $key): bool
    {
        return $this->deleteItems([$key]);
    }

    public function deleteItems(array $keys): bool
    {
        $names = [];
        foreach ($keys as $key) {
            $names[] = $this->prefix . CacheItem::validateKey($key);
        }
        $this->deferred = array_diff_key($this->deferred, array_flip($keys));
        return $this->tried('delete', implode(', ', $keys), fn () => $this->cache->deleteMultiple($names));
    }

    public function save(CacheItemInterface $item): bool
    {
        if (!$item instanceof CacheItem) {
            return false;
        }
        unset($this->deferred[$item->getKey()]);
        return $this->store($item, null);
    }

    public function saveDeferred(CacheItemInterface $item): bool
    {
        if (!$item instanceof CacheItem) {
            return false;
        }
        $this->deferred[$item->getKey()] = clone $item;
        return true;
    }

    public function commit(): bool
    {
        [$deferred, $this->deferred] = [$this->deferred, []];
        $areSaved = true;
        foreach ($deferred as $item) {
            $areSaved = $this->store($item, null) && $areSaved;
        }
        return $areSaved;
    }

    public function invalidateTags(array $tags): bool
    {
        $names = [];
        foreach ($tags as $tag) {
            $names[] = $this->prefix . CacheItem::validateKey($tag);
        }
        // Items that were deferred before the purge are covered by it.
        return $this->commit() && ($names === [] || $this->tried('invalidate', implode(', ', $tags), fn () => $this->cache->purgeTags($names)));
    }

    public function reset(): void
    {
        $this->commit();
    }

    /** Stores an item, by a claim if there is one. */
    private function store(CacheItem $item, ?Claim $claim): bool
    {
        [$value, $expiry, $tags] = ($this->open)($item);
        $name = $this->prefix . $item->getKey();
        $ttl = $expiry === null ? ($this->default_lifetime > 0 ? (float) $this->default_lifetime : null) : $expiry - microtime(true);
        $tags = array_map(fn (string $tag): string => $this->prefix . $tag, $tags);
        return $this->tried('save', $item->getKey(), function () use ($claim, $name, $value, $ttl, $tags): void {
            if ($ttl !== null && $ttl <= 0) {
                $claim?->end();
                $this->cache->delete($name);
            } elseif ($claim !== null) {
                // Without effect if the key was changed or purged meanwhile: that counts as later.
                $claim->set($value, $ttl, $tags);
            } else {
                $this->cache->set($name, $value, $ttl, $tags);
            }
        });
    }

    private function tried(string $what, string $key, \Closure $work): bool
    {
        try {
            $work();
            return true;
        } catch (\Throwable $error) {
            $this->log("Failed to $what key \"{key}\": ", $key, $error);
            return false;
        }
    }

    private function log(string $message, string $key, \Throwable $error): void
    {
        CacheItem::log($this->logger, $message . $error->getMessage(), ['key' => $key, 'exception' => $error, 'cache-adapter' => self::class]);
    }
}
