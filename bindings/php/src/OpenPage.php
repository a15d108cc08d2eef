<?php

declare(strict_types=1);

namespace Eyewall;

/**
 * A page that is being made: whose turn it is, and what becomes of it.
 *
 * @internal Page has one for each page between start() and end().
 */
final class OpenPage
{
    /** For how many seconds one waits for another that makes the same page, before it makes its own. */
    private const WAIT = 10.0;
    /** For how many seconds nobody waits for a page that wasn't stored. */
    private const NOT_STORED = 60.0;
    /** Why there is a negative entry in place of a page: it wasn't stored. */
    private const REASON = 1;

    /** The level of the buffer that its output is collected in. */
    public int $level = 0;

    /**
     * With a claim it is made by us alone; with the serial of what notes that it wasn't stored, by all that ask for it; with neither,
     * by somebody else, too, who takes too long.
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
     * The page as it is stored; else the right to make it.
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
                // Whoever we have waited for has stored it, or hasn't: those behind us go on, too.
                $claim->end();
                $claim = null;
            }
        }
        return $page === null ? new self($cache, $name, $claim, $serial, $ttl, $tags) : (string) $page;
    }

    /** False: it can't be stored, with a warning that says why. What isn't ours alone is stored only if nothing has come between. */
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

    /** Notes that it wasn't stored, so that those that wait for it go on. */
    public function fail(): void
    {
        try {
            if ($this->claim !== null && !$this->cache->has($this->name)) {
                $this->cache->setNegative($this->name, self::REASON, self::NOT_STORED, $this->tags);
            }
        } catch (Exception) {
            // Then they make it one after the other.
        }
        $this->leave();
    }

    /** Gives up the turn; whoever waits is next. */
    public function leave(): void
    {
        $this->claim?->end();
    }

    /** The serial of what notes that a page wasn't stored; null: there is no such note. */
    private static function noted(Cache $cache, string $name): ?int
    {
        $entry = $cache->lookup($name);
        return ($entry['state'] ?? null) === 'negative' ? $entry['serial'] : null;
    }

    /** Null: another process takes too long. */
    private static function claim(Cache $cache, string $name): ?Claim
    {
        try {
            return $cache->claim($name, self::WAIT);
        } catch (Exception $error) {
            return $error->getCode() === Exception::BUSY ? null : throw $error;
        }
    }
}
