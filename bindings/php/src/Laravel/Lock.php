<?php

declare(strict_types=1);

namespace Eyewall\Laravel;

use Eyewall\Cache;

/** A lock of Laravel: an entry with the name of its owner, which expires by itself. */
final class Lock extends \Illuminate\Cache\Lock
{
    public function __construct(private readonly Cache $cache, string $name, int $seconds, ?string $owner = null)
    {
        parent::__construct($name, $seconds, $owner);
    }

    public function acquire(): bool
    {
        return $this->cache->add($this->name, $this->owner, $this->seconds > 0 ? (float) $this->seconds : null);
    }

    /** Under a claim, so that it can't release a lock that another owner acquires meanwhile. */
    public function release(): bool
    {
        $claim = $this->cache->claim($this->name);
        if ($claim->get() !== $this->owner) {
            $claim->end();
            return false;
        }
        return $claim->delete();
    }

    public function forceRelease(): void
    {
        $this->cache->delete($this->name);
    }

    protected function getCurrentOwner(): string
    {
        return (string) $this->cache->get($this->name, '');
    }
}
