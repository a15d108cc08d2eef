<?php

declare(strict_types=1);

namespace Eyewall;

use Psr\Cache\CacheItemInterface;
use Psr\Cache\CacheItemPoolInterface;

/**
 * PSR-6 on a volume, for all three versions of its interfaces, with tags as in Symfony's tag-aware pools.
 *
 * Arguments have no types, since version 1 has none; invalid ones throw an InvalidItem. As PSR-6 requires, save
 * and commit return false for a value that can't be stored (too large, or not serializable), and a value that
 * can't be unserialized is a miss. A deferred item that can't be stored when the pool is destroyed is lost
 * silently; commit() returns false for it.
 */
final class ItemPool implements CacheItemPoolInterface
{
    private readonly object $nothing;
    private readonly ?int $ttl;
    /** @var array<string, Item> by key */
    private array $deferred = [];

    /**
     * @param string $prefix goes before each key and tag, so that several pools can share a volume; clear()
     *     removes what begins with it
     * @param null|int|\DateInterval $ttl of items that have none
     */
    public function __construct(private readonly Cache $cache, private readonly string $prefix = '', null|int|\DateInterval $ttl = null)
    {
        // No stored value is identical to this object.
        $this->nothing = new \stdClass();
        $this->ttl = Lifetime::seconds($ttl);
    }

    public function __destruct()
    {
        $this->commit();
    }

    public function getItem($key): Item
    {
        $name = $this->name($key);
        if (isset($this->deferred[$key])) {
            return $this->deferred[$key]->saved();
        }
        try {
            $value = $this->cache->get($name, $this->nothing);
        } catch (\Throwable) {
            $value = $this->nothing;
        }
        return $value === $this->nothing ? new Item($key, null, false) : new Item($key, $value, true);
    }

    public function getItems(array $keys = []): iterable
    {
        $items = [];
        foreach ($keys as $key) {
            $items[is_string($key) ? $key : ''] = $this->getItem($key);
        }
        return $items;
    }

    public function hasItem($key): bool
    {
        $name = $this->name($key);
        if (isset($this->deferred[$key])) {
            return $this->deferred[$key]->saved()->isHit();
        }
        try {
            return $this->cache->has($name);
        } catch (\Throwable) {
            return false;
        }
    }

    public function clear(): bool
    {
        $this->deferred = [];
        return $this->tried(fn () => $this->prefix === '' ? $this->cache->purgeAll() : $this->cache->purgePrefix($this->prefix));
    }

    public function deleteItem($key): bool
    {
        return $this->deleteItems([$key]);
    }

    public function deleteItems(array $keys): bool
    {
        $names = array_map($this->name(...), $keys);
        foreach ($keys as $key) {
            unset($this->deferred[$key]);
        }
        return $this->tried(fn () => $this->cache->deleteMultiple($names));
    }

    public function save(CacheItemInterface $item): bool
    {
        $item = $this->own($item);
        unset($this->deferred[$item->getKey()]);
        $ttl = $item->ttl() ?? $this->ttl;
        $name = $this->name($item->getKey());
        if ($ttl !== null && $ttl <= 0) {
            return $this->tried(fn () => $this->cache->delete($name));
        }
        return $this->tried(fn () => $this->cache->set($name, $item->value(), $ttl, array_map($this->tag(...), $item->tags())));
    }

    public function saveDeferred(CacheItemInterface $item): bool
    {
        $item = $this->own($item);
        $this->deferred[$item->getKey()] = clone $item;
        return true;
    }

    public function commit(): bool
    {
        $areSaved = true;
        foreach ($this->deferred as $item) {
            $areSaved = $this->save($item) && $areSaved;
        }
        return $areSaved;
    }

    /**
     * Purges all items with any of these tags, for all processes, in microseconds.
     *
     * @param list<string> $tags
     */
    public function invalidateTags(array $tags): bool
    {
        foreach ($tags as $tag) {
            $fault = KeyRules::fault($tag);
            if ($fault !== null) {
                throw new InvalidItem(str_replace('key', 'tag', $fault));
            }
        }
        // Deferred items are older than the purge, but would be stored after it.
        $this->deferred = array_filter($this->deferred, fn (Item $item) => array_intersect($item->tags(), $tags) === []);
        return $this->tried(fn () => $this->cache->purgeTags(array_map($this->tag(...), array_values($tags))));
    }

    private function tag(string $tag): string
    {
        return $this->prefix . $tag;
    }

    private function name(mixed $key): string
    {
        $fault = KeyRules::fault($key);
        return $fault === null ? $this->prefix . $key : throw new InvalidItem($fault);
    }

    private function own(CacheItemInterface $item): Item
    {
        return $item instanceof Item ? $item : throw new InvalidItem('An item of another pool, a ' . get_debug_type($item));
    }

    private function tried(\Closure $work): bool
    {
        try {
            $work();
            return true;
        } catch (\Throwable) {
            return false;
        }
    }
}
