<?php

declare(strict_types=1);

namespace Eyewall;

/**
 * Stores what a script prints: a page, or a part of one.
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
 * One process at a time makes a page; the others wait for it, for ten seconds at most. A page may fail: because it was skipped, has
 * another status than 200, is too large, or its code failed. Then, for a minute or until one process stores it, each process makes the
 * page without waiting. Pages may contain pages. Header fields aren't stored: send them before.
 *
 * If an exception leaves the code between start() and end() and is caught outside, the page stays open. It goes on collecting output,
 * and others wait for it, until the request ends, the same page is begun again, or a page around it is ended by its key. cached()
 * avoids this.
 */
final class Page
{
    private static ?Cache $cache = null;
    private static string $prefix = 'page:';
    private static bool $isWatched = false;
    /** @var list<OpenPage> begun, and not ended: each within the one before it */
    private static array $open = [];

    /**
     * Sets the volume of pages; without it, the ini setting eyewall.path names the volume.
     *
     * @param string $prefix goes before each key, to separate pages from other entries:
     *     purgePrefix('page:/shop/')
     */
    public static function use(Cache $cache, string $prefix = 'page:'): void
    {
        self::$cache = $cache;
        self::$prefix = $prefix;
    }

    /**
     * Prints the stored page. If there is none, prints the output of `$make($key)` and stores it as end()
     * does. If `$make` throws, its output is discarded, and the exception passes through.
     *
     * @param list<string> $tags
     */
    public static function cached(string $key, callable $make, ?float $ttl = null, array $tags = []): void
    {
        if (self::start($key, $ttl, $tags)) {
            return;
        }
        $isDone = false;
        // finally, since catch doesn't run when a fiber is destroyed.
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
     * Begins a page. True: the stored page was printed. False: print the page, and call end().
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
        // Hold a flush back until the end: it would be missing in the stored page.
        ob_start(null, 0, PHP_OUTPUT_HANDLER_STDFLAGS ^ PHP_OUTPUT_HANDLER_FLUSHABLE);
        $page->level = ob_get_level();
        self::$open[] = $page;
        return false;
    }

    /**
     * Prints the page that start() began, and stores it, unless its status isn't 200.
     *
     * @param string|null $key of the page, so that a page that an exception left open inside it isn't ended
     *     instead; null: the page that was begun last
     */
    public static function end(?string $key = null): void
    {
        self::finish($key, in_array(http_response_code(), [false, 200], true));
    }

    /** Instead of end(): prints the page without storing it. */
    public static function skip(?string $key = null): void
    {
        self::finish($key, false);
    }

    private static function finish(?string $key, bool $isGood): void
    {
        if ($key !== null) {
            $number = self::find($key) ?? throw new \LogicException("Page::end('$key') needs a Page::start('$key') before it that returned false");
            self::leaveFrom($number + 1);
        }
        $page = end(self::$open) ?: throw new \LogicException('Page::end() needs a Page::start() before it that returned false');
        if (ob_get_level() !== $page->level) {
            self::leaveUnbuffered();
            throw new \LogicException('Between Page::start() and Page::end(), code must end every output buffer that it begins, and no other');
        }
        array_pop(self::$open);
        // Store before sending, so that nobody waits for a slow client.
        try {
            if (!$isGood || !$page->store((string) ob_get_contents())) {
                $page->fail();
            }
        } finally {
            ob_end_flush();
        }
    }

    /** The index of an open page; null: there is none. */
    private static function find(string $key): ?int
    {
        foreach (self::$open as $number => $page) {
            if ($page->name === self::$prefix . $key) {
                return $number;
            }
        }
        return null;
    }

    /**
     * Ends pages that an exception left open: those without a buffer; and the page that is begun again, with
     * all pages inside it.
     */
    private static function leaveLost(string $key): void
    {
        self::leaveUnbuffered();
        $number = self::find($key);
        if ($number !== null) {
            self::leaveFrom($number);
        }
    }

    /** Other code ended their buffers and discarded or printed their content. */
    private static function leaveUnbuffered(): void
    {
        while (self::$open !== [] && end(self::$open)->level > ob_get_level()) {
            array_pop(self::$open)->fail();
        }
    }

    /** Passes their output on to the buffer around them, as would happen without Page. */
    private static function leaveFrom(int $number): void
    {
        while (count(self::$open) > $number) {
            $page = array_pop(self::$open);
            while (ob_get_level() >= $page->level && ob_end_flush());
            $page->leave();
        }
    }

    /** Discards a failed page, the pages inside it, and their output. */
    private static function drop(string $key): void
    {
        $number = self::find($key);
        while ($number !== null && count(self::$open) > $number) {
            $page = array_pop(self::$open);
            while (ob_get_level() >= $page->level && ob_end_clean());
            $page->fail();
        }
    }

    /** Runs after all other shutdown functions of the request, since those may call end(). */
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
