<?php

declare(strict_types=1);

namespace Eyewall;

use Psr\Cache\CacheItemInterface;

/** An item of an ItemPool (PSR-6), with tags. */
final class Item implements CacheItemInterface
{
    private ?float $expiry = null;
    /** @var list<string> */
    private array $tags = [];

    /** @internal An ItemPool makes items. */
    public function __construct(private readonly string $key, private mixed $value, private bool $isHit)
    {
    }

    public function getKey(): string
    {
        return $this->key;
    }

    public function get(): mixed
    {
        return $this->value;
    }

    public function isHit(): bool
    {
        return $this->isHit;
    }

    public function set($value): static
    {
        $this->value = $value;
        return $this;
    }

    public function expiresAt($expiration): static
    {
        if ($expiration !== null && !$expiration instanceof \DateTimeInterface) {
            throw new InvalidItem('An expiry is null or a DateTimeInterface, not ' . get_debug_type($expiration));
        }
        $this->expiry = $expiration === null ? null : (float) $expiration->format('U.u');
        return $this;
    }

    public function expiresAfter($time): static
    {
        if ($time !== null && !is_int($time) && !$time instanceof \DateInterval) {
            throw new InvalidItem('A lifetime is null, an integer or a DateInterval, not ' . get_debug_type($time));
        }
        $this->expiry = $time === null ? null : microtime(true) + Lifetime::seconds($time);
        return $this;
    }

    /**
     * Adds tags for the next save; ItemPool::invalidateTags purges by them.
     *
     * @param string|iterable<string> $tags
     */
    public function tag(string|iterable $tags): static
    {
        foreach (is_string($tags) ? [$tags] : $tags as $tag) {
            $fault = KeyRules::fault($tag);
            if ($fault !== null) {
                throw new InvalidItem(str_replace('key', 'tag', $fault));
            }
            $this->tags[] = $tag;
        }
        return $this;
    }

    /** @internal @return list<string> */
    public function tags(): array
    {
        return array_values(array_unique($this->tags));
    }

    /** @internal Seconds from now; null: forever. */
    public function ttl(): ?float
    {
        return $this->expiry === null ? null : $this->expiry - microtime(true);
    }

    /** @internal The value to store. */
    public function value(): mixed
    {
        return $this->value;
    }

    /** @internal The item as it is found after it was saved or deferred. */
    public function saved(): static
    {
        $saved = clone $this;
        $ttl = $this->ttl();
        $saved->isHit = $ttl === null || $ttl > 0;
        if (!$saved->isHit) {
            $saved->value = null;
        }
        return $saved;
    }
}
