<?php

declare(strict_types=1);

namespace Eyewall;

/**
 * What a script prints, stored: a page, or a part of one.
 *
 *     if (!Page::start('/news', 60, ['news'])) {
 *         echo render_news();
 *         Page::end();
 *     }
 *
 * One process makes a page at a time, the others wait for it. Pages may lie within pages. Header fields aren't stored: send them before
 * start(). Code that throws between start() and end() has to be caught there, and ended by skip().
 */
final class Page
{
    /** For how many seconds one waits for another that makes the same page, before it makes its own. */
    private const WAIT = 10.0;

    private static ?Cache $cache = null;
    /** @var list<array{claim: ?Claim, ttl: ?float, tags: list<string>, level: int}> begun, and not ended */
    private static array $begun = [];

    /** Where pages are stored; else in the volume that php.ini names (eyewall.path). */
    public static function use(Cache $cache): void
    {
        self::$cache = $cache;
    }

    /**
     * True: the page was stored, and has been printed. False: print it, and call end().
     *
     * @param list<string> $tags
     */
    public static function start(string $key, ?float $ttl = null, array $tags = []): bool
    {
        self::$cache ??= new Cache();
        $page = self::$cache->get($key);
        $claim = $page === null ? self::claim($key) : null;
        $page ??= $claim?->get();
        if ($page !== null) {
            $claim?->end();
            echo $page;
            return true;
        }
        // What is flushed in the middle of it waits for the end: else that would be missing in what is stored.
        ob_start(null, 0, PHP_OUTPUT_HANDLER_STDFLAGS ^ PHP_OUTPUT_HANDLER_FLUSHABLE);
        self::$begun[] = ['claim' => $claim, 'ttl' => $ttl, 'tags' => $tags, 'level' => ob_get_level()];
        return false;
    }

    /** Prints the page that start() has begun, and stores it, unless it is an error page: one whose status isn't 200. */
    public static function end(): void
    {
        $isGood = in_array(http_response_code(), [false, 200], true);
        self::finish(static fn (?Claim $claim, string $page, ?float $ttl, array $tags) =>
            $isGood ? $claim?->set($page, $ttl, $tags) : $claim?->end());
    }

    /** In place of end(): prints the page, and doesn't store it. */
    public static function skip(): void
    {
        self::finish(static fn (?Claim $claim) => $claim?->end());
    }

    private static function finish(\Closure $done): void
    {
        $begun = end(self::$begun) ?: throw new \LogicException('Page::end() without a Page::start() that has returned false');
        if (ob_get_level() !== $begun['level']) {
            throw new \LogicException('Between Page::start() and Page::end() an output buffer was begun or ended, and not the other');
        }
        array_pop(self::$begun);
        // Stored before it is sent, so that nobody waits for a slow client.
        try {
            $done($begun['claim'], (string) ob_get_contents(), $begun['ttl'], $begun['tags']);
        } catch (Exception $error) {
            trigger_error('A page was not stored: ' . $error->getMessage(), E_USER_WARNING);
        } finally {
            ob_end_flush();
        }
    }

    /** Null: another process takes too long; we make the page without storing it. */
    private static function claim(string $key): ?Claim
    {
        try {
            return self::$cache->claim($key, self::WAIT);
        } catch (Exception $error) {
            return $error->getCode() === Exception::BUSY ? null : throw $error;
        }
    }
}
