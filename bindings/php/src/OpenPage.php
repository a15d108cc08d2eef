<?php

declare(strict_types=1);

namespace Eyewall;

/**
 * A page in progress: which process may make it, and what happens to the result.
 *
 * @internal Page has one for each page between start() and end().
 */
final class OpenPage
{
    /** Seconds to wait for another process that makes the same page; then this process makes its own. */
    private const WAIT = 10.0;
    /** Seconds during which nobody waits for a page that wasn't stored. */
    private const NOT_STORED = 60.0;
    /** Reason code of the negative entry of a page that wasn't stored. */
    private const REASON = 1;

    /** The level of the buffer that collects its output. */
    public int $level = 0;

    /**
     * With a claim, only this process makes the page. With the serial of a negative entry, all processes that
     * need the page make it. With neither, another process that is slow makes it, too.
     *
     * @param list<string> $tags
     */
    private function __construct(
        private readonly Cache $cache,
        public readonly string $name,
        private readonly ?Claim $claim,
        private readonly ?int $serial,
        private readonly ?float $ttl,
        private readonly array $tags,
    ) {
    }

    /**
     * Returns the stored page, or else the right to make it.
     *
     * @param list<string> $tags
     */
    public static function begin(Cache $cache, string $name, ?float $ttl, array $tags): self|string
    {
        $page = $cache->get($name);
        if ($page !== null) {
            return (string) $page;
        }
        $serial = self::noted($cache, $name);
        $claim = $serial === null ? self::claim($cache, $name) : null;
        if ($claim !== null) {
            $page = $claim->get();
            $serial = $page === null ? self::noted($cache, $name) : null;
            if ($page !== null || $serial !== null) {
                // The other process has finished, stored or not: let the next one continue, too.
                $claim->end();
                $claim = null;
            }
        }
        return $page === null ? new self($cache, $name, $claim, $serial, $ttl, $tags) : (string) $page;
    }

    /**
     * Stores the page. Returns false, after a warning that says why, if it can't. Without a claim, stores it
     * only if the entry hasn't changed meanwhile.
     */
    public function store(string $text): bool
    {
        try {
            if ($this->claim !== null) {
                $this->claim->set($text, $this->ttl, $this->tags);
            } elseif ($this->serial !== null) {
                $this->cache->cas($this->name, $this->serial, $text, $this->ttl, $this->tags);
            }
            return true;
        } catch (Exception $error) {
            trigger_error('A page was not stored: ' . $error->getMessage(), E_USER_WARNING);
            return false;
        }
    }

    /** Stores a negative entry, so that waiting processes continue. */
    public function fail(): void
    {
        try {
            if ($this->claim !== null && !$this->cache->has($this->name)) {
                $this->cache->setNegative($this->name, self::REASON, self::NOT_STORED, $this->tags);
            }
        } catch (Exception) {
            // Without it, they make the page one after the other.
        }
        $this->leave();
    }

    /** Ends the claim; the next waiting process gets it. */
    public function leave(): void
    {
        $this->claim?->end();
    }

    /** The serial of the page's negative entry; null: there is none. */
    private static function noted(Cache $cache, string $name): ?int
    {
        $entry = $cache->lookup($name);
        return ($entry['state'] ?? null) === 'negative' ? $entry['serial'] : null;
    }

    /** Claims the page. Null: another process takes too long. */
    private static function claim(Cache $cache, string $name): ?Claim
    {
        try {
            return $cache->claim($name, self::WAIT);
        } catch (Exception $error) {
            return $error->getCode() === Exception::BUSY ? null : throw $error;
        }
    }
}
