<?php

declare(strict_types=1);

namespace Eyewall;

/**
 * Stores sessions in a volume.
 *
 * A request claims its session when it reads it, and releases it when it writes or closes it. Another request of
 * the same session waits, in whatever process, so no request overwrites another's changes. If a process dies, the
 * next request continues.
 *
 * A full volume evicts cold entries: give sessions a volume of their own that is large enough.
 */
final class SessionHandler implements \SessionHandlerInterface, \SessionUpdateTimestampHandlerInterface
{
    private ?Claim $claim = null;
    private string $claimed = '';

    /**
     * @param float $wait seconds that a request waits for another request of the same session
     * @param float|null $ttl seconds that an unused session lives; null: session.gc_maxlifetime
     */
    public function __construct(
        private readonly Cache $cache,
        private readonly string $prefix = 'session:',
        private readonly float $wait = 30.0,
        private readonly ?float $ttl = null,
    ) {
    }

    public function open(string $path, string $name): bool
    {
        return true;
    }

    /** @throws Exception with the code BUSY if another request had the session for all that time */
    public function read(string $id): string
    {
        $this->end();
        $this->claim = $this->cache->claim($this->name($id), $this->wait);
        $this->claimed = $id;
        return (string) $this->claim->get('');
    }

    public function write(string $id, string $data): bool
    {
        if ($this->isClaimed($id)) {
            // Superseded: another request destroyed or replaced the session later.
            $this->claim->set($data, $this->ttl());
            $this->end();
            return true;
        }
        return $this->cache->set($this->name($id), $data, $this->ttl());
    }

    public function close(): bool
    {
        $this->end();
        return true;
    }

    public function destroy(string $id): bool
    {
        if ($this->isClaimed($id)) {
            $this->claim->delete();
            $this->end();
        } else {
            $this->cache->delete($this->name($id));
        }
        return true;
    }

    /** Sessions expire by themselves. */
    public function gc(int $max_lifetime): int|false
    {
        return 0;
    }

    /** For session.use_strict_mode: whether this session exists. */
    public function validateId(string $id): bool
    {
        return $id !== '' && $this->cache->has($this->name($id));
    }

    /** Called instead of write if nothing has changed. */
    public function updateTimestamp(string $id, string $data): bool
    {
        return $this->cache->touch($this->name($id), $this->ttl()) || $this->write($id, $data);
    }

    private function name(string $id): string
    {
        return $this->prefix . $id;
    }

    private function ttl(): float
    {
        return $this->ttl ?? max(1.0, (float) ini_get('session.gc_maxlifetime'));
    }

    private function isClaimed(string $id): bool
    {
        return $this->claim !== null && $this->claimed === $id;
    }

    private function end(): void
    {
        $this->claim?->end();
        $this->claim = null;
    }
}
