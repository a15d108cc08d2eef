<?php

declare(strict_types=1);

namespace Eyewall\WordPress;

/** What the status page and `wp eyewall status` say. */
final class Status
{
    /** @return array<string, string> by what it is about */
    public static function lines(): array
    {
        $cache = $GLOBALS['wp_object_cache'] ?? null;
        $volume = $cache instanceof \Eyewall_Object_Cache ? $cache->volume() : null;
        $lines = ['Drop-in' => DropIn::state(), 'Object cache' => $volume === null ? 'WordPress\'s own, in the memory of each request' : 'in the volume ' . \Eyewall_Object_Cache::path()];
        if (class_exists('Eyewall_Object_Cache', false) && \Eyewall_Object_Cache::fault() !== '') {
            $lines['Notice'] = \Eyewall_Object_Cache::fault();
        }
        if ($volume !== null) {
            $stats = $volume->stats();
            $lookups = $stats['hits'] + $stats['misses'];
            $lines += [
                'Size' => sprintf('%s, of which %s is in use', size_format($stats['size_bytes']), size_format($stats['live_bytes']) ?: '0 B'),
                'Entries' => number_format_i18n($stats['entries']),
                'Hit ratio' => $lookups === 0 ? 'no look-ups yet' : sprintf('%.1f %% of %s look-ups, of all programs', 100 * $stats['hits'] / $lookups, number_format_i18n($lookups)),
            ];
        }
        $lines['Pages'] = Pages::way() === '' ? 'not purged: define WP_EYEWALL_SERVER in wp-config.php' : 'purged ' . Pages::way();
        return Pages::fault() === '' ? $lines : $lines + ['Last purge' => Pages::fault()];
    }

    /** Flushes the object cache, and returns whether that succeeded. */
    public static function flush(bool $blog_only): bool
    {
        $cache = $GLOBALS['wp_object_cache'] ?? null;
        return $blog_only && $cache instanceof \Eyewall_Object_Cache ? $cache->flush_blog() : wp_cache_flush();
    }
}
