<?php

declare(strict_types=1);

namespace Eyewall;

/**
 * What a script prints, stored: a page, or a part of one.
 *
 *     Page::cached('/news', function (): void {
 *         echo render_news();
 *     }, 60, ['news']);
 *
 * Or, around code that isn't a function:
 *
 *     if (!Page::start('/news', 60, ['news'])) {
 *         echo render_news();
 *         Page::end('/news');
 *     }
 *
 * One process makes a page at a time, the others wait for it, for ten seconds at most. A page that wasn't stored (it was skipped, was
 * no good or too large, or its maker failed) is noted, and is made by whoever asks for it, without waiting, until one of them has
 * stored it, or for a minute. Pages may lie within pages. Header fields aren't stored: send them before.
 *
 * An exception between start() and end() that is caught outside leaves the page open: its output goes on to be collected, and others
 * wait for it, until the request ends, the same page is begun again, or one around it is ended by its key. cached() has no such gap.
 */
final class Page
{
    private static ?Cache $cache = null;
    private static string $prefix = 'page:';
    private static bool $isWatched = false;
    /** @var list<OpenPage> begun, and not ended: each within the one before it */
    private static array $open = [];

    /**
     * Where pages are stored; else in the volume that php.ini names (eyewall.path).
     *
     * @param string $prefix goes before each key, so that pages don't meet what else is stored: purgePrefix('page:/shop/')
     */
    public static function use(Cache $cache, string $prefix = 'page:'): void
    {
        self::$cache = $cache;
        self::$prefix = $prefix;
    }

    /**
     * Prints the page that is stored, or what `$make($key)` prints, and stores that, as end() does. If it throws, nothing that it has
     * printed is left, and the exception passes through.
     *
     * @param list<string> $tags
     */
    public static function cached(string $key, callable $make, ?float $ttl = null, array $tags = []): void
    {
        if (self::start($key, $ttl, $tags)) {
            return;
        }
        $isDone = false;
        // Not catch: a fiber that is given up passes by that.
        try {
            $make($key);
            self::end($key);
            $isDone = true;
        } finally {
            if (!$isDone) {
                self::drop($key);
            }
        }
    }

    /**
     * True: the page was stored, and has been printed. False: print it, and call end().
     *
     * @param list<string> $tags
     */
    public static function start(string $key, ?float $ttl = null, array $tags = []): bool
    {
        self::$cache ??= new Cache();
        self::watch();
        self::leaveLost($key);
        $page = OpenPage::begin(self::$cache, self::$prefix . $key, $ttl, $tags);
        if (is_string($page)) {
            echo $page;
            return true;
        }
        // What is flushed in the middle of it waits for the end: else that would be missing in what is stored.
        ob_start(null, 0, PHP_OUTPUT_HANDLER_STDFLAGS ^ PHP_OUTPUT_HANDLER_FLUSHABLE);
        $page->level = ob_get_level();
        self::$open[] = $page;
        return false;
    }

    /**
     * Prints the page that start() has begun, and stores it, unless it is an error page: one whose status isn't 200.
     *
     * @param string|null $key of the page: what an exception has left open within it isn't taken for it then; null: the last one that
     *     was begun
     */
    public static function end(?string $key = null): void
    {
        self::finish($key, in_array(http_response_code(), [false, 200], true));
    }

    /** In place of end(): prints the page, and doesn't store it. */
    public static function skip(?string $key = null): void
    {
        self::finish($key, false);
    }

    private static function finish(?string $key, bool $isGood): void
    {
        if ($key !== null) {
            $number = self::find($key) ?? throw new \LogicException("Page::end('$key') without a Page::start('$key') that has returned false");
            self::leaveFrom($number + 1);
        }
        $page = end(self::$open) ?: throw new \LogicException('Page::end() without a Page::start() that has returned false');
        if (ob_get_level() !== $page->level) {
            self::leaveUnbuffered();
            throw new \LogicException('Between Page::start() and Page::end() an output buffer was begun or ended, and not the other');
        }
        array_pop(self::$open);
        // Stored before it is sent, so that nobody waits for a slow client.
        try {
            if (!$isGood || !$page->store((string) ob_get_contents())) {
                $page->fail();
            }
        } finally {
            ob_end_flush();
        }
    }

    /** Which of the open pages it is; null: none. */
    private static function find(string $key): ?int
    {
        foreach (self::$open as $number => $page) {
            if ($page->name === self::$prefix . $key) {
                return $number;
            }
        }
        return null;
    }

    /** Leaves pages that an exception has left open: those without a buffer, and the one that is begun anew, with what is within it. */
    private static function leaveLost(string $key): void
    {
        self::leaveUnbuffered();
        $number = self::find($key);
        if ($number !== null) {
            self::leaveFrom($number);
        }
    }

    /** Somebody else has ended their buffers: what they held is gone, or printed. */
    private static function leaveUnbuffered(): void
    {
        while (self::$open !== [] && end(self::$open)->level > ob_get_level()) {
            array_pop(self::$open)->fail();
        }
    }

    /** What was printed in them goes on to what is around them, as it would without Page. */
    private static function leaveFrom(int $number): void
    {
        while (count(self::$open) > $number) {
            $page = array_pop(self::$open);
            while (ob_get_level() >= $page->level && ob_end_flush());
            $page->leave();
        }
    }

    /** A page that has failed, what was begun within it, and all that was printed there. */
    private static function drop(string $key): void
    {
        $number = self::find($key);
        while ($number !== null && count(self::$open) > $number) {
            $page = array_pop(self::$open);
            while (ob_get_level() >= $page->level && ob_end_clean());
            $page->fail();
        }
    }

    /** At the end of the request, behind all functions that were registered for it, since those may call end(). */
    private static function watch(): void
    {
        if (self::$isWatched) {
            return;
        }
        self::$isWatched = true;
        register_shutdown_function(static fn () => register_shutdown_function(static function (): void {
            while (self::$open !== []) {
                array_pop(self::$open)->fail();
            }
        }));
    }
}
